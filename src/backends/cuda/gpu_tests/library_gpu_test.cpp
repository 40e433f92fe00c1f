// Vendors' libraries in the place of products on the device: every algorithm that they offer against the
// interpreter, and launched, recorded and replayed.
#include <fmt/format.h>

#include "backends/cuda/cuda_backend.h"
#include "support/kernel_check.h"
#include "support/matmul_kernels.h"

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

using tile::samples::matmul;
using tile::samples::MatmulKernel;

class LibraryCalls : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = CudaBackend::open({});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    backend_ = std::move(*opened);
    for (const backends::DeviceFact& fact : backend_->facts())
      if (fact.key == "cublaslt") version_ = fact.text;
    if (version_.empty())
      GTEST_SKIP() << "no libcublasLt.so.13 or .12 on this machine: set TILEWRIGHT_CUBLASLT to its folder";
  }

  // Compares every algorithm's result with the interpreter's, and counts those that ran.
  int expect_right(const MatmulKernel& m) {
    const tile::Kernel kernel = matmul(m);
    int ran = 0;
    for (const backends::Candidate& c : backend_->library_candidates(kernel)) {
      const auto r = test::check_kernel(*backend_, kernel, c.schedule,
                                        {.odd_share = 0, .model = {.scale = 4, .flush_subnormals = true}});
      EXPECT_EQ(r.problem, "") << to_string(m) << " " << to_string(c.schedule);
      EXPECT_EQ(r.refused, "") << to_string(m) << " " << to_string(c.schedule);
      ++ran;
    }
    EXPECT_GT(ran, 0) << to_string(m) << ": the library has nothing for it";
    return ran;
  }

  std::unique_ptr<backends::Backend> backend_;
  std::string version_;
};

TEST_F(LibraryCalls, GiveWhatTheInterpreterGives) {
  int ran = 0;
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32})
    for (const bool a_by_columns : {false, true})
      for (const bool b_by_columns : {false, true})
        for (const Index batch : {1, 3}) {
          MatmulKernel m{.dtype = dtype, .out = dtype, .batch = batch, .m = 136, .n = 64, .k = 96};
          m.a_by_columns = a_by_columns, m.b_by_columns = b_by_columns;
          ran += expect_right(m);
        }
  fmt::print("cuBLASLt {}: {} calls compared\n", version_, ran);
}

// Sizes that are no multiple of anything, rows that begin anywhere, and results wider than operands.
TEST_F(LibraryCalls, TakeUnalignedSizes) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32})
    for (const bool by_columns : {false, true}) {
      MatmulKernel m{.dtype = dtype, .out = dtype, .batch = 2, .m = 131, .n = 77, .k = 53};
      m.b_by_columns = by_columns;
      m.align_bytes = static_cast<Index>(size_bytes(dtype));
      expect_right(m);
      m.gap = 3, m.batch = 1;
      expect_right(m);
      m.out = DType::f32;
      expect_right(m);
    }
  expect_right(
      {.dtype = DType::f64, .out = DType::f64, .m = 100, .n = 60, .k = 40, .block_m = 32, .block_n = 32});
  expect_right({.m = 1, .n = 300, .k = 500});
}

TEST_F(LibraryCalls, RoundOperandsOnlyWhereTheKernelAllowsIt) {
  MatmulKernel m{.dtype = DType::f32, .out = DType::f32, .m = 128, .n = 128, .k = 256};
  expect_right(m);  // f32's own bound
  m.tf32 = true;
  const auto candidates = backend_->library_candidates(matmul(m));
  ASSERT_FALSE(candidates.empty());
  const auto r = test::check_kernel(*backend_, matmul(m), candidates.front().schedule,
                                    {.odd_share = 0, .model = {.scale = 16384}});
  EXPECT_EQ(r.problem, "");
}

// c = a · b, then e = c · b: the second call sees the first one's result, launched and replayed, with a
// kernel of ours between other rounds.
TEST_F(LibraryCalls, AreRecordedBesideKernels) {
  constexpr Index kSize = 128;
  const tile::Kernel kernel =
      matmul({.dtype = DType::f32, .out = DType::f32, .m = kSize, .n = kSize, .k = kSize});
  const auto program = [&](const tile::Schedule& schedule) {
    const auto source = backend_->print(kernel, schedule);
    const auto binary = backend_->compile(kernel, *source);
    return *backend_->load(kernel, *source, *binary);
  };
  const auto calls = backend_->library_candidates(kernel);
  ASSERT_FALSE(calls.empty());
  const auto call = program(calls.front().schedule);
  const auto ours = program(backend_->candidates(kernel).front().schedule);
  fmt::print("{}\n", call->describe());
  constexpr std::size_t kBytes = kSize * kSize * sizeof(float);
  std::vector<void*> memory(4);
  for (void*& each : memory) each = *backend_->allocate(kBytes);
  std::vector<float> a(kSize * kSize), turn(kSize * kSize, 0.f), got(kSize * kSize);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 251);
  for (std::size_t i = 0; i < kSize; ++i) turn[i * kSize + (i + 1) % kSize] = 1;  // columns one further
  ASSERT_TRUE(backend_->copy(memory[0], a.data(), kBytes, backends::CopyKind::host_to_device).ok());
  ASSERT_TRUE(backend_->copy(memory[1], turn.data(), kBytes, backends::CopyKind::host_to_device).ok());
  const auto replay = backend_->record({{call.get(), {memory[0], memory[1], memory[2]}, {}, {1, 1, 1}},
                                        {ours.get(), {memory[2], memory[1], memory[3]}, {}, {1, 1, 1}},
                                        {call.get(), {memory[3], memory[1], memory[0]}, {}, {1, 1, 1}}});
  ASSERT_TRUE(replay.ok()) << replay.error().message;
  if (!*replay)
    GTEST_SKIP() << "this library's calls cannot be recorded: programs with them are not replayed";
  ASSERT_TRUE((*replay)->run().ok());
  ASSERT_TRUE((*replay)->run().ok());
  ASSERT_TRUE(backend_->copy(got.data(), memory[0], kBytes, backends::CopyKind::device_to_host).ok());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::size_t row = i / kSize, column = (i % kSize + kSize - 6) % kSize;
    ASSERT_EQ(got[i], a[row * kSize + column]) << i;
  }
  for (void* each : memory) backend_->release(each, kBytes);
}

}  // namespace
}  // namespace tilewright::cuda
