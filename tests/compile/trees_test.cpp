// Functions of trees: structs of parameters, lists of them, numbers beside tensors, and their derivatives.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "support/errors.h"
#include "support/kernel_folder.h"

namespace tilewright {
namespace {

using Floats = std::vector<float>;

struct Linear {
  Tensor weight;
  std::optional<Tensor> bias = {};
  TILEWRIGHT_FIELDS(weight, bias)

  Tensor operator()(const Tensor& x) const {
    const Tensor y = matmul(x, weight);
    return bias ? y + *bias : y;
  }
};
struct Network {
  std::vector<Linear> layers;
  double slope = 0.25;
  TILEWRIGHT_FIELDS(layers, slope)

  Tensor forward(Tensor x) const {
    for (const Linear& layer : layers) {
      const Tensor y = layer(x);
      x = maximum(y, y * slope);
    }
    return x;
  }
};

class Trees : public ::testing::Test {
 protected:
  Linear linear(Index in, Index out, bool with_bias) {
    Linear l{ctx_.randn({in, out})};
    if (with_bias) l.bias = ctx_.randn({out});
    return l;
  }
  Network network() { return {{linear(3, 4, true), linear(4, 2, false)}, 0.25}; }
  Context ctx_{{.cache_directory = test::kernel_folder(), .threads = 1}};
};

Floats numbers_of(const Tensor& t) { return t.to_vector<float>(); }

TEST_F(Trees, HaveTensorsByName) {
  const Network net = network();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : named_tensors(net)) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"layers.0.weight", "layers.0.bias", "layers.1.weight"}));
  EXPECT_EQ(tensors_of(net).at(2).shape(), (Shape{4, 2}));
  const auto pairs = named_tensors(std::tuple{net.layers[1], std::array{net.layers[0].weight}, 3});
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].name, "0.weight");
  EXPECT_EQ(pairs[1].name, "1.0");
}

TEST_F(Trees, TakeTensorsByName) {
  const Network net = network(), other = network();
  NamedTensors saved = named_tensors(other);
  std::swap(saved[0], saved[2]);
  const Network loaded = with_tensors(net, saved);
  EXPECT_EQ(numbers_of(loaded.layers[1].weight), numbers_of(other.layers[1].weight));
  EXPECT_EQ(numbers_of(*loaded.layers[0].bias), numbers_of(*other.layers[0].bias));
  saved[0] = {"layers.7.weight", other.layers[0].weight};
  saved[1].tensor = cast(ctx_.ones({5}), DType::bf16);
  test::expect_says([&] { with_tensors(net, saved); },
                    {"layers.1.weight is missing", "layers.7.weight is none of the tree's",
                     "layers.0.bias is bf16[5], the tree's is f32[4]", "trees_test.cpp:"});
  saved.push_back(saved[2]);
  test::expect_says([&] { with_tensors(net, saved); }, {"layers.0.weight is there twice"});
}

TEST_F(Trees, AreMappedTensorByTensor) {
  const Network net = network();
  const Network twice = map_tensors([](const Tensor& t) { return t * 2.f; }, net);
  const Network sum = map_tensors([](const Tensor& a, const Tensor& b) { return a + b; }, net, net);
  EXPECT_EQ(numbers_of(twice.layers[1].weight), numbers_of(net.layers[1].weight * 2.f));
  EXPECT_EQ(numbers_of(*sum.layers[0].bias), numbers_of(*twice.layers[0].bias));
  EXPECT_EQ(twice.slope, net.slope);
  EXPECT_FALSE(twice.layers[1].bias.has_value());
  test::expect_says(
      [&] { map_tensors([](const Tensor& a, const Tensor&) { return a; }, net, net.layers[0]); },
      {"map_tensors: tree 0 has 3 tensors, tree 1 has 2", "trees_test.cpp:"});
}

TEST_F(Trees, AreArgumentsAndResults) {
  const Network net = network();
  const Tensor x = ctx_.randn({5, 3});
  const auto run = compile([](const Network& n, const Tensor& in) { return n.forward(in); });
  EXPECT_EQ(numbers_of(run(net, x)), numbers_of(net.forward(x)));
  const auto member = compile(&Network::forward);
  EXPECT_EQ(numbers_of(member(net, x)), numbers_of(net.forward(x)));
  const auto halved = compile([](const Network& n) {
    return std::pair{map_tensors([](const Tensor& t) { return t * 0.5f; }, n), sum(n.layers[0].weight)};
  });
  for (int call = 0; call < 2; ++call) {  // the second finds the program, and the result's structure with it
    const auto [half, total] = halved(net);
    ASSERT_EQ(half.layers.size(), 2u);
    EXPECT_EQ(numbers_of(*half.layers[0].bias), numbers_of(*net.layers[0].bias * 0.5f));
    EXPECT_FALSE(half.layers[1].bias.has_value());
    EXPECT_EQ(half.slope, 0.25);
    EXPECT_NEAR(total.item(), sum(net.layers[0].weight).item(), 1e-5);
  }
  EXPECT_EQ(halved.report().size(), 1u);
}

