// What a new size of a compiled function with dynamic dimensions costs over a call of a size that is known:
// the first two sizes, then the medians of those that follow, each one larger than the last; how many of them
// were lowered and how many kernels built; and what recording, passes, and printing with compiling took. A
// measurement, no test: docs/notes/2026-11-26-a-third-size.md. `dynamic_sizes [device] [sizes]`
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tensor/state.h"

using namespace tilewright;

namespace {

using Tensors = std::vector<Tensor>;
struct Case {
  std::string name;
  Index first;
  std::vector<DynamicDim> dynamic;
  std::function<Tensors(Index)> arguments;
  std::function<Tensors(const Tensors&)> run;
};

std::vector<Case> cases(Context& ctx) {
  const auto of = [&](const Shape& shape) {
    return ctx.from(std::vector<float>(static_cast<std::size_t>(shape.size()), 0.25f), shape);
  };
  // One query over a cache and a new row: (positions, heads, width).
  const auto attend = [](const Tensors& a) -> Tensors {
    const Tensor keys = concat({a[0], a[1]}, 0);
    const Tensor by_head = transpose(keys, {1, 0, 2}), query = transpose(a[2], {1, 0, 2});
    return {keys, matmul(softmax(matmul(query, transpose(by_head, {0, 2, 1})) * 0.125f), by_head)};
  };
  // The same with keys and values apart.
  const auto attend_apart = [](const Tensors& a) -> Tensors {
    const Tensor keys = concat({a[0], a[2]}, 0), values = concat({a[1], a[2]}, 0);
    const Tensor query = transpose(a[3], {1, 0, 2});
    return {
        keys, values,
        matmul(softmax(matmul(query, transpose(keys, {1, 2, 0})) * 0.125f), transpose(values, {1, 0, 2}))};
  };
  const auto mlp = [](const Tensors& a) -> Tensors {
    const Tensor hidden = gelu(matmul(layer_norm(a[0], a[1], a[2]), a[3]) + a[4]);
    return {a[0] + matmul(hidden, a[5])};
  };
  const Tensors weights = {of({64}), of({64}), of({64, 256}), of({256}), of({256, 64})};
  return {
      {"concat of a cache",
       600,
       {{0, 0}},
       [=](Index n) { return Tensors{of({n, 4, 64}), of({1, 4, 64})}; },
       [](const Tensors& a) -> Tensors { return {concat({a[0], a[1]}, 0)}; }},
      {"cache, one query",
       600,
       {{0, 0}},
       [=](Index n) { return Tensors{of({n, 4, 64}), of({1, 4, 64}), of({1, 4, 64})}; },
       attend},
      {"keys and values, one query",
       600,
       {{0, 0}, {1, 0}},
       [=](Index n) { return Tensors{of({n, 4, 64}), of({n, 4, 64}), of({1, 4, 64}), of({1, 4, 64})}; },
       attend_apart},
      // (heads, positions, width)
      {"cache by heads, one query",
       600,
       {{0, 1}},
       [=](Index n) { return Tensors{of({4, n, 64}), of({4, 1, 64}), of({4, 1, 64})}; },
       [](const Tensors& a) -> Tensors {
         const Tensor keys = concat({a[0], a[1]}, 1);
         return {keys, matmul(softmax(matmul(a[2], transpose(keys, {0, 2, 1})) * 0.125f), keys)};
       }},
      {"cache from 100, one query",
       100,
       {{0, 0}},
       [=](Index n) { return Tensors{of({n, 4, 64}), of({1, 4, 64}), of({1, 4, 64})}; },
       attend},
      {"pointwise and sum of rows",
       100,
       {{0, 0}},
       [=](Index n) { return Tensors{of({n, 64})}; },
       [](const Tensors& a) -> Tensors { return {sum(tanh(a[0] * 2.f + 1.f) * a[0], {1})}; }},
      {"softmax of longer rows",
       100,
       {{0, 1}},
       [=](Index n) { return Tensors{of({16, n})}; },
       [](const Tensors& a) -> Tensors { return {softmax(a[0])}; }},
      {"layer_norm, MLP",
       100,
       {{0, 0}},
       [=](Index n) {
         Tensors a = {of({n, 64})};
         a.insert(a.end(), weights.begin(), weights.end());
         return a;
       },
       mlp},
  };
}

double us_of(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "cpu";
  const int sizes = argc > 2 ? std::stoi(argv[2]) : 60;
  Context ctx{{.device = device, .cache_directory = "", .threads = 1}};
  fmt::print("{:<28}{:>10}{:>10}{:>10}{:>10}{:>8}{:>10}{:>8}{:>10}{:>10}{:>10}\n", "us", "first", "second",
             "later", "again", "over", "lowered", "built", "recorded", "passes", "the rest");
  for (const Case& c : cases(ctx)) {
    const auto compiled = compile(c.run, {.dynamic = c.dynamic});
    const detail::DeviceState& state = ctx.state()->device(device);
    std::vector<double> first, again, over, recorded, passes, rest;
    std::size_t lowered = 0, built = 0;
    for (int i = 0; i < sizes + 2; ++i) {
      // New memory at each call, as a cache that has grown has.
      const auto call_us = [&] {
        const Tensors arguments = c.arguments(c.first + i);
        return us_of([&] {
          compiled(arguments);
          ctx.synchronize();
        });
      };
      const std::size_t lowerings = state.lowerings, builds = state.store.builds();
      first.push_back(call_us());
      const bool fresh = state.lowerings > lowerings;
      std::vector<double> known(5);
      for (double& us : known) us = call_us();
      if (i < 2) continue;
      again.push_back(median(known));
      over.push_back(first.back() - again.back());
      lowered += fresh;
      built += state.store.builds() - builds;
      const CompileTimes times = fresh ? compiled.report().front().times : CompileTimes{};
      recorded.push_back(1e3 * times.trace_ms);
      passes.push_back(1e3 * times.passes_ms);
      rest.push_back(1e3 * (times.print_ms + times.compiler_ms + times.load_ms));
    }
    fmt::print(
        "{:<28}{:>10.0f}{:>10.0f}{:>10.1f}{:>10.1f}{:>8.1f}{:>10}{:>8}{:>10.1f}{:>10.1f}{:>10.1f}\n  {}\n",
        c.name, first[0], first[1], median({first.begin() + 2, first.end()}), median(again), median(over),
        lowered, built, median(recorded), median(passes), median(rest), compiled.report().front().dynamic);
  }
}
