// f32 products made of products of bf16 parts are as accurate as f32's, for all numbers that f32 has.
#include "cuda_emulation/emulated_cuda.h"

#include "ops/functions.h"
#include "ops/ops.h"
#include "ops/row_parts.h"
#include "passes/graph/products_by_parts.h"
#include "passes/pipeline.h"
#include "support/choices.h"
#include "support/run_graph.h"

#include <tilewright/tile/text.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tilewright::emulation {
namespace {

// The emulated device, which finds parts worth it always.
tile::Target target_for_parts() {
  tile::Target t = open_emulated_cuda("sm_90a").value()->target();
  for (tile::MatrixUnit& unit : t.matrix_units)
    for (tile::MatrixOperands& row : unit.operands)
      if (row.worth_parts > 0) row.worth_parts = 1e9;
  return t;
}

struct Product {
  const char* name;
  Shape a, b;
  bool a_turned = false, b_turned = false;
};

const Product kProducts[] = {
    {"whole blocks", {128, 128}, {128, 64}},
    {"odd sizes", {70, 131}, {131, 90}},
    {"batched", {2, 40, 65}, {2, 65, 33}},
    {"one matrix for all", {3, 40, 64}, {1, 64, 48}},
    {"operands that lie the other way", {96, 72}, {80, 96}, true, true},
};

ir::Value turned(const ir::Value& x, bool is_turned) { return is_turned ? ops::swap_axes(x, -1, -2) : x; }

class ProductsByParts : public testing::TestWithParam<Product> {
 protected:
  ProductsByParts() : graph_("product") {
    const Product& p = GetParam();
    const ir::Value a = turned({&graph_, graph_.add_input("a", {DType::f32, p.a})}, p.a_turned),
                    b = turned({&graph_, graph_.add_input("b", {DType::f32, p.b})}, p.b_turned);
    std::vector<Index> whole = b.shape().extents();
    if (a.shape().rank() == 3) whole[0] = a.shape()[0];
    graph_.set_outputs({ops::matmul(a, ops::broadcast_to(b, Shape(whole))).id});
    const passes::Compiled compiled =
        passes::run_pipeline(passes::with_products_by_parts(graph_, target_for_parts()),
                             open_emulated_cuda("sm_90a").value()->target());
    std::string text;
    for (const tile::Kernel& kernel : compiled.plan.kernels) text += tile::print(kernel);
    EXPECT_NE(text.find("precision=two_level"), std::string::npos);
    compiled_ = compiled;
  }

  // What the device gives for such operands; and the same product and Σ|a||b| in f64.
  struct Results {
    ir::HostTensor got, exact, magnitude;
  };
  template <class Make>
  Results run(const Make& make) {
    std::vector<ir::HostTensor> inputs;
    for (const ir::NodeId id : graph_.inputs()) {
      ir::HostTensor x = ops::empty_host(graph_.type(id));
      for (std::size_t i = 0; i < x.f.size(); ++i) x.f[i] = static_cast<double>(static_cast<float>(make()));
      inputs.push_back(std::move(x));
    }
    Results r{.got = runner_.run(compiled_, inputs).at(0)};
    r.exact = ops::evaluate(graph_, inputs).at(0);
    for (ir::HostTensor& x : inputs)
      for (double& v : x.f) v = std::abs(v);
    r.magnitude = ops::evaluate(graph_, inputs).at(0);
    return r;
  }

  test::Random random_{7};
  ir::Graph graph_;
  passes::Compiled compiled_;
  test::GraphRunner runner_{"emulated:sm_90a"};
};

// Numbers over `exponents` binary orders of magnitude around 2^center.
struct Spread {
  double center, exponents;
};

TEST_P(ProductsByParts, AreAsExactAsF32) {
  for (const Spread s : {Spread{0, 2}, Spread{0, 60}, Spread{-100, 10}, Spread{50, 20}}) {
    const auto value = [&] {
      const double size = std::exp2(s.center + s.exponents * (random_.fraction() - 0.5));
      return random_.fraction() < 0.5 ? -size : size;
    };
    SCOPED_TRACE(s.center);
    const Results r = run(value);
    // Two roundings of a sum and what is left out: 2^-24 each, of the magnitude; the emulator adds a block's
    // products in f32. Of small results, the parts below the least number of bf16.
    for (std::size_t i = 0; i < r.got.f.size(); ++i)
      ASSERT_LE(std::abs(r.got.f[i] - r.exact.f[i]), 0x1p-21 * r.magnitude.f[i] + 0x1p-140) << i;
  }
}

TEST_P(ProductsByParts, TreatInfinityAndTheLargestNumbersAsF32) {
  const float inf = std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::max();
  for (const float odd : {inf, -inf, std::numeric_limits<float>::quiet_NaN(), most, -most, 1e-42f}) {
    SCOPED_TRACE(odd);
    int n = 0;
    // One number of the first operand's is odd, the others are small and no result is near overflow.
    const Results r = run([&] { return n++ == 5 ? odd : 0.25f + 0.001f * static_cast<float>(n % 7); });
    for (std::size_t i = 0; i < r.got.f.size(); ++i) {
      if (std::isfinite(r.exact.f[i])) {
        ASSERT_LE(std::abs(r.got.f[i] - r.exact.f[i]), 0x1p-21 * r.magnitude.f[i]) << i;
      } else if (std::isnan(r.exact.f[i])) {
        ASSERT_TRUE(std::isnan(r.got.f[i])) << i;
      } else {
        ASSERT_EQ(r.got.f[i], r.exact.f[i]) << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ProductsByParts, testing::ValuesIn(kProducts));

}  // namespace
}  // namespace tilewright::emulation
