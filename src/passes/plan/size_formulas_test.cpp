// Formulas from samples: what they give between them, and where there is none.
#include "passes/plan/size_formulas.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace tilewright::passes {
namespace {

using Numbers = std::function<std::vector<PlanNumber>(Index n, Index m)>;

PlanNumber integer(Index i) { return {DType::i64, i}; }
PlanNumber number(double x) { return {DType::f32, tile::scalar_bits(DType::f32, x)}; }

std::vector<SizeSample> samples_of(const Numbers& numbers) {
  std::vector<SizeSample> out;
  for (const auto& [n, m] : std::vector<std::pair<Index, Index>>{{10, 20},
                                                                 {10, 900},
                                                                 {700, 20},
                                                                 {700, 900},
                                                                 {254, 20},
                                                                 {255, 20},
                                                                 {256, 20},
                                                                 {257, 20},
                                                                 {258, 20},
                                                                 {10, 254},
                                                                 {10, 255},
                                                                 {10, 256},
                                                                 {10, 257},
                                                                 {10, 258},
                                                                 {311, 407}})
    out.push_back({{n, m}, numbers(n, m)});
  return out;
}

// With more samples where these are asked for.
Result<SizeFormulas> found_at(std::vector<SizeSample> samples, const Numbers& numbers) {
  for (int more = 6;; --more) {
    const SizeFormulas::Found found = SizeFormulas::found(samples);
    if (found.formulas || found.apart.empty() || more == 0) return found.formulas;
    samples.push_back({found.apart, numbers(found.apart[0], found.apart[1])});
  }
}

void expect_found(const Numbers& numbers) {
  const auto formulas = found_at(samples_of(numbers), numbers);
  ASSERT_TRUE(formulas) << formulas.error().message;
  for (Index n = 10; n <= 700; n += 7)
    for (Index m = 20; m <= 900; m += 11) {
      const std::vector<PlanNumber> want = numbers(n, m);
      const std::vector<std::int64_t> got = formulas->at(std::vector<Index>{n, m});
      for (std::size_t i = 0; i < want.size(); ++i)
        ASSERT_EQ(got[i], want[i].bits) << "number " << i << " at " << n << ", " << m;
    }
}

TEST(SizeFormulas, FindProductsBlocksAndReciprocals) {
  expect_found([](Index n, Index m) -> std::vector<PlanNumber> {
    return {integer(7),
            integer(n),
            integer(m - 3),
            integer(64 * n * m + m + 5),
            integer(n * n),
            integer(ceil_div(n, 64)),
            integer(3 * ceil_div(m - 3, 128)),
            integer(ceil_div(n * m, 1024)),
            integer(ceil_div(n - 1, 2)),
            integer(64 * ceil_div(n - 2, 3)),
            integer(5 * ceil_div(m, 3)),
            integer(24 * ceil_div(m - 19, 4)),
            integer(n * m),
            number(static_cast<double>(n)),
            number(1.0 / static_cast<double>(n * m)),
            number(-1.0 / static_cast<double>(n)),
            number(2.0 / static_cast<double>(n)),
            // As wide as it was folded, and as a kernel has it.
            {DType::f64, tile::scalar_bits(DType::f64, 1.0 / static_cast<double>(n))},
            {DType::f64, tile::scalar_bits(DType::f64, static_cast<float>(1.0 / static_cast<double>(n)))}};
  });
}

// A step by a mean's gradient: counts that nothing else tells, and every product rounded.
TEST(SizeFormulas, FindFactorsThatWereFolded) {
  expect_found([](Index n, Index m) -> std::vector<PlanNumber> {
    const auto over = [](double count) { return static_cast<float>(1.0 / count); };
    const auto constant = [](float c) { return PlanNumber{DType::f64, tile::scalar_bits(DType::f64, c)}; };
    const auto cells = static_cast<double>(n * m), rows = static_cast<double>(n);
    return {constant(0.1F),
            constant(-0.7F),
            constant(3),
            constant(0.25F),
            integer(n),
            integer(m),
            number(over(10 * rows)),
            number(0.1F * (2 * over(10 * rows))),
            number(-0.7F * (0.1F * over(24 * cells))),
            number(over(rows - 1) / 3.F),
            number(0.7F * over(cells - 1) * 0.25F),
            number(0.1F * (over(rows) / 3.F * 0.7F)),
            {DType::f64, tile::scalar_bits(DType::f64, double{0.1F} * (1 / (5 * rows)))},
            {DType::f64, tile::scalar_bits(DType::f64, 3 * over(5 * rows))}};
  });
}

TEST(SizeFormulas, SayInWhatANumberDiffers) {
  const auto formulas = SizeFormulas::found(samples_of([](Index n, Index) {
                          return std::vector{integer(n), number(1 / std::sqrt(double(n)))};
                        })).formulas;
  ASSERT_FALSE(formulas);
  EXPECT_NE(formulas.error().message.find("it is 0.31622776 at size 10, 20"), std::string::npos)
      << formulas.error().message;
}

TEST(SizeFormulas, ANumberWithoutAFormulaIsAFailure) {
  for (const Numbers& numbers :
       {Numbers([](Index n, Index) { return std::vector{integer(n), integer(n % 7)}; }),
        Numbers([](Index n, Index m) { return std::vector{integer(n * n * m)}; }),
        Numbers([](Index n, Index) { return std::vector{integer(n > 300 ? n : 300)}; }),
        Numbers([](Index n, Index) { return std::vector{integer(n), number(std::sqrt(double(n)))}; })})
    EXPECT_FALSE(found_at(samples_of(numbers), numbers));
}

// Blocks of n and of n + 5 are as many at each of these sizes, but not at 60.
TEST(SizeFormulas, TwoFormulasThatDifferBetweenSamplesAskForOneMore) {
  std::vector<SizeSample> samples;
  for (const Index n : {10, 40, 41, 42, 70, 100})
    samples.push_back({{n}, {integer(n), integer(n + 5), integer(ceil_div(n, 64))}});
  const SizeFormulas::Found found = SizeFormulas::found(samples);
  EXPECT_FALSE(found.formulas);
  ASSERT_EQ(found.apart.size(), 1);
  const Index n = found.apart[0];
  EXPECT_NE(ceil_div(n, 64), ceil_div(n + 5, 64));
  samples.push_back({{n}, {integer(n), integer(n + 5), integer(ceil_div(n, 64))}});
  EXPECT_TRUE(SizeFormulas::found(samples).formulas);
}

}  // namespace
}  // namespace tilewright::passes
