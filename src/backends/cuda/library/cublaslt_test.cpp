// What cuBLASLt is asked, and what becomes of its refusals and failures.
#include "backends/cuda/library/cublaslt.h"

#include "backends/cuda/library/fake_cublaslt.h"
#include "backends/cuda/library/library_testing.h"
#include "support/matmul_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

using testing::HasSubstr;
using tile::samples::matmul;
using tile::samples::MatmulKernel;

struct Made {
  explicit Made(const Result<void*>& memory = static_cast<void*>(&at())) {
    std::vector<std::unique_ptr<Library>> all;
    all.push_back(
        make_cublaslt(fake::make_cublaslt_functions(), "fake", {.allocate = [=, this](std::size_t bytes) {
                        allocated.push_back(bytes);
                        return memory;
                      }}));
    libraries.emplace(std::move(all));
  }
  static char& at() {
    static char one = 0;
    return one;
  }
  Library& library() { return *libraries->all().front(); }
  std::vector<std::size_t> allocated;
  std::optional<LibrarySet> libraries;
};

tile::LibraryCall call(int algorithm) { return {.name = "cublaslt", .algorithm = algorithm}; }

TEST(CublasLt, OffersItsAlgorithmsOfProductsAlone) {
  Made made;
  const auto all = made.libraries->candidates(matmul({}));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(to_string(all[0].schedule), "library name=cublaslt");
  EXPECT_EQ(to_string(all[1].schedule), "library name=cublaslt algorithm=1");
  EXPECT_TRUE(made.libraries->candidates(matmul({.bias_gelu = true})).empty());
  // 8-bit floats, whose scales it wants to know, and integers.
  EXPECT_TRUE(made.libraries->candidates(matmul(tile::samples::of_bytes(DType::f8e4m3, {}))).empty());
  EXPECT_TRUE(made.libraries->candidates(matmul({.dtype = DType::i8, .out = DType::i32})).empty());
  fake::lt_state().algorithms = 0;
  EXPECT_TRUE(made.libraries->candidates(matmul({})).empty());
}

TEST(CublasLt, SaysWhatIsCalled) {
  Made made;
  const tile::Kernel kernel = matmul({.batch = 3, .m = 200, .n = 130, .k = 72, .b_by_columns = true});
  const auto source = made.libraries->print(kernel, call(1));
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_EQ(source->entry, "matmul");
  EXPECT_EQ(
      source->text,
      "// matmul: no kernel of ours, but a call of cuBLASLt 13.1.0, with its choice number 1 of algorithms\n"
      "// result = left · right, all matrices by columns\n"
      "cublasLtMatmul\n"
      "  m=130 n=200 k=72 batch=3 sums=f32\n"
      "  left: view 1 (%b): bf16 [72, 130], leading dimension 72, the next 9360 elements on, transposed\n"
      "  right: view 0 (%a): bf16 [72, 200], leading dimension 72, the next 14400 elements on\n"
      "  result: view 2 (%c): bf16 [130, 200], leading dimension 130, the next 26000 elements on\n");
  const auto binary = made.libraries->compile(kernel, call(1), *source);
  ASSERT_TRUE(binary.ok());
  EXPECT_FALSE(binary->bytes.empty());  // for the cache of binaries
}

TEST(CublasLt, IsToldWhatTheKernelsPolicyAllows) {
  Made made;
  const auto compute_type = [&](const MatmulKernel& m) {
    EXPECT_EQ(problem_with_call(made.library(), matmul(m), 1), "") << to_string(m);
    return fake::lt_state().last.compute_type;
  };
  const MatmulKernel small{.m = 16, .n = 24, .k = 8, .block_m = 16, .block_n = 8, .block_k = 8};
  const auto of = [&](DType dtype, bool tf32) {
    MatmulKernel m = small;
    m.dtype = m.out = dtype, m.tf32 = tf32;
    return m;
  };
  EXPECT_EQ(compute_type(of(DType::f32, false)), api::kCompute32F);
  EXPECT_EQ(compute_type(of(DType::f32, true)), api::kCompute32FFastTf32);
  EXPECT_EQ(fake::lt_state().last_preference.reduction_schemes,
            api::kReductionInPlace | api::kReductionComputeType);
  EXPECT_EQ(compute_type(of(DType::bf16, false)), api::kCompute32F);
  EXPECT_EQ(fake::lt_state().last_preference.reduction_schemes, api::kReductionComputeType);
  EXPECT_EQ(compute_type(of(DType::f64, false)), api::kCompute64F);
  MatmulKernel unaligned = small;
  unaligned.align_bytes = 4;
  EXPECT_EQ(compute_type(unaligned), api::kCompute32F);
  EXPECT_EQ(fake::lt_state().last_preference.alignment[0], 4u);
}