// Equal tensors in another structure are another program: so many layers, a bias or none, another number.
TEST_F(Trees, OfAnotherStructureAreAnotherProgram) {
  const Tensor a = ctx_.full({2, 2}, 1), b = ctx_.full({2, 2}, 2), x = ctx_.full({2, 2}, 3);
  using Lists = std::vector<std::vector<Tensor>>;
  const auto weigh = compile([](const Lists& lists) {
    Tensor total = lists[0][0] * 0.f;
    for (std::size_t i = 0; i < lists.size(); ++i)
      for (const Tensor& t : lists[i]) total = total + t * static_cast<float>(i + 1);
    return total;
  });
  for (int call = 0; call < 2; ++call) {
    EXPECT_EQ(numbers_of(weigh(Lists{{a, b}, {x}})), Floats(4, 1 + 2 + 2 * 3));
    EXPECT_EQ(numbers_of(weigh(Lists{{a}, {b, x}})), Floats(4, 1 + 2 * (2 + 3)));
    EXPECT_EQ(numbers_of(weigh(Lists{{a}, {}, {b}, {x}})), Floats(4, 1 + 3 * 2 + 4 * 3));
  }
  EXPECT_EQ(weigh.report().size(), 3u);
  const auto scaled =
      compile([](const Tensor& t, double by, bool negate) { return negate ? -t * by : t * by; });
  EXPECT_EQ(numbers_of(scaled(a, 2.5, false)), Floats(4, 2.5f));
  EXPECT_EQ(numbers_of(scaled(a, 2.5, true)), Floats(4, -2.5f));
  EXPECT_EQ(numbers_of(scaled(a, 3, false)), Floats(4, 3));
  EXPECT_EQ(scaled.report().size(), 3u);
  // Numbers that change at every call do not fill the memory: what was not called for long is dropped.
  for (int i = 0; i < 100; ++i) EXPECT_EQ(numbers_of(scaled(a, i, false))[0], static_cast<float>(i));
  EXPECT_EQ(scaled.report().size(), 64u);
}

TEST_F(Trees, ResultsMayDifferInStructureWithTheSizes) {
  const auto rows = compile([](const Tensor& t) {
    std::vector<std::pair<Tensor, Index>> all;
    for (Index i = 0; i < t.shape()[0]; ++i) all.emplace_back(select(t, 0, i) * 2.f, i);
    return all;
  });
  for (const Index n : {2, 5, 3, 2, 5}) {
    const auto all = rows(ctx_.full({n, 3}, 4));
    ASSERT_EQ(all.size(), static_cast<std::size_t>(n));
    EXPECT_EQ(numbers_of(all.back().first), Floats(3, 8));
    EXPECT_EQ(all.back().second, n - 1);
  }
}

TEST_F(Trees, HaveGradientsOfTheirOwnType) {
  const Network net = network();
  const Tensor x = cast(ctx_.randn({5, 3}), DType::f32);
  const auto loss = [](const Network& n, const Tensor& in) { return sum(square(n.forward(in))); };
  const auto [value, gradient] = value_and_grad(loss)(net, x);
  const auto compiled = compile(value_and_grad(loss));
  const auto [same_value, same] = compiled(net, x);
  EXPECT_NEAR(value.item(), loss(net, x).item(), 1e-4);
  EXPECT_NEAR(same_value.item(), value.item(), 1e-4);
  ASSERT_EQ(gradient.layers.size(), 2u);
  EXPECT_FALSE(gradient.layers[1].bias.has_value());
  EXPECT_EQ(gradient.slope, 0.25) << "numbers are the argument's";
  // The slope along a direction beside a difference quotient in f64.
  const auto wide = [](const auto& tree) {
    return map_tensors([](const Tensor& t) { return cast(t, DType::f64); }, tree);
  };
  const Network at = wide(net),
                along =
                    map_tensors([&](const Tensor& t) { return cast(ctx_.randn(t.shape()), DType::f64); }, at);
  const auto moved = [&](double by) {
    return loss(map_tensors([&](const Tensor& t, const Tensor& d) { return t + d * by; }, at, along), wide(x))
        .item();
  };
  const Network exact = grad(loss)(at, wide(x));
  double slope = 0;
  const std::vector<Tensor> g = tensors_of(exact), d = tensors_of(along);
  for (std::size_t i = 0; i < g.size(); ++i) slope += sum(g[i] * d[i]).item();
  EXPECT_NEAR(slope, (moved(1e-6) - moved(-1e-6)) / 2e-6, 1e-5 * (1 + std::abs(slope)));
  for (std::size_t i = 0; i < g.size(); ++i)
    for (const Network* other : {&gradient, &same})
      EXPECT_LT(max(abs(tensors_of(*other)[i] - g[i])).item(), 1e-4 * (1 + max(abs(g[i])).item()));
}

