// soak: a process that calls for long, with other values and other shapes each time, needs no more memory at
// the end than after its caches filled. `soak --calls 100000 --shapes 1000` is the long form; CI runs a short
// one. Exits with 1 and says how much was added where the resident memory of the last half grew.
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>

#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>

namespace tilewright {
namespace {

double resident_mb() {
  malloc_trim(0);  // what the allocator keeps for later is no growth
  std::ifstream statm("/proc/self/statm");
  double pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

// Calls `body` with 0, 1, … and compares the memory in the middle with that at the end.
bool stays_flat(const char* what, int count, double allowed_mb, const std::function<void(int)>& body) {
  const auto start = std::chrono::steady_clock::now();
  const double first = resident_mb();
  double middle = first, largest = first;
  for (int i = 0; i < count; ++i) {
    body(i);
    if (i == count / 2) middle = resident_mb();
    if (i % (count / 20 + 1) == 0) largest = std::max(largest, resident_mb());
  }
  const double last = resident_mb();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const bool flat = last - middle <= allowed_mb;
  fmt::print(
      "{}: {} calls in {:.1f} s; resident MB: {:.1f} before, {:.1f} in the middle, {:.1f} at the end, {:.1f} "
      "at most{}\n",
      what, count, seconds, first, middle, last, largest, flat ? "" : ": GROWS");
  std::fflush(stdout);
  return flat;
}

int soak(int calls, int shapes) {
  Context ctx({.device = "cpu", .cache_directory = ""});
  const Tensor x = ctx.ones({64});
  // Room for the allocator's fragments; a leak of 100 bytes per call in the long form's second half is 5 MB.
  constexpr double kAllowedMb = 4;
  bool flat = true;
  flat &= stays_flat("eager, changing values", calls, kAllowedMb, [&](int i) {
    const double v = 0.3 + 1e-3 * i;
    (x * v + (v + 1)).to_vector<float>();
    ctx.full({64}, v);
  });
  const auto broken = compile([](const Tensor& t) {
    const double level = sum(t).item();
    return t * level + (level + 3);
  });
  flat &= stays_flat("a host value in a graph break", calls / 10, kAllowedMb,
                     [&](int i) { broken(ctx.full({64}, 0.3 + 1e-3 * i)); });
  flat &= stays_flat("value_and_grad, changing values", calls / 10, kAllowedMb, [&](int i) {
    const double v = 0.3 + 1e-3 * i;
    value_and_grad([&](const Tensor& t) { return sum(exp(t * v)); })(x);
  });
  const auto noise = compile([&](const Tensor& t) { return t + ctx.randn({64}); });
  flat &= stays_flat("random numbers in a compiled function", calls / 10, kAllowedMb, [&](int) { noise(x); });
  // Changing shapes, each compiled. By the middle of the long form as many programs were made as are kept.
  const auto wide = compile([](const Tensor& t) { return softmax(t * 0.37); });
  flat &= stays_flat("compiled, changing shapes", shapes, kAllowedMb * 2,
                     [&](int i) { wide(ctx.empty({3, 16 + i})); });
  const auto sized = compile([](const Tensor& t) { return exp(t) + 1.0; }, {.dynamic = {{0, 0}}});
  flat &= stays_flat("compiled, dynamic sizes", shapes, kAllowedMb * 2,
                     [&](int i) { sized(ctx.empty({100 + i})); });
  return flat ? 0 : 1;
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) {
  int calls = 2000, shapes = 40;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (argv[i] == std::string("--calls"))
      calls = std::atoi(argv[i + 1]);
    else if (argv[i] == std::string("--shapes"))
      shapes = std::atoi(argv[i + 1]);
  }
  return tilewright::soak(calls, shapes);
}
