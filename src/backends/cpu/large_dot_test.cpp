// Products too large for the interpreter, by Freivalds' check; and that this check sees what is wrong.
#include "backends/cpu/parity_testing.h"
#include "support/backend_parity.h"
#include "support/freivalds.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

namespace tilewright::cpu {
namespace {

using test::check_large_product;
using test::HostView;
using test::on_backend;
using tile::samples::MatmulKernel;

class LargeDots : public testing::OnIsa {
 protected:
  // Under every schedule that the backend proposes.
  void check(const MatmulKernel& m) {
    int checked = 0;
    for (const backends::Candidate& c : backend_->candidates(matmul(m))) {
      if (!c.refusal.empty()) continue;
      std::string source;
      EXPECT_EQ(check_large_product(m, on_backend(*backend_, c.schedule, source)), "")
          << to_string(m) << " [" << to_string(c.schedule) << "]";
      ++checked;
    }
    EXPECT_GE(checked, 1) << to_string(m);
  }
};

TEST_P(LargeDots, PassFreivaldsCheck) {
  check({.dtype = DType::f32,
         .out = DType::f32,
         .m = 1024,
         .n = 1024,
         .k = 512,
         .block_m = 96,
         .block_n = 256,
         .block_k = 256});
  check({.dtype = DType::f32,
         .out = DType::f32,
         .m = 777,
         .n = 1030,
         .k = 333,
         .block_m = 96,
         .block_n = 256,
         .block_k = 128,
         .b_by_columns = true});
  check(
      {.m = 1000, .n = 1024, .k = 520, .block_m = 96, .block_n = 256, .block_k = 256, .a_by_columns = true});
}

INSTANTIATE_TEST_SUITE_P(Isas, LargeDots, ::testing::ValuesIn(kAllIsas),
                         [](const auto& info) { return std::string(name(info.param)); });

// What the backend left, with `change` made to it.
std::string checked_after(const std::function<void(float* c)>& change) {
  const auto backend = CpuBackend::open({.threads = 2}).value();
  const MatmulKernel m{.dtype = DType::f32,
                       .out = DType::f32,
                       .m = 256,
                       .n = 512,
                       .k = 300,
                       .block_m = 96,
                       .block_n = 256,
                       .block_k = 300};
  std::string source;
  const auto run = on_backend(*backend, backend->candidates(matmul(m)).front().schedule, source);
  return check_large_product(m,
                             [&](const tile::Kernel& kernel, const std::vector<HostView>& views,
                                 const std::vector<std::int64_t>& scalars) -> Status {
                               Status ran = run(kernel, views, scalars);
                               change(reinterpret_cast<float*>(views.back().data));
                               return ran;
                             });
}

TEST(FreivaldsCheck, SeesOneWrongElement) {
  EXPECT_EQ(checked_after([](float*) {}), "");
  // Elements have a standard deviation of 5.8 (√300 / 3).
  EXPECT_NE(checked_after([](float* c) { c[100 * 512 + 7] += 6; }), "");
  EXPECT_NE(checked_after([](float* c) { std::swap(c[3], c[512 + 3]); }), "");
  EXPECT_NE(checked_after([](float* c) { c[255 * 512 + 511] = std::numeric_limits<float>::quiet_NaN(); }),
            "");
}

}  // namespace
}  // namespace tilewright::cpu
