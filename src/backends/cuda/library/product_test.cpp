// What is taken for a product: whatever is, multiplied by its description alone, gives what the interpreter
// makes of the kernel.
#include "backends/cuda/library/product.h"

#include "backends/cuda/library/cublaslt.h"
#include "backends/cuda/library/fake_cublaslt.h"
#include "backends/cuda/library/library_testing.h"
#include "backends/cuda/library/random_products_testing.h"
#include "support/hand_kernels.h"
#include "support/matmul_kernels.h"
#include "support/random_kernel.h"

#include <tilewright/tile/text.h>

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

using tile::samples::matmul;
using tile::samples::MatmulKernel;

std::unique_ptr<Library> fake_library() {
  return make_cublaslt(fake::make_cublaslt_functions(), "fake", {.allocate = [](std::size_t) {
                         static char workspace = 0;
                         return Result<void*>(&workspace);
                       }});
}

// 6,000 random kernels, each twist among them. A kernel that breaks its own promises does not count.
TEST(RandomProducts, AreWhatTheInterpreterSaysWhereTheyAreTaken) {
  const auto library = fake_library();
  int taken[kTwists] = {}, drawn[kTwists] = {};
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    const std::size_t twist = seed % 3 == 0 ? 0 : seed / 3 % kTwists;
    std::optional<tile::Kernel> kernel;
    try {
      kernel = ProductDraw(seed, static_cast<Twist>(twist)).run();
    } catch (const Error&) {
      continue;  // finish() saw a block outside of its view
    }
    ++drawn[twist];
    if (library->algorithms(*kernel) == 0) continue;
    ++taken[twist];
    const std::string problem = problem_with_call(*library, *kernel, seed);
    if (problem.find("breaks its own promises") != std::string::npos) continue;
    ASSERT_EQ(problem, "") << "seed " << seed << " twist " << twist << "\n" << tile::print(*kernel);
  }
  const auto share = [&](Twist twist) {
    const auto i = static_cast<std::size_t>(twist);
    return static_cast<double>(taken[i]) / std::max(drawn[i], 1);
  };
  for (const Twist product : {Twist::nothing, Twist::shared_batch, Twist::later_rows})
    EXPECT_GT(share(product), 0.5) << static_cast<int>(product);
  for (const Twist never : {Twist::starts_at_one, Twist::scaled, Twist::skips_depth, Twist::stored_twice,
                            Twist::summed_rows, Twist::updates_result}) {
    EXPECT_GT(drawn[static_cast<std::size_t>(never)], 50) << static_cast<int>(never);
    EXPECT_EQ(share(never), 0) << static_cast<int>(never);
  }
}

TEST(RandomProducts, NoOtherRandomKernelIsTakenWrongly) {
  const auto library = fake_library();
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto random = test::random_kernel(seed);
    if (library->algorithms(random.kernel) == 0) continue;
    EXPECT_EQ(problem_with_call(*library, random.kernel, seed), "") << tile::print(random.kernel);
  }
}

TEST(FindProduct, SeesTransposesBatchesAndRaggedSizes) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const bool a_by_columns : {false, true})
      for (const bool b_by_columns : {false, true})
        for (const Index batch : {1, 3}) {
          const MatmulKernel m{.dtype = dtype,
                               .out = dtype,
                               .batch = batch,
                               .m = 200,
                               .n = 130,
                               .k = 72,
                               .a_by_columns = a_by_columns,
                               .b_by_columns = b_by_columns};
          const auto p = find_product(matmul(m));
          ASSERT_TRUE(p) << to_string(m);
          EXPECT_EQ(std::tuple(p->m, p->n, p->k, p->batch), std::tuple(200, 130, 72, batch));
          EXPECT_EQ(p->a.row_stride, a_by_columns ? 1 : 72);
          EXPECT_EQ(p->b.column_stride, b_by_columns ? 72 : 1);
          EXPECT_EQ(p->d.row_stride, 130);
          EXPECT_EQ(p->sum_type, DType::f32);
          EXPECT_FALSE(p->tf32);
        }
}

TEST(FindProduct, SeesWhetherOperandsMayBeRounded) {
  EXPECT_TRUE(find_product(matmul(tile::samples::as_tf32({})))->tf32);
}

TEST(FindProduct, LeavesWhatIsMoreThanAProduct) {
  const MatmulKernel others[] = {{.bias_gelu = true}, {.row_sums = true}, {.maxima = true},
                                 {.residuals = 1},    {.beside = 1},      {.any_depth = true}};
  for (const MatmulKernel& m : others) EXPECT_FALSE(find_product(matmul(m))) << to_string(m);
  for (const tile::samples::HandKernel& k : tile::samples::small_kernels()) {
    const auto product = find_product(k.kernel);
    EXPECT_TRUE(!product || k.name.find("matmul") != std::string::npos) << k.name;
  }
}

// Heads of sequences, counted by one grid axis, and the rows of a batch that shares its weights.
TEST(FindProduct, MakesOneBatchAxisOfSeveral) {
  const auto parsed = tile::parse(R"(kernel @heads(
    %a: view<bf16,[40,5,12,128],strides=[7680,1536,128,1],align=256>,
    %b: view<bf16,[40,5,128,8],strides=[5120,1024,8,1],align=256>,
    %d: view<f32,[40,5,12,8],strides=[480,96,8,1],align=256>)
    grid(1, 1, 5*40) {
  %zero = constant 0 : i64
  %pid = program_id 2 : i64
  %five = constant 5 : i64
  %head = rem %pid, %five : i64
  %sequence = div %pid, %five : i64
  %sum = constant 0.0 : tile<f32,[12,8]>
  %end = constant 128 : i64
  %step = constant 16 : i64
  %out = loop %depth in %zero to %end step %step (%acc = %sum) : tile<f32,[12,8]> {
    %x = load %a[%sequence, %head, %zero, %depth] : tile<bf16,[12,16]>
    %y = load %b[%sequence, %head, %depth, %zero] : tile<bf16,[16,8]>
    %next = dot %x, %y, %acc : tile<f32,[12,8]>
    yield %next
  }
  store %d[%sequence, %head, %zero, %zero], %out : tile<f32,[12,8]>
})");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const auto p = find_product(*parsed);
  ASSERT_TRUE(p);
  EXPECT_EQ(std::tuple(p->m, p->n, p->k, p->batch), std::tuple(12, 8, 128, 200));
  EXPECT_EQ(std::tuple(p->a.batch_stride, p->b.batch_stride, p->d.batch_stride), std::tuple(1536, 1024, 96));
}

}  // namespace
}  // namespace tilewright::cuda
