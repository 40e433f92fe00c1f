// Optimizers beside loops over doubles that are written from their papers; schedules by their corner points.
#include <gtest/gtest.h>

#include <tilewright/nn/optimizer.h>
#include <tilewright/nn/schedule.h>
#include <tilewright/tilewright.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/errors.h"

namespace tilewright::nn {
namespace {

struct Pair {
  Tensor matrix, bias;
  TILEWRIGHT_FIELDS(matrix, bias)
};

constexpr int kSteps = 100;
constexpr Index kRows = 5, kColumns = 3;
using Row = std::vector<double>;

// f(m, b) = Σ (m - 1)² / 2 · weight + Σ b⁴: a gradient that any loop can write.
Pair gradient_of(const Pair& p) { return {(p.matrix - 1.f) * 0.5f, p.bias * p.bias * p.bias}; }
double matrix_slope(double m) { return (m - 1) * 0.5; }
double bias_slope(double b) { return b * b * b; }

struct Trajectory {
  Row matrix, bias;
};

class OptimizerTest : public testing::Test {
 protected:
  Context ctx_{{.cache_directory = "", .seed = 4}};
  Pair first_{ctx_.randn({kRows, kColumns}), ctx_.randn({kColumns}) + 1.f};

  // The parameters after kSteps compiled steps at this rate.
  Trajectory ours(const Optimizer& optimizer, double rate) {
    const auto step = compile([&](const Pair& p, const OptimizerState<Pair>& state,
                                  const Tensor& r) { return optimizer.update(p, gradient_of(p), state, r); },
                              {.donate = {0, 1}});
    Pair p = map_tensors([](const Tensor& t) { return t + 0.f; }, first_);
    OptimizerState<Pair> state = optimizer.init(p);
    const Tensor r = ctx_.scalar(rate);
    for (int i = 0; i < kSteps; ++i) std::tie(p, state) = step(p, state, r);
    EXPECT_EQ(state.steps.item(), kSteps);
    return {p.matrix.to_vector<double>(), p.bias.to_vector<double>()};
  }
  // The same by `move`, which gets a number, its slope, its memory, the step and whether it is decayed.
  template <class Move>
  Trajectory loop(const Move& move) {
    Trajectory t{first_.matrix.to_vector<double>(), first_.bias.to_vector<double>()};
    std::vector<Row> memory(2, Row(kRows * kColumns)), memory_of_bias(2, Row(kColumns));
    for (int step = 1; step <= kSteps; ++step) {
      for (std::size_t i = 0; i < t.matrix.size(); ++i)
        move(t.matrix[i], matrix_slope(t.matrix[i]), memory[0][i], memory[1][i], step, true);
      for (std::size_t i = 0; i < t.bias.size(); ++i)
        move(t.bias[i], bias_slope(t.bias[i]), memory_of_bias[0][i], memory_of_bias[1][i], step, false);
    }
    return t;
  }
  // The bound: each step rounds its numbers, of at most 4, to f32 a few times.
  static void expect_near(const Trajectory& got, const Trajectory& want) {
    constexpr double kBound = kSteps * 8 * 4 * 0x1p-24;
    for (std::size_t i = 0; i < want.matrix.size(); ++i)
      EXPECT_NEAR(got.matrix[i], want.matrix[i], kBound) << i;
    for (std::size_t i = 0; i < want.bias.size(); ++i) EXPECT_NEAR(got.bias[i], want.bias[i], kBound) << i;
  }
};

TEST_F(OptimizerTest, SgdIsItsLoop) {
  for (const bool nesterov : {false, true})
    expect_near(ours(sgd({.momentum = 0.9, .nesterov = nesterov, .weight_decay = 0.1}), 0.01),
                loop([&](double& p, double g, double& v, double&, int, bool decayed) {
                  g += decayed ? 0.1 * p : 0;
                  v = 0.9 * v + g;
                  p -= 0.01 * (nesterov ? g + 0.9 * v : v);
                }));
  expect_near(ours(sgd(), 0.05),
              loop([](double& p, double g, double&, double&, int, bool) { p -= 0.05 * g; }));
}

TEST_F(OptimizerTest, AdamWIsItsLoop) {
  expect_near(ours(adamw({.beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1}), 0.02),
              loop([](double& p, double g, double& m, double& v, int step, bool decayed) {
                if (decayed) p *= 1 - 0.02 * 0.1;
                m = 0.8 * m + 0.2 * g;
                v = 0.95 * v + 0.05 * g * g;
                const double first = m / (1 - std::pow(0.8, step)), second = v / (1 - std::pow(0.95, step));
                p -= 0.02 * first / (std::sqrt(second) + 1e-8);
              }));
}

TEST_F(OptimizerTest, AdamWKeepsItsMomentsInTheTypeThatIsAskedFor) {
  const Optimizer narrow = adamw({.beta2 = 0.95, .moments = DType::bf16});
  for (const Pair& slot : narrow.init(first_).slots)
    for (const Tensor& t : tensors_of(slot)) EXPECT_EQ(t.dtype(), DType::bf16);
  const Trajectory got = ours(narrow, 0.01);
  const Trajectory want = loop([&](double& p, double g, double& m, double& v, int step, bool decayed) {
    const double first = m + (g - m) * 0.1, second = v + (g * g - v) * 0.05;
    const double along = first / (std::sqrt(second / (1 - std::pow(0.95, step))) + 1e-8);
    p = p * (1 - (decayed ? 0.01 * 0.01 : 0)) - 0.01 / (1 - std::pow(0.9, step)) * along;
    m = round_to(DType::bf16, first), v = round_to(DType::bf16, second);
  });
  // A step of 0.01 is off by 2⁻⁸ of itself if f32 and doubles fall on two sides of a rounding; so are those
  // behind it, ever less. The bound is that for a tenth of the steps.
  constexpr double kBound = 0.1 * kSteps * 0.01 * 0x1p-8;
  for (std::size_t i = 0; i < want.matrix.size(); ++i)
    EXPECT_NEAR(got.matrix[i], want.matrix[i], kBound) << i;
  for (std::size_t i = 0; i < want.bias.size(); ++i) EXPECT_NEAR(got.bias[i], want.bias[i], kBound) << i;
  const Trajectory wide = ours(adamw({.beta2 = 0.95}), 0.01);
  EXPECT_NE(got.matrix, wide.matrix) << "they are rounded";
}

TEST_F(OptimizerTest, MomentsThatWouldStandStillAreRefused) {
  test::expect_says([] { adamw({.moments = DType::bf16}); },
                    {"adamw: beta2 is 0.999 and moments are bf16", "at most 0.996", "optimizer_test.cpp:"});
  test::expect_says([] { adamw({.beta2 = 0.95, .moments = DType::f16}); },
                    {"adamw: moments in f16; f32, bf16 and", "optimizer_test.cpp:"});
  test::expect_says([] { muon({.others = {.moments = DType::bf16}}); }, {"muon: beta2 is 0.999"});
}

TEST_F(OptimizerTest, LionIsItsLoop) {
  expect_near(ours(lion({.weight_decay = 0.1}), 0.01),
              loop([](double& p, double g, double& m, double&, int, bool decayed) {
                const double mixed = 0.9 * m + 0.1 * g;
                if (decayed) p *= 1 - 0.01 * 0.1;
                p -= 0.01 * (mixed > 0 ? 1 : mixed < 0 ? -1 : 0);
                m = 0.99 * m + 0.01 * g;
              }));
}

// Jordan's five quintics of a tall matrix over doubles: x ← a x + (b x xᵀ + c (x xᵀ)²) x of its transpose.
Row orthogonalized_loop(const Row& tall) {
  constexpr Index kShort = kColumns, kLong = kRows;
  const auto at = [](Index r, Index c, Index width) { return static_cast<std::size_t>(r * width + c); };
  const auto product = [&](const Row& a, const Row& b, Index inner, Index width) {
    Row out(static_cast<std::size_t>(kShort * width));
    for (Index r = 0; r < kShort; ++r)
      for (Index c = 0; c < width; ++c)
        for (Index k = 0; k < inner; ++k) out[at(r, c, width)] += a[at(r, k, inner)] * b[at(k, c, width)];
    return out;
  };
  Row x(tall.size()), turned(tall.size());
  double squares = 0;
  for (const double v : tall) squares += v * v;
  for (Index r = 0; r < kShort; ++r)
    for (Index c = 0; c < kLong; ++c) x[at(r, c, kLong)] = tall[at(c, r, kShort)] / std::sqrt(squares);
  for (int step = 0; step < 5; ++step) {
    for (Index r = 0; r < kShort; ++r)
      for (Index c = 0; c < kLong; ++c) turned[at(c, r, kShort)] = x[at(r, c, kLong)];
    const Row gram = product(x, turned, kLong, kShort), twice = product(gram, gram, kShort, kShort);
    Row factor(gram.size());
    for (std::size_t i = 0; i < gram.size(); ++i) factor[i] = -4.7750 * gram[i] + 2.0315 * twice[i];
    const Row more = product(factor, x, kShort, kLong);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + more[i];
  }
  for (Index r = 0; r < kShort; ++r)
    for (Index c = 0; c < kLong; ++c) turned[at(c, r, kShort)] = x[at(r, c, kLong)];
  return turned;
}

TEST_F(OptimizerTest, MuonMovesByAnOrthogonalMatrix) {
  const Optimizer optimizer = muon({.weight_decay = 0, .iterations = 5});
  const OptimizerState<Pair> state = optimizer.init(first_);
  const Tensor rate = ctx_.scalar(0.5);
  const auto [moved, next] = optimizer.update(first_, gradient_of(first_), state, rate);
  const Tensor along = (first_.matrix - moved.matrix) / static_cast<float>(0.5 * std::sqrt(5.0 / 3.0));
  const std::vector<double> gram = matmul(along.T(), along).to_vector<double>();
  // Five quintics bring singular values between 0.7 and 1.2 (Jordan).
  for (Index i = 0; i < kColumns; ++i) {
    EXPECT_GT(gram[static_cast<std::size_t>(i * kColumns + i)], 0.4);
    EXPECT_LT(gram[static_cast<std::size_t>(i * kColumns + i)], 1.5);
  }
  const auto slope = gradient_of(first_).matrix.to_vector<double>(), way = along.to_vector<double>();
  // Momentum in its first step is 0.05 g, so that Nesterov's mix of it and g is a multiple of g. Each of the
  // 15 products in bf16 errs by 2^-8 of numbers near 1.
  const Row want = orthogonalized_loop(slope);
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(way[i], want[i], 15 * 0x1p-8) << i;
  double agreement = 0;
  for (std::size_t i = 0; i < way.size(); ++i) agreement += way[i] * slope[i];
  EXPECT_GT(agreement, 0);  // downhill
  expect_near({.matrix = moved.matrix.to_vector<double>(), .bias = moved.bias.to_vector<double>()},
              {.matrix = moved.matrix.to_vector<double>(),
               .bias = adamw({.weight_decay = 0})
                           .update(first_, gradient_of(first_), adamw().init(first_), rate)
                           .first.bias.to_vector<double>()});
}

// Shazeer and Stern's algorithm 4 over doubles: `rows` by `columns` numbers, of one row where they are a
// vector, whose moments are not factored.
Row adafactor_loop(Row p, Index rows, Index columns, bool factored, double rate, double (*slope)(double)) {
  constexpr double kLeast = 0x1p-23;
  const auto at = [columns](Index r, Index c) { return static_cast<std::size_t>(r * columns + c); };
  const auto root_mean_square = [](const Row& x) {
    double squares = 0;
    for (const double v : x) squares += v * v;
    return std::sqrt(squares / static_cast<double>(x.size()));
  };
  Row of_rows(static_cast<std::size_t>(rows)), of_columns(static_cast<std::size_t>(columns)),
      of_all(p.size());
  for (int step = 1; step <= kSteps; ++step) {
    const double share = std::pow(step, -0.8);
    Row g(p.size()), squares_of_rows(of_rows.size()), squares_of_columns(of_columns.size());
    for (std::size_t i = 0; i < p.size(); ++i) g[i] = slope(p[i]);
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < columns; ++c) {
        const double square = g[at(r, c)] * g[at(r, c)];
        squares_of_rows[static_cast<std::size_t>(r)] += square / static_cast<double>(columns);
        squares_of_columns[static_cast<std::size_t>(c)] += square / static_cast<double>(rows);
        of_all[at(r, c)] += (square - of_all[at(r, c)]) * share;
      }
    double mean_of_rows = 0;
    for (std::size_t r = 0; r < of_rows.size(); ++r) {
      of_rows[r] += (squares_of_rows[r] - of_rows[r]) * share;
      mean_of_rows += of_rows[r] / static_cast<double>(rows);
    }
    for (std::size_t c = 0; c < of_columns.size(); ++c)
      of_columns[c] += (squares_of_columns[c] - of_columns[c]) * share;
    Row along(p.size());
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < columns; ++c) {
        const double moment = factored ? of_rows[static_cast<std::size_t>(r)] *
                                             of_columns[static_cast<std::size_t>(c)] /
                                             std::max(mean_of_rows, kLeast)
                                       : of_all[at(r, c)];
        along[at(r, c)] = g[at(r, c)] / std::sqrt(std::max(moment, kLeast * kLeast));
      }
    const double size = std::max(1e-3, root_mean_square(p)) * std::min(rate, 1 / std::sqrt(step));
    const double clip = std::max(1.0, root_mean_square(along));
    for (std::size_t i = 0; i < p.size(); ++i) p[i] -= size / clip * along[i];
  }
  return p;
}