TEST(CublasLt, HasOneWorkspaceAndLeavesNothingBehind) {
  {
    Made made;
    const tile::Kernel kernel = matmul({});
    const auto first = made.libraries->prepare(kernel, call(0)),
               second = made.libraries->prepare(kernel, call(1));
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(made.allocated, std::vector<std::size_t>{32 << 20});
    EXPECT_EQ((*second)->describe(), "cuBLASLt 13.1.0, its choice number 1 of 2, 1.0 MiB of workspace");
    EXPECT_EQ(fake::lt_state().handles, 1);
  }
  EXPECT_EQ(fake::lt_state().live_objects, 0);
}

TEST(CublasLt, FailuresNameWhatFailed) {
  const tile::Kernel kernel = matmul({.m = 16, .n = 8, .k = 8, .block_m = 16, .block_n = 8, .block_k = 8});
  {
    Made made;
    fake::lt_state().create_status = 1;
    EXPECT_TRUE(made.libraries->candidates(kernel).empty());
    EXPECT_EQ(made.libraries->prepare(kernel, call(0)).error().message,
              "cublasLtCreate: as the fake library says (1)");
  }
  Made made;
  EXPECT_THAT(made.libraries->prepare(kernel, call(2)).error().message,
              HasSubstr("has 2 algorithms for matmul, no number 2"));
  EXPECT_THAT(made.libraries->prepare(kernel, {.name = "blis"}).error().message,
              HasSubstr("library blis: this machine has none"));
  EXPECT_THAT(made.libraries->prepare(matmul({.bias_gelu = true}), call(0)).error().message,
              HasSubstr("no product that cuBLASLt computes"));
  fake::lt_state().matmul_status = 13;
  EXPECT_THAT(problem_with_call(made.library(), kernel, 1),
              HasSubstr("cublasLtMatmul: as the fake library says (13)"));
  fake::lt_state().heuristic_status = 14;
  EXPECT_TRUE(made.libraries->candidates(kernel).empty());
  EXPECT_THAT(made.libraries->prepare(kernel, call(0)).error().message,
              HasSubstr("cublasLtMatmulAlgoGetHeuristic: as the fake library says (14)"));
  fake::lt_state().heuristic_status = api::kCublasNotSupported;
  EXPECT_TRUE(made.libraries->candidates(kernel).empty());
  const Made without(failure(Failure::Kind::out_of_memory, "no memory is left"));
  EXPECT_EQ(without.libraries->prepare(kernel, call(0)).error().kind, Failure::Kind::out_of_memory);
}

// An installed cuBLASLt without a GPU takes our descriptors, and fails where it wants a device.
TEST(CublasLt, IsOpenedWhereItIsAndElseSaysWhereItWasLookedFor) {
  const auto opened = open_cublaslt({"/tmp"}, {.allocate = [](std::size_t) {
                                      return Result<void*>(failure(Failure::Kind::device, "no device"));
                                    }});
  if (!opened) {
    EXPECT_EQ(opened.error().kind, Failure::Kind::not_found);
    EXPECT_THAT(opened.error().message, HasSubstr("/tmp: holds no libcublasLt.so.13"));
    return;
  }
  EXPECT_THAT((*opened)->path(), HasSubstr("libcublasLt.so."));
  EXPECT_THAT((*opened)->version(), testing::MatchesRegex("1[23]\\.[0-9]+\\.[0-9]+"));
  const auto prepared = (*opened)->prepare(matmul({.batch = 2}), 0);
  if (!prepared) {
    EXPECT_THAT(prepared.error().message,
                testing::AnyOf(HasSubstr("cublasLtCreate"), HasSubstr("no device")));
  }
}

}  // namespace
}  // namespace tilewright::cuda