TEST_F(Trees, HaveGradientsOfSeveralArgumentsAndOtherResults) {
  const Tensor x = ctx_.full({3}, 2), y = ctx_.full({3}, 5);
  const auto f = [](const Tensor& a, const Tensor& b) { return std::pair{sum(a * a * b), a + b}; };
  const auto [results, slopes] = value_and_grad<1, 0>(f)(x, y);
  EXPECT_EQ(results.first.item(), 60);
  EXPECT_EQ(numbers_of(results.second), Floats(3, 7));
  EXPECT_EQ(numbers_of(std::get<0>(slopes)), Floats(3, 4));
  EXPECT_EQ(numbers_of(std::get<1>(slopes)), Floats(3, 20));
  const auto second = grad<1>([&](const Tensor& a, const Tensor& b) {
    return sum(grad([](const Tensor& u, const Tensor& v) { return sum(u * u * v * v); })(a, b));
  });
  EXPECT_EQ(numbers_of(second(x, y)), Floats(3, 4 * 2 * 5)) << "d/dv of 2 u v²";
  const auto by_number = value_and_grad(f, {0, 1});
  EXPECT_EQ(numbers_of(by_number(x, y).second.at(1)), Floats(3, 4));
}

TEST_F(Trees, SayWhichTensorHasNoGradient) {
  struct State {
    Tensor weight, step;
    TILEWRIGHT_FIELDS(weight, step)
  };
  const State state{ctx_.ones({2}), ctx_.ones({}, DType::i64)};
  const auto f = [](const State& s) { return sum(s.weight * s.step); };
  test::expect_says([&] { value_and_grad(f)(state); },
                    {"value_and_grad: argument 0, .step is i64[]", "cast", "trees_test.cpp:"});
  test::expect_says([&] { compile(value_and_grad(f))(state); }, {"argument 0, .step", "trees_test.cpp:"});
}

TEST_F(Trees, AreCalledByArgumentAndMemberInErrors) {
  const std::string here = "trees_test.cpp:";
  const Tensor x = ctx_.randn({5, 3});
  const auto forward = [](const Tensor& in, const Network& n) { return sum(n.forward(in)); };
  Network net = network();
  const auto run = compile(forward);
  run(x, net);
  net.layers[1].weight = Tensor();
  test::expect_says([&] { run(x, net); },
                    {"compile: argument 1, .layers[1].weight was never given a value", here});
  test::expect_says([&] { run.into(ctx_.ones({}), x, net); },
                    {"into: argument 1, .layers[1].weight was never given a value", here});
  test::expect_says([&] { value_and_grad<1>(forward)(x, net); },
                    {"value_and_grad: argument 1, .layers[1].weight was never", here});
  test::expect_says([&] { grad<1>(forward)(x, net); },
                    {"grad: argument 1, .layers[1].weight was never", here});

  net = network();
  net.layers[0].bias = net.layers[0].bias->reshape({1, 4});
  run(x, net);
  EXPECT_EQ(run.report().front().reason, "argument 1, .layers[0].bias is f32[1,4], was f32[4]");

  const auto donated =
      compile([](const Tensor& in,
                 const Network& n) { return sum(in) + sum(n.layers[0].weight) * sum(n.layers[1].weight); },
              {.donate = {1}});
  net.layers[1].weight = net.layers[0].weight;
  test::expect_says(
      [&] { donated(x, net); },
      {"argument 1, .layers[0].weight is donated, and it is argument 1, .layers[1].weight as well", here});
  const Network given = network();
  donated(x, given);
  EXPECT_NE(donated.explain().find("argument 1, .layers[0].weight"), std::string::npos) << donated.explain();
  test::expect_says([&] { donated(x, given); },
                    {"compile: argument 1, .layers[0].weight was donated to", here});
}

