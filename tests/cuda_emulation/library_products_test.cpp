// What lowering makes of graphs around products: whichever of its kernels a library takes for a product, its
// call gives what the interpreter gives.
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/library/cublaslt.h"
#include "backends/cuda/library/fake_cublaslt.h"
#include "backends/cuda/library/library_testing.h"
#include "backends/cuda/library/product.h"
#include "passes/pipeline.h"
#include "support/draws.h"
#include "support/product_graphs.h"
#include "support/product_programs.h"

#include <tilewright/tile/text.h>

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

struct Counts {
  int kernels = 0, taken = 0;
};

class LoweredProducts : public testing::TestWithParam<const char*> {
 protected:
  void expect_right(const ir::Graph& graph, std::uint64_t seed) {
    // Every other one as eager calls are, a kernel for each op.
    const passes::Compiled compiled =
        passes::run_pipeline(graph, backend_->target(), {.fuse = seed % 2 == 0, .variants = true});
    for (std::size_t i = 0; i < compiled.plan.kernels.size(); ++i) {
      expect_right(compiled.plan.kernels[i], seed);
      if (!compiled.variants[i].empty()) expect_right(compiled.variants[i].back(), seed);
    }
  }

  void expect_right(const tile::Kernel& kernel, std::uint64_t seed) {
    constexpr Index kMostProducts = 300'000;  // what the interpreter does in a fraction of a second
    ++counts_.kernels;
    const auto product = find_product(kernel);
    if (!product || product->m * product->n * product->k * product->batch > kMostProducts) return;
    if (library_->algorithms(kernel) == 0) return;
    ++counts_.taken;
    ASSERT_EQ(problem_with_call(*library_, kernel, seed), "") << tile::print(kernel);
  }

  std::unique_ptr<backends::Backend> backend_ = CudaBackend::open({.compile_only = GetParam()}).value();
  std::unique_ptr<Library> library_ =
      make_cublaslt(fake::make_cublaslt_functions(), "made up", {.allocate = [](std::size_t) {
                      static char workspace = 0;
                      return Result<void*>(&workspace);
                    }});
  Counts counts_;
};

TEST_P(LoweredProducts, GiveWhatTheInterpreterGives) {
  for (std::uint64_t seed = 0; seed < test::draws(1500); ++seed) {
    test::ProductGraph p = test::random_product(seed);
    p.around = test::ProductGraph::Around::nothing;
    if (size_bytes(p.dtype) == 1) p.dtype = DType::f32, p.b_dtype = std::nullopt;
    expect_right(test::graph_of(p), seed);
  }
  for (std::uint64_t seed = 0; seed < test::draws(300); ++seed) {
    test::Random random(seed);
    expect_right(test::random_product_program(random).graph, seed);
  }
  EXPECT_GT(counts_.taken, static_cast<int>(test::draws(100))) << "of " << counts_.kernels;
  RecordProperty("taken", counts_.taken);
}

// What a user writes as a plain product is one for the library, too, where it is one kernel: in every type
// and order, at usual sizes.
TEST_P(LoweredProducts, PlainOnesAreTaken) {
  int single = 0, all = 0;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const bool by_columns : {false, true})
      for (const Index batch : {1, 6})
        for (const Index size : {256, 1024, 4096}) {
          const test::ProductGraph p{.batch = batch,
                                     .m = size,
                                     .n = 1024,
                                     .k = size / 2,
                                     .dtype = dtype,
                                     .b_by_columns = by_columns};
          const passes::Compiled compiled = passes::run_pipeline(test::graph_of(p), backend_->target());
          ++all;
          if (compiled.plan.kernels.size() > 1) continue;  // the depth in parts, or rows copied apart
          ++single;
          // What runs untuned is ours.
          for (const backends::Candidate& c : backend_->candidates(compiled.plan.kernels.front()))
            EXPECT_FALSE(is_library_call(c.schedule));
          EXPECT_EQ(library_->algorithms(compiled.plan.kernels.front()), 2)
              << to_string(p) << "\n"
              << tile::print(compiled.plan.kernels.front());
        }
  EXPECT_GT(single, all * 3 / 4);
}

INSTANTIATE_TEST_SUITE_P(Architectures, LoweredProducts, testing::Values("sm_80", "sm_90a"));

}  // namespace
}  // namespace tilewright::cuda
