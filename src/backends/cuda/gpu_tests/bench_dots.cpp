// See bench_dots.h. Normal random data; medians over rounds of launches timed by device events.
#include "backends/cuda/gpu_tests/bench_dots.h"

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/gpu_tests/bench_tools.h"
#include "support/matmul_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <random>

namespace tilewright::cuda {
namespace {

using backends::Backend;
using backends::CopyKind;
using tile::DotUnit;
using tile::Schedule;
using tile::samples::MatmulKernel;

struct Problem {
  std::string name;
  Index m, n, k;
  bool b_by_columns = false, bias_gelu = false;
};
struct Way {
  Index block_m, block_n, block_k;
  Schedule schedule;
};

Way wgmma(Index bm, Index bn, int threads, int stages, int cluster, int raster) {
  return {bm,
          bn,
          64,
          {.threads = threads,
           .threads_per_row = 4,
           .vector_bytes = 16,
           .cluster = cluster,
           .stages = stages,
           .dot = DotUnit::wgmma,
           .raster = raster}};
}

std::vector<Way> ways() {
  std::vector<Way> all;
  for (int raster : {8, 16}) all.push_back(wgmma(128, 256, 256, 4, 1, raster));
  all.push_back(wgmma(128, 256, 256, 4, 2, 16));
  for (int raster : {12, 16}) all.push_back(wgmma(128, 192, 256, 5, 1, raster));
  all.push_back(wgmma(256, 128, 256, 4, 1, 8));
  all.push_back(wgmma(256, 192, 256, 4, 1, 16));
  all.push_back(wgmma(128, 128, 256, 6, 1, 16));
  all.push_back(wgmma(64, 256, 128, 5, 1, 32));
  all.push_back(wgmma(128, 128, 256, 3, 1, 16));
  all.back().schedule.dot = DotUnit::mma;
  return all;
}

class Bench {
 public:
  Bench(Backend& backend, const Problem& p, std::FILE* out)
      : backend_(backend),
        p_(p),
        out_(out),
        a_(random_matrix(backend, p.m * p.k, 1)),
        b_(random_matrix(backend, p.k * p.n, 2)),
        c_(random_matrix(backend, p.m * p.n, 3)) {
    std::vector<float> bias(static_cast<std::size_t>(p.n));
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i % 7) - 3.f;
    bias_ = must_have(backend.allocate(bias.size() * 4));
    must_have(backend.copy(bias_, bias.data(), bias.size() * 4, CopyKind::host_to_device));
  }
  ~Bench() {
    for (void* v : {a_.device, b_.device, c_.device, bias_}) backend_.release(v, 0);
  }

  void run(const Way& way) {
    const tile::Kernel kernel = tile::samples::matmul({.m = p_.m,
                                                       .n = p_.n,
                                                       .k = p_.k,
                                                       .block_m = way.block_m,
                                                       .block_n = way.block_n,
                                                       .block_k = way.block_k,
                                                       .b_by_columns = p_.b_by_columns,
                                                       .bias_gelu = p_.bias_gelu});
    const std::string what =
        fmt::format("\"problem\":\"{}\",\"blocks\":\"{}x{}x{}\",\"schedule\":\"{}\"", p_.name, way.block_m,
                    way.block_n, way.block_k, to_string(way.schedule));
    const auto source = backend_.print(kernel, way.schedule);
    if (!source) return fmt::print(out_, "{{{},\"refused\":\"{}\"}}\n", what, source.error().message);
    const auto compiled = backend_.compile(kernel, *source);
    if (!compiled) return fmt::print(out_, "{{{},\"refused\":\"does not compile\"}}\n", what);
    const auto& binary = *compiled;
    const auto program = must_have(backend_.load(kernel, *source, binary));
    std::vector<void*> views{a_.device, b_.device, c_.device, bias_};
    backends::LaunchArgs args{.views = views.data()};
    const std::vector<Index> grid = tile::grid_extents(kernel, {});
    std::copy(grid.begin(), grid.end(), args.grid);
    must_have(backend_.fill(c_.device, 0xff, c_.host.size() * 2));
    must_have(program->launch(args));
    const double error = worst_error();
    const double us = launch_us(backend_, *program, args);
    fmt::print(out_, "{{{},\"us\":{:.2f},\"tflops\":{:.1f},\"error\":{:.4f},\"resources\":\"{}\"}}\n", what,
               us,
               2e-6 * static_cast<double>(p_.m) * static_cast<double>(p_.n) * static_cast<double>(p_.k) / us,
               error, program->describe());
    std::fflush(out_);
  }

 private:
  // Of 2000 elements, against sums in double, in units of the largest.
  double worst_error() {
    must_have(backend_.copy(c_.host.data(), c_.device, c_.host.size() * 2, CopyKind::device_to_host));
    std::mt19937_64 random(4);
    double worst = 0;
    for (int i = 0; i < 2000; ++i) {
      const Index row = static_cast<Index>(random() % static_cast<std::uint64_t>(p_.m));
      const Index column = static_cast<Index>(random() % static_cast<std::uint64_t>(p_.n));
      double sum = 0;
      for (Index k = 0; k < p_.k; ++k)
        sum +=
            bf16_value(a_.host[static_cast<std::size_t>(row * p_.k + k)]) *
            bf16_value(
                b_.host[static_cast<std::size_t>(p_.b_by_columns ? column * p_.k + k : k * p_.n + column)]);
      if (p_.bias_gelu) {
        const double x = sum + static_cast<double>(column % 7) - 3;
        sum = 0.5 * x * (1 + std::tanh(std::sqrt(2 * std::numbers::inv_pi) * (x + 0.044715 * x * x * x)));
      }
      const double got = bf16_value(c_.host[static_cast<std::size_t>(row * p_.n + column)]);
      const double error = std::abs(got - sum) / std::sqrt(static_cast<double>(p_.k));
      worst = error >= worst ? error : error != error ? 1e30 : worst;
    }
    return worst;
  }

  Backend& backend_;
  const Problem& p_;
  std::FILE* out_;
  Matrix a_, b_, c_;
  void* bias_ = nullptr;
};

}  // namespace

void bench_dots(const std::string& path, const std::string& only) {
  std::FILE* out = std::fopen(path.c_str(), "w");
  if (out == nullptr) throw Error(fmt::format("cannot write {}", path));
  auto backend = must_have(CudaBackend::open({}));
  const Problem problems[] = {{"8192^3", 8192, 8192, 8192},
                              {"4096^3", 4096, 4096, 4096},
                              {"8192x3072x768", 8192, 3072, 768},
                              {"8192x3072x768 bias_gelu", 8192, 3072, 768, false, true},
                              {"8192^3 bias_gelu", 8192, 8192, 8192, false, true},
                              {"4096^3 bias_gelu", 4096, 4096, 4096, false, true},
                              {"8192x768x3072", 8192, 768, 3072},
                              {"4096^3 bT", 4096, 4096, 4096, true}};
  for (const Problem& p : problems) {
    if (p.name.find(only) == std::string::npos) continue;
    Bench bench(*backend, p, out);
    for (const Way& way : ways()) bench.run(way);
  }
  std::fclose(out);
}

}  // namespace tilewright::cuda
