// bench_matmul [--isa NAME] [--threads N] [--seconds S] DTYPE MxNxK[xBATCH] …: matmul through the whole
// compiler, the median and the fastest of repeated calls. A microbenchmark for whoever changes the kernels;
// the lab measures with confidence intervals and peers.
#include <tilewright/tensor/compile.h>
#include <tilewright/tensor/functions.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>
#include <vector>

using namespace tilewright;

namespace {

struct Size {
  Index m = 1, n = 1, k = 1, batch = 1;
};

Size parse_size(const std::string& text) {
  std::stringstream in(text);
  std::vector<Index> parts;
  for (std::string part; std::getline(in, part, 'x');) parts.push_back(std::stoll(part));
  parts.resize(std::max<std::size_t>(parts.size(), 4), 1);
  return {parts[0], parts[1], parts[2], parts[3]};
}

Tensor random(Context& context, const Shape& shape, DType dtype) {
  return is_float(dtype) ? cast(context.randn(shape), dtype) : context.randint(shape, 100, dtype);
}

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void measure(Context& context, DType dtype, const Size& s, double seconds) {
  const Tensor a = random(context, {s.batch, s.m, s.k}, dtype),
               b = random(context, {s.batch, s.k, s.n}, dtype);
  const auto multiply = compile([](const Tensor& x, const Tensor& y) { return matmul(x, y); });
  multiply(a, b);
  std::vector<double> us;
  for (const double end = now_us() + 1e6 * seconds; now_us() < end || us.size() < 3;) {
    const double start = now_us();
    multiply(a, b);
    us.push_back(now_us() - start);
  }
  std::sort(us.begin(), us.end());
  const double flops = 2.0 * static_cast<double>(s.batch * s.m) * static_cast<double>(s.n * s.k);
  const double bytes = static_cast<double>(size_bytes(dtype)) *
                       static_cast<double>(s.batch * (s.m * s.k + s.k * s.n + s.m * s.n));
  const double median = us[us.size() / 2];
  fmt::print("{} {}x{}x{} x{}: {:.1f} us (best {:.1f}), {:.1f} GFLOP/s (best {:.1f}), {:.1f} GB/s\n",
             name(dtype), s.m, s.n, s.k, s.batch, median, us[0], flops / median / 1e3, flops / us[0] / 1e3,
             bytes / median / 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  ContextOptions options{.cache_directory = ""};
  double seconds = 1;
  std::vector<std::string> rest;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--isa" && i + 1 < argc)
      options.isa = argv[++i];
    else if (arg == "--threads" && i + 1 < argc)
      options.threads = std::stoi(argv[++i]);
    else if (arg == "--seconds" && i + 1 < argc)
      seconds = std::stod(argv[++i]);
    else
      rest.push_back(arg);
  }
  Context context(options);
  DType dtype = DType::f32;
  for (const std::string& arg : rest)
    if (const auto parsed = parse_dtype(arg))
      dtype = *parsed;
    else
      measure(context, dtype, parse_size(arg), seconds);
}