TEST_F(Trees, AreDonatedWholeAndAreNumberedAsArguments) {
  Network net = network();
  const auto step =
      compile([](const Tensor& by,
                 const Network& n) { return map_tensors([&](const Tensor& t) { return t * by; }, n); },
              {.donate = {1}});
  const Floats before = numbers_of(net.layers[1].weight);
  const Network next = step(ctx_.full({}, 2), net);
  EXPECT_EQ(numbers_of(next.layers[1].weight)[3], 2 * before[3]);
  test::expect_says([&] { net.layers[0].bias->item(); }, {"trees_test.cpp:"});
  const auto bad = compile([](const Network& n) { return n.layers[0].weight; }, {.donate = {1}});
  test::expect_says([&] { bad(next); },
                    {"argument 1 is to be donated, the function has 1", "trees_test.cpp:"});
  const auto dynamic = compile([](const Network& n) { return n.layers[0].weight; }, {.dynamic = {{0, 0}}});
  test::expect_says([&] { dynamic(next); }, {"argument 0 has 3 tensors", "trees_test.cpp:"});
}

struct Moments {
  Tensor m, v;
  TILEWRIGHT_FIELDS(m, v)
};
struct Adam : Moments {
  int step = 0;
  TILEWRIGHT_FIELDS(m, v, step)
};

TEST_F(Trees, OfDerivedStructsHaveTheMembersOfTheirBases) {
  Adam state;
  state.m = state.v = ctx_.ones({2});
  state.step = 7;
  EXPECT_EQ(map_tensors([](const Tensor& t) { return t + 1.f; }, state).step, 7);
  EXPECT_EQ(numbers_of(compile([](const Adam& s) { return s.m * static_cast<float>(s.step); })(state)),
            Floats(2, 7));
  EXPECT_EQ(detail::count_names("a, b, a"), 2u);
  EXPECT_EQ(detail::count_members<Adam>(), 3u);
}

TEST_F(Trees, OutputsAreBuiltAsResultsAre) {
  using Maybe = std::optional<Tensor>;
  const auto f = compile([](const Tensor& t, bool first) {
    return first ? std::pair<Maybe, Maybe>{t * 2.f, std::nullopt}
                 : std::pair<Maybe, Maybe>{std::nullopt, t * 3.f};
  });
  const Tensor x = ctx_.ones({2}), y = ctx_.zeros({2});
  f.into({y, std::nullopt}, x, true);
  EXPECT_EQ(numbers_of(y), Floats(2, 2));
  test::expect_says([&] { f.into({y, std::nullopt}, x, false); },
                    {"into: the outputs are not built", "trees_test.cpp:"});
  Tensor (Network::*none)(Tensor) const = nullptr;
  test::expect_says([&] { compile(none); }, {"compile: the function is empty", "trees_test.cpp:"});
}

TEST_F(Trees, AreWrittenIntoAndMeasured) {
  const Network net = network(), old = network();
  const auto twice =
      compile([](const Network& n) { return map_tensors([](const Tensor& t) { return t * 2.f; }, n); });
  twice.into(old, net);
  EXPECT_EQ(numbers_of(old.layers[1].weight), numbers_of(net.layers[1].weight * 2.f));
  twice.measure(net);
  EXPECT_GT(twice.report().at(0).measured_us, 0);
}

double plain(const Tensor& t) { return t.item(); }
Tensor doubled(const Tensor& t) noexcept { return t * 2.f; }

TEST_F(Trees, FunctionsOfAllKinds) {
  const Tensor x = ctx_.full({2}, 3), y = ctx_.full({2}, 4);
  EXPECT_EQ(numbers_of(compile([](const auto& a, const auto& b) { return a * b; })(x, y)), Floats(2, 12));
  EXPECT_EQ(
      numbers_of(compile<Tensor(Tensor, Tensor)>([](const auto&... each) { return (each + ...); })(x, y)),
      Floats(2, 7));
  EXPECT_EQ(numbers_of(compile(doubled)(x)), Floats(2, 6));
  EXPECT_EQ(numbers_of(compile(tilewright::square)(x)), Floats(2, 9));
  EXPECT_EQ(numbers_of(compile(std::function<Tensor(Tensor)>(doubled))(x)), Floats(2, 6));
  EXPECT_EQ(numbers_of(compile(compile(doubled))(x)), Floats(2, 6));
  EXPECT_EQ(numbers_of(grad([](const auto& a) { return sum(a * a); })(x)), Floats(2, 6));
  const auto list = compile([](const std::vector<Tensor>& in) { return in[0] * in[1]; });
  EXPECT_EQ(numbers_of(list({x, y})), Floats(2, 12));
  EXPECT_EQ(plain(compile([](const auto& a) { return sum(a); })(x)), 6);
}

}  // namespace
}  // namespace tilewright
