// Ranges against lowering: at drawn sizes within a range the numbers of its plan are those of a lowering of
// that size, results of the same kernels are the same bits, and those of a Context that compiles for that
// size alone are near. TILEWRIGHT_RANGE_SECONDS=600 goes on drawing for so long, from TILEWRIGHT_RANGE_SEEDS
// on.
#include <tilewright/tensor/attention.h>
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>

#include "tensor/state.h"

#include "support/draws.h"
#include "support/kernel_folder.h"

namespace tilewright::range_property {
namespace {

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

// Arguments as shapes of -1 for n and -2 for m; those of `integers` hold numbers below 16.
struct Program {
  const char* name = "";
  std::vector<Shape> shapes;
  Function function;
  std::vector<std::size_t> integers = {};
  Index step = 1;  // n is a multiple of it
};

// The mean of squares of what `f` gives, and its derivatives by all arguments.
Function with_gradient(const std::function<Tensor(const Tensors&)>& f, std::vector<int> wrt) {
  const auto loss = [f](const Tensors& a) -> Tensors {
    const Tensor y = f(a);
    return {mean(y * y)};
  };
  return [loss, wrt = std::move(wrt)](const Tensors& a) -> Tensors {
    return tensors_of(value_and_grad(loss, wrt)(a));
  };
}

Tensor mlp(const Tensors& a) { return a[0] + matmul(gelu(matmul(layer_norm(a[0], a[1], a[2]), a[3])), a[4]); }

std::vector<Program> programs() {
  const Shape row{8}, wide{8, 24}, back{24, 8};
  return {
      {"norms of rows",
       {{-1, 24}, {24}},
       [](const Tensors& a) -> Tensors {
         return {layer_norm(a[0], a[1], {}), rms_norm(a[0] * 2.f, a[1]), softmax(a[0])};
       }},
      {"norms of the dynamic axis",
       {{6, -1}},
       [](const Tensors& a) -> Tensors {
         return {layer_norm(a[0], {}, {}), softmax(a[0]), logsumexp(a[0], {1}), log_softmax(a[0] * 3.f)};
       }},
      {"MLP with gradient", {{-1, 8}, row, row, wide, back}, with_gradient(mlp, {0, 1, 3, 4})},
      {"MLP", {{-1, 8}, row, row, wide, back}, [](const Tensors& a) -> Tensors { return {mlp(a)}; }},
      {"causal attention with gradient",
       {{1, 2, -1, 8}, {1, 2, -1, 8}, {1, 2, -1, 8}},
       with_gradient([](const Tensors& a) { return attention(a[0], a[1], a[2], {.mask = causal_mask()}); },
                     {0, 1, 2})},
      {"attention of two lengths",
       {{2, 2, -1, 8}, {2, 1, -2, 8}, {2, 1, -2, 8}},
       [](const Tensors& a) -> Tensors { return {attention(a[0], a[1], a[2])}; }},
      {"a cache and a query",
       {{-1, 2, 8}, {1, 2, 8}, {1, 2, 8}},
       [](const Tensors& a) -> Tensors {
         const Tensor keys = concat({a[0], a[1]}, 0), by_head = transpose(keys, {1, 0, 2});
         const Tensor scores = matmul(transpose(a[2], {1, 0, 2}), transpose(by_head, {0, 2, 1}));
         return {keys, matmul(softmax(scores * 0.3f), by_head)};
       }},
      {"reshapes that merge",
       {{-1, 4, 6}, {3, -1, 2}},
       [](const Tensors& a) -> Tensors {
         return {sum(reshape(a[0], {-1, 6}) * 2.f, {1}), reshape(tanh(a[0]), {-1}),
                 softmax(reshape(a[1], {3, -1})), cumsum(reshape(a[0], {-1}), 0)};
       }},
      {"reshapes that split",
       {{-1, 6}},
       [](const Tensors& a) -> Tensors {
         const Tensor pairs = reshape(a[0], {-1, 2, 6});
         return {sum(pairs, {1}), transpose(pairs, {1, 0, 2}) * 0.5f, max(reshape(a[0], {-1, 12}), {0})};
       },
       {},
       2},
      {"slices",
       {{-1, 6}, {4, -1}},
       [](const Tensors& a) -> Tensors {
         return {slice(a[0], 0, {1, -1}) + slice(a[0], 0, {2}),
                 slice(a[0], 0, {-5}) * 2.f,
                 sum(slice(a[1], 1, {0, -3}), {1}),
                 slice(a[0], 0, {.step = 3}),
                 flip(a[1], {1}) * 3.f,
                 exp(slice(a[0], 0, {0, 40}))};
       }},
      {"pads and sums so far",
       {{-1, 6}, {4, -1}},
       [](const Tensors& a) -> Tensors {
         return {pad(a[0], 0, 2, 3, 0.5), cumsum(a[0], 0), cumsum(a[1], 1), cumsum(pad(a[1], 1, 1, 0), 0),
                 softmax(pad(a[1], 1, 0, 7, -2.0))};
       }},
      {"places of the largest",
       {{-1, 6}, {4, -1}},
       [](const Tensors& a) -> Tensors {
         return {argmax(a[0], 0), argmin(a[0], 1), argmax(a[1], 1), max(a[1], {1}), min(a[0], {0})};
       }},
      {"rows by index",
       {{-1, 8}, {-2}},
       [](const Tensors& a) -> Tensors {
         const Tensor picked = embedding(a[0], a[1]);
         return {picked, sum(picked * picked, {0}), cast(one_hot(a[1], 5), DType::f32)};
       },
       {1}},
      {"cross entropy with gradient",
       {{-1, 8}, {8, 16}, {-1}},
       [](const Tensors& a) -> Tensors {
         const auto loss = [labels = a[2]](const Tensor& x, const Tensor& w) {
           return cross_entropy(matmul(x, w), labels);
         };
         return tensors_of(value_and_grad<0, 1>(loss)(a[0], a[1]));
       },
       {2}},
      {"a table's gradient",
       {{16, 8}, {-1}},
       [](const Tensors& a) -> Tensors {
         const auto loss = [index = a[1]](const Tensor& x) { return mean(tanh(embedding(x, index))); };
         return tensors_of(value_and_grad(loss)(a[0]));
       },
       {1}},
      {"means and variances",
       {{-1, 6}, {4, -1}, {-1, -2}},
       [](const Tensors& a) -> Tensors {
         return {a[0] - mean(a[0], {0}), var(a[1], {1}, 1), mean(a[2]),
                 var(a[0], {0}),         mean(a[2], {0}),   prod(a[1] * 0.1f + 1.f, {1})};
       }},
      {"products of two lengths",
       {{-1, 12}, {12, -2}},
       [](const Tensors& a) -> Tensors {
         const Tensor y = matmul(a[0], a[1]);
         return {y, softmax(transpose(y, {1, 0})), sum(y, {0}), reshape(y, {-1}) * 2.f};
       }},
      {"products along both lengths",
       {{-1, -2}, {-2, -1}},
       [](const Tensors& a) -> Tensors {
         return {matmul(a[0], a[1]), matmul(a[1], a[0]) * 0.1f, a[0] + transpose(a[1], {1, 0})};
       }},
      {"batches",
       {{-1, 3, 5}, {-1, 5, 4}},
       [](const Tensors& a) -> Tensors {
         return {einsum("bij,bjk->bik", a[0], a[1]), einsum("bij,bjk->ik", a[0], a[1])};
       }},
      {"outer sums",
       {{-1, 1}, {1, -2}},
       [](const Tensors& a) -> Tensors {
         const Tensor y = where(a[0] > a[1], a[0], a[1] * 2.f);
         return {y, sum(y, {0}), sum(y, {1}), mean(y)};
       }},
  };
}

// A chain of operations on x (n, 6) and y (m, 6) that a seed draws.
Tensors drawn(unsigned seed, const Tensors& a) {
  std::mt19937 random(seed);
  const auto any = [&](unsigned below) { return random() % below; };
  Tensor x = a[0], y = a[1];
  const Tensor &square = a[2], &row = a[3];
  const std::vector<std::function<void()>> ways = {
      [&] { x = tanh(x) * 2.f; },
      [&] { x = x + row; },
      [&] { x = matmul(x, square) * 0.3f; },
      [&] { x = softmax(x); },
      [&] { x = softmax(x, 0); },
      [&] { x = concat({x, y}, 0); },
      [&] { x = slice(x, 0, {1, -1}); },
      [&] { x = pad(x, 0, 2, 1, 0.5); },
      [&] { x = x - mean(x, {0}); },
      [&] { x = layer_norm(x, row, {}); },
      [&] { x = cumsum(x, 0) * 0.1f; },
      [&] { x = flip(x, {0}); },
      [&] { x = reshape(transpose(x, {1, 0}), {-1, 6}); },
      [&] { x = reshape(reshape(x, {-1, 2, 3}) * 1.5f, {-1, 6}); },
      [&] { x = matmul(softmax(matmul(x, transpose(y, {1, 0})) * 0.2f), y); },
      [&] { y = where(y > 0.f, y, y * 0.1f); },
      [&] { x = matmul(x, matmul(transpose(y, {1, 0}), y)) * 0.01f; },
      [&] { x = slice(x, 0, {.step = 2}); },
  };
  Tensors out;
  for (unsigned i = 0, count = 2 + any(5); i < count; ++i) {
    ways[any(static_cast<unsigned>(ways.size()))]();
    if (any(4) == 0) out.push_back(any(2) == 0 ? sum(x, {0}) : max(x, {1}));
  }
  out.push_back(x);
  return out;
}

Program program_of(unsigned seed) {
  const std::vector<Program> named = programs();
  const std::size_t which = seed % (2 * named.size());
  if (which < named.size()) return named[which];
  return {"drawn", {{-1, 6}, {-2, 6}, {6, 6}, {6}}, [seed](const Tensors& a) -> Tensors {
            return drawn(seed, a);
          }};
}

struct Counts {
  int programs = 0, ranged = 0, sizes = 0, served = 0, plans = 0, alone = 0;
};

// What one seed says; `device` is a name.
void check_seed(unsigned seed, const char* device, int sizes, int alone, Counts& counts) {
  std::mt19937 random(seed);
  Program program = program_of(seed);
  // Many results have no range together.
  if (random() % 4 != 0)
    program.function = [all = program.function, which = random()](const Tensors& a) -> Tensors {
      const Tensors results = all(a);
      return {results[which % results.size()]};
    };
  Context ctx{{.device = device, .cache_directory = test::kernel_folder()}};
  detail::DeviceState& state = ctx.state()->device(device);
  const auto size_from = [&](Index least, Index most) {
    return (least + static_cast<Index>(random() % static_cast<unsigned>(most - least))) / program.step *
           program.step;
  };
  const auto arguments = [&](Context& in, Index n, Index m) {
    Tensors out;
    for (std::size_t a = 0; a < program.shapes.size(); ++a) {
      std::vector<Index> extents = program.shapes[a].extents();
      for (Index& e : extents) e = e == -1 ? n : e == -2 ? m : e;
      const Shape shape(extents);
      std::mt19937 numbers(static_cast<unsigned>(a));
      std::vector<float> values(static_cast<std::size_t>(shape.size()));
      std::vector<std::int64_t> integers(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const unsigned drawn_number = numbers();
        values[i] = static_cast<float>(static_cast<double>(drawn_number) / 2147483648.0 - 1);
        integers[i] = drawn_number % 16;
      }
      const bool whole =
          std::find(program.integers.begin(), program.integers.end(), a) != program.integers.end();
      out.push_back(whole ? in.from(integers, shape) : in.from(values, shape));
    }
    return out;
  };
  CompileOptions options;
  for (std::size_t a = 0; a < program.shapes.size(); ++a)
    for (int axis = 0; axis < program.shapes[a].rank(); ++axis)
      if (program.shapes[a][axis] < 0) options.dynamic.push_back({static_cast<int>(a), axis});

  const auto compiled = compile(program.function, options);
  const Index largest = std::string(device) == "cpu" && random() % 4 == 0 ? 900 : 260;
  const Index n0 = size_from(24, largest), m0 = random() % 3 == 0 ? n0 : size_from(24, largest);
  const auto is_ranged = [&] {
    return compiled.report().front().dynamic.find("; n0 from ") != std::string::npos;
  };
  const Index m_step = random() % 4 == 0 ? 0 : 1;
  for (int i = 0; i == 0 || (i < 4 && !is_ranged()); ++i)
    compiled(arguments(ctx, n0 + i * program.step, m0 + i * m_step));
  ++counts.programs;
  counts.ranged += is_ranged();
  if (std::getenv("TILEWRIGHT_RANGE_SECONDS"))
    fmt::print("{}, seed {}, {} and {}: {}\n", program.name, seed, n0, m0, compiled.report().front().dynamic);
  for (int i = 0; i < sizes; ++i) {
    const bool near = random() % 2 == 0;  // remainders beside others
    const Index n = near ? size_from(n0, n0 + 40) : size_from(std::max<Index>(n0 / 4, 2), 4 * n0);
    const Index m = n0 == m0 ? n
                    : near   ? size_from(m0, m0 + 40)
                             : size_from(std::max<Index>(m0 / 4, 2), 4 * m0);
    const std::string where = fmt::format("{}, seed {} on {}, opened at {} and {}, at {} and {}",
                                          program.name, seed, device, n0, m0, n, m);
    const Tensors args = arguments(ctx, n, m);
    const std::size_t before = state.lowerings;
    const Tensors got = compiled(args);
    const bool served = state.lowerings == before;
    ++counts.sizes;
    counts.served += served;
    if (!served) continue;
    const std::string dynamic = compiled.report().front().dynamic;
    const detail::CompiledCall here = compiled.prepare(args);
    const auto lowered = compile(program.function, options);
    const detail::CompiledCall there = lowered.prepare(args);
    const tile::Plan &by_formulas = here.graph->compiled.plan, &fresh = there.graph->compiled.plan;
    const bool same_kernels = by_formulas.kernels == fresh.kernels;
    counts.plans += same_kernels;
    if (same_kernels) {
      ASSERT_TRUE(by_formulas.buffers == fresh.buffers) << where << ": " << dynamic;
      ASSERT_TRUE(by_formulas.steps == fresh.steps) << where << ": " << dynamic;
      ASSERT_EQ(by_formulas.arena_bytes, fresh.arena_bytes) << where << ": " << dynamic;
      ASSERT_EQ(here.graph->executable->plan().steps, fresh.steps) << where << ": " << dynamic;
    }
    const auto compare = [&](const Tensors& want, double bound) {
      ASSERT_EQ(got.size(), want.size()) << where;
      for (std::size_t o = 0; o < got.size(); ++o) {
        ASSERT_EQ(got[o].shape(), want[o].shape()) << where << ": " << dynamic;
        const std::vector<float> x = got[o].to_vector<float>(), y = want[o].to_vector<float>();
        float most = 1;
        for (const float v : y) most = std::max(most, std::fabs(v));
        for (std::size_t k = 0; k < x.size(); ++k)
          ASSERT_LE(std::fabs(x[k] - y[k]), bound * most)
              << where << ", result " << o << ", element " << k << ": " << dynamic;
      }
    };
    compare(lowered(args), same_kernels ? 0 : 1e-4);
    if (i >= alone) continue;
    Context other{{.device = device, .cache_directory = test::kernel_folder()}};
    compare(compile(program.function)(arguments(other, n, m)), 1e-4);
    ++counts.alone;
  }
}

class RangeProperty : public ::testing::TestWithParam<const char*> {};

TEST_P(RangeProperty, NumbersByFormulasAreThoseOfALowering) {
  const char *seeds = std::getenv("TILEWRIGHT_RANGE_SEEDS"),
             *seconds = std::getenv("TILEWRIGHT_RANGE_SECONDS");
  const unsigned first = seeds ? static_cast<unsigned>(std::stoul(seeds)) : 0;
  const bool on_reference = std::string(GetParam()) == "reference";
  const auto start = std::chrono::steady_clock::now();
  Counts counts;
  const unsigned few = first + 4 * static_cast<unsigned>(test::draws(on_reference ? 9 : 4));
  for (unsigned seed = first;; seed += seconds ? 1 : 4) {
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (seconds ? passed > std::stod(seconds) : seed >= few) break;
    check_seed(seed, GetParam(), seconds ? 20 : 4, on_reference ? 20 : seconds ? 2 : 0, counts);
    if (HasFatalFailure()) {
      if (!seconds) return;
      fmt::print("seed {} fails\n", seed);
    }
    if (seconds)
      fmt::print("seed {}: {} programs, {} with ranges; {} sizes, {} served, {} plans the same, {} alone\n",
                 seed, counts.programs, counts.ranged, counts.sizes, counts.served, counts.plans,
                 counts.alone);
    std::fflush(stdout);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, RangeProperty, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright::range_property
