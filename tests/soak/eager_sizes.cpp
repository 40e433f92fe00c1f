// What eager operations of new sizes and numbers cost on the host: processor time of the first call at each
// of several sizes, of a call that comes again, and how many kernels were compiled. A measurement, no test:
// docs/notes/2026-11-24-sizes-that-change.md. `eager_sizes [device]`
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "tensor/state.h"

using namespace tilewright;

namespace {

double processor_ms() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e3 * static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_nsec);
}

using Tensors = std::vector<Tensor>;
struct Case {
  std::string name;
  std::function<Tensors(Index)> arguments;
  std::function<Tensor(const Tensors&, Index)> run;
};

std::vector<Case> cases(Context& ctx) {
  const auto of = [&](const Shape& shape) {
    return ctx.from(std::vector<float>(static_cast<std::size_t>(shape.size()), 0.25f), shape);
  };
  const auto none = [](Index) { return Tensors{}; };
  const auto one = [=](Index last) {
    return [=](Index n) { return Tensors{last == 0 ? of({n}) : of({n, last})}; };
  };
  const auto fixed = [=](const Shape& shape) { return [=](Index) { return Tensors{of(shape)}; }; };
  return {
      {"ones({n,16})", none, [&](const Tensors&, Index n) { return ctx.ones({n, 16}); }},
      {"full({n,16}, 0.1n)", none,
       [&](const Tensors&, Index n) { return ctx.full({n, 16}, 0.1 * double(n)); }},
      {"zeros({n})", none, [&](const Tensors&, Index n) { return ctx.zeros({n}); }},
      {"arange(n)", none, [&](const Tensors&, Index n) { return ctx.arange(n); }},
      {"randn({n})", none, [&](const Tensors&, Index n) { return ctx.randn({n}); }},
      {"x + 0.1n, [16]", fixed({16}), [](const Tensors& a, Index n) { return a[0] + 0.1 * double(n); }},
      {"pad by 0.1n, [16]", fixed({16}),
       [](const Tensors& a, Index n) { return pad(a[0], 0, 1, 2, 0.1 * double(n)); }},
      {"elu by 0.1n, [16]", fixed({16}),
       [](const Tensors& a, Index n) { return elu(a[0], 0.1 * double(n)); }},
      {"layer_norm by eps, [4,16]", fixed({4, 16}),
       [](const Tensors& a, Index n) { return layer_norm(a[0], {}, {}, 1e-5 * double(n)); }},
      {"x * x, [n]", one(0), [](const Tensors& a, Index) { return a[0] * a[0]; }},
      {"x * y, [n,48]", [=](Index n) { return Tensors{of({n, 48}), of({n, 48})}; },
       [](const Tensors& a, Index) { return a[0] * a[1]; }},
      {"x + b, [48,n] and [n]", [=](Index n) { return Tensors{of({48, n}), of({n})}; },
       [](const Tensors& a, Index) { return a[0] + a[1]; }},
      {"x[1:], [n,64]", one(64), [](const Tensors& a, Index) { return slice(a[0], 0, {1}); }},
      {"sum(x), [n,64]", one(64), [](const Tensors& a, Index) { return sum(a[0]); }},
      {"sum(x, 1), [n,64]", one(64), [](const Tensors& a, Index) { return sum(a[0], {1}); }},
      {"sum(x, 1), [64,n]", [=](Index n) { return Tensors{of({64, n})}; },
       [](const Tensors& a, Index) { return sum(a[0], {1}); }},
      {"softmax, [n,64]", one(64), [](const Tensors& a, Index) { return softmax(a[0]); }},
      {"softmax, [64,n]", [=](Index n) { return Tensors{of({64, n})}; },
       [](const Tensors& a, Index) { return softmax(a[0]); }},
      {"concat, [n,64] and [1,64]", [=](Index n) { return Tensors{of({n, 64}), of({1, 64})}; },
       [](const Tensors& a, Index) { return concat(a, 0); }},
      {"transpose, [n,64]", one(64), [](const Tensors& a, Index) { return transpose(a[0], {1, 0}); }},
      {"matmul, [n,64] and [64,64]", [=](Index n) { return Tensors{of({n, 64}), of({64, 64})}; },
       [](const Tensors& a, Index) { return matmul(a[0], a[1]); }},
      {"matmul, [64,n] and [n,64]", [=](Index n) { return Tensors{of({64, n}), of({n, 64})}; },
       [](const Tensors& a, Index) { return matmul(a[0], a[1]); }},
  };
}

double fastest_us(int repeats, const std::function<void()>& run) {
  constexpr int kCalls = 100;
  double best = 1e300;
  for (int r = 0; r < repeats; ++r) {
    const double start = processor_ms();
    for (int i = 0; i < kCalls; ++i) run();
    best = std::min(best, 1e3 * (processor_ms() - start) / kCalls);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "cpu";
  Context ctx{{.device = device, .cache_directory = "", .threads = 1}};
  const std::vector<Index> sizes = {100, 101, 104, 120, 150, 151};
  fmt::print("{:<27}", "processor ms at n =");
  for (Index n : sizes) fmt::print("{:>9}", n);
  fmt::print("{:>12}\n", "again, us");
  ctx.ones({3, 3}) + ctx.ones({3, 3});
  for (const Case& c : cases(ctx)) {
    fmt::print("{:<27}", c.name);
    for (Index n : sizes) {
      const Tensors arguments = c.arguments(n);
      const double start = processor_ms();
      c.run(arguments, n);
      ctx.synchronize();
      fmt::print("{:>9.3f}", processor_ms() - start);
    }
    const Tensors arguments = c.arguments(sizes.back());
    fmt::print("{:>12.2f}\n", fastest_us(20, [&] { c.run(arguments, sizes.back()); }));
  }
  const Tensor x = ctx.ones({16});
  fmt::print("x + x, [16], again: {:.3f} us\n", fastest_us(1000, [&] { x + x; }));
}