TEST_F(OptimizerTest, AdafactorIsItsLoop) {
  expect_near(
      ours(adafactor(), 0.02),
      {.matrix = adafactor_loop(first_.matrix.to_vector<double>(), kRows, kColumns, true, 0.02, matrix_slope),
       .bias = adafactor_loop(first_.bias.to_vector<double>(), 1, kColumns, false, 0.02, bias_slope)});
  const auto state = adafactor().init(first_);
  EXPECT_EQ(state.slots[0].matrix.shape(), (Shape{kRows, 1}));  // of rows
  EXPECT_EQ(state.slots[1].matrix.shape(), (Shape{1, kColumns}));
  EXPECT_EQ(state.slots[0].bias.shape(), (Shape{kColumns}));
}

TEST_F(OptimizerTest, MistakesNameTheParameter) {
  const auto message = [](const auto& f) -> std::string {
    try {
      f();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const Optimizer optimizer = adamw();
  const auto state = optimizer.init(first_);
  const std::string shape =
      message([&] { (void)optimizer.update(first_, Pair{first_.bias, first_.bias}, state, ctx_.scalar(1)); });
  EXPECT_NE(shape.find("parameter matrix, [5,3], is [3]"), std::string::npos) << shape;
  const std::string type = message([&] { (void)optimizer.init(Pair{first_.matrix, ctx_.arange(3)}); });
  EXPECT_NE(type.find("bias is i64[3]"), std::string::npos) << type;
}

// The types of a state are compared with those that the rule names: no slot is made for that.
TEST_F(OptimizerTest, LookingAtAStateTakesNoMemory) {
  const std::vector<Tensor> p{ctx_.ones({1 << 20})};
  const auto other = sgd().init(p);
  const Tensor rate = ctx_.scalar(0.1);
  const ParameterFilter all = [](const NamedTensor&) { return true; };
  for (const Optimizer& optimizer :
       {adamw(), muon({.orthogonal = all}), adafactor(), lion(), sgd({.momentum = 0.9}),
        adamw({.beta2 = 0.9, .moments = DType::f8e4m3})}) {
    ctx_.reset_peak_memory();
    const std::size_t before = ctx_.memory().peak_bytes;
    test::expect_says([&] { (void)optimizer.update(p, p, other, rate); }, {"is no slots, and this"});
    EXPECT_LT(ctx_.memory().peak_bytes, before + (1 << 18));
  }
}

TEST_F(OptimizerTest, AGradientIsClippedWhereItIsLonger) {
  const auto [same, norm] = clip_by_global_norm(first_, 1e6);
  EXPECT_EQ(same.matrix.to_vector<float>(), first_.matrix.to_vector<float>());
  double squares = 0;
  for (const Tensor& t : tensors_of(first_))
    for (const double v : t.to_vector<double>()) squares += v * v;
  EXPECT_NEAR(norm.item(), std::sqrt(squares), 1e-5);
  const auto [shorter, old] = clip_by_global_norm(first_, 0.5);
  EXPECT_NEAR(global_norm(tensors_of(shorter)).item(), 0.5, 1e-5);
  EXPECT_EQ(old.item(), norm.item());
}

TEST(Schedules, RiseStayAndFall) {
  const ScheduleOptions options{.rate = 1, .last_rate = 0.1, .warmup = 10, .steps = 110};
  EXPECT_DOUBLE_EQ(cosine_rate(options, 0), 0.1);
  EXPECT_DOUBLE_EQ(cosine_rate(options, 9), 1);
  EXPECT_DOUBLE_EQ(cosine_rate(options, 10), 1);
  EXPECT_NEAR(cosine_rate(options, 60), 0.55, 1e-12);
  EXPECT_DOUBLE_EQ(cosine_rate(options, 110), 0.1);
  EXPECT_DOUBLE_EQ(cosine_rate(options, 5000), 0.1);
  EXPECT_DOUBLE_EQ(wsd_rate(options, 20, 90), 1);
  EXPECT_NEAR(wsd_rate(options, 20, 100), 0.55, 1e-12);
  EXPECT_DOUBLE_EQ(wsd_rate(options, 20, 110), 0.1);
  EXPECT_DOUBLE_EQ(cosine_rate({.rate = 2, .last_rate = 1, .warmup = 0, .steps = 0}, 0), 1);
}

}  // namespace
}  // namespace tilewright::nn
