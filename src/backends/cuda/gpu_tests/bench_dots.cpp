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
using tile::Schedule;
using tile::samples::MatmulKernel;

struct DotProblem {
  std::string name;
  Index m, n, k;
  bool b_by_columns = false, bias_gelu = false;
};
struct DotWay {
  Index block_m, block_n, block_k;
  Schedule schedule;
};

DotWay wgmma(Index bm, Index bn, const tile::ScheduleKind& kind) {
  return {bm, bn, 64, {.threads = 256, .kind = kind}};
}

std::vector<DotWay> dot_ways() {
  using tile::WgmmaDot, tile::WgmmaPingpong;
  // Results leave from registers or (store_stages > 0) by the copy engine.
  return {wgmma(128, 256, WgmmaDot{.stages = 4, .group_m = 16}),
          wgmma(128, 256, WgmmaDot{.stages = 4, .group_m = 16, .store_stages = 2}),
          wgmma(128, 256, WgmmaDot{.stages = 4, .group_m = 8, .store_stages = 2}),
          wgmma(128, 256, WgmmaDot{.stages = 3, .group_m = 16, .store_stages = 4}),
          wgmma(128, 192, WgmmaDot{.stages = 5, .group_m = 16}),
          wgmma(128, 192, WgmmaDot{.stages = 4, .group_m = 16, .store_stages = 4}),
          wgmma(128, 192, WgmmaPingpong{.stages = 5, .group_m = 16}),
          wgmma(128, 192, WgmmaPingpong{.stages = 5, .group_m = 8}),
          wgmma(128, 192, WgmmaPingpong{.stages = 4, .group_m = 16, .store_stages = 4}),
          wgmma(128, 192, WgmmaPingpong{.stages = 4, .group_m = 16, .store_stages = 2}),
          wgmma(128, 128, WgmmaPingpong{.stages = 6, .group_m = 16}),
          wgmma(64, 256, WgmmaPingpong{.stages = 5, .group_m = 16})};
}

class DotBench {
 public:
  DotBench(Backend& backend, const DotProblem& p, std::FILE* out)
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
    views_[0] = a_.device, views_[1] = b_.device, views_[2] = c_.device, views_[3] = bias_;
  }
  ~DotBench() {
    for (void* v : {a_.device, b_.device, c_.device, bias_}) backend_.release(v, 0);
  }

  // All ways in turns, so that each sees the clocks that the others see.
  void run(const std::vector<DotWay>& ways) {
    std::vector<Entrant> entrants;
    for (const DotWay& way : ways) enter(way, entrants);
    constexpr int kRounds = 7;
    for (int round = 0; round < kRounds; ++round)
      for (Entrant& e : entrants) e.rounds.push_back(round_us(backend_, *e.program, arguments(e)));
    for (Entrant& e : entrants) {
      std::sort(e.rounds.begin(), e.rounds.end());
      const double us = e.rounds[kRounds / 2];
      fmt::print(
          out_,
          "{{{},\"us\":{:.2f},\"least_us\":{:.2f},\"tflops\":{:.1f},\"error\":{:.4f},\"resources\":\"{}\"}}"
          "\n",
          e.what, us, e.rounds.front(),
          2e-6 * static_cast<double>(p_.m) * static_cast<double>(p_.n) * static_cast<double>(p_.k) / us,
          e.error, e.program->describe());
    }
    std::fflush(out_);
  }

 private:
  struct Entrant {
    std::string what;
    std::unique_ptr<backends::Program> program;
    std::vector<Index> grid;
    double error = 0;
    std::vector<double> rounds;
  };

  backends::LaunchArgs arguments(const Entrant& e) {
    backends::LaunchArgs args{.views = views_};
    std::copy(e.grid.begin(), e.grid.end(), args.grid);
    return args;
  }

  void enter(const DotWay& way, std::vector<Entrant>& entrants) {
    const tile::Kernel kernel = tile::samples::matmul({.m = p_.m,
                                                       .n = p_.n,
                                                       .k = p_.k,
                                                       .block_m = way.block_m,
                                                       .block_n = way.block_n,
                                                       .block_k = way.block_k,
                                                       .b_by_columns = p_.b_by_columns,
                                                       .bias_gelu = p_.bias_gelu});
    Entrant e{.what = fmt::format("\"problem\":\"{}\",\"blocks\":\"{}x{}x{}\",\"schedule\":\"{}\"", p_.name,
                                  way.block_m, way.block_n, way.block_k, to_string(way.schedule)),
              .grid = tile::grid_extents(kernel, {})};
    const auto source = backend_.print(kernel, way.schedule);
    if (!source) return fmt::print(out_, "{{{},\"refused\":\"{}\"}}\n", e.what, source.error().message);
    const auto compiled = backend_.compile(kernel, *source);
    if (!compiled) return fmt::print(out_, "{{{},\"refused\":\"does not compile\"}}\n", e.what);
    e.program = must_have(backend_.load(kernel, *source, *compiled));
    must_have(backend_.fill(c_.device, {0xff}, c_.host.size() * 2));
    must_have(e.program->launch(arguments(e)));
    e.error = worst_error();
    entrants.push_back(std::move(e));
  }

  // The worst error of 2000 elements, against sums in double, in units of the largest.
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
  const DotProblem& p_;
  std::FILE* out_;
  Matrix a_, b_, c_;
  void* bias_ = nullptr;
  void* views_[4] = {};
};

}  // namespace

void bench_dots(const std::string& path, const std::string& only) {
  std::FILE* out = std::fopen(path.c_str(), "w");
  if (out == nullptr) throw Error(fmt::format("cannot write {}", path));
  auto backend = must_have(CudaBackend::open({}));
  const DotProblem problems[] = {{"8192^3", 8192, 8192, 8192},
                                 {"4096^3", 4096, 4096, 4096},
                                 {"8192x3072x768", 8192, 3072, 768},
                                 {"8192x3072x768 bias_gelu", 8192, 3072, 768, false, true},
                                 {"8192^3 bias_gelu", 8192, 8192, 8192, false, true},
                                 {"4096^3 bias_gelu", 4096, 4096, 4096, false, true},
                                 {"8192x768x3072", 8192, 768, 3072},
                                 {"4096^3 bT", 4096, 4096, 4096, true}};
  for (const DotProblem& p : problems) {
    if (p.name.find(only) == std::string::npos) continue;
    DotBench bench(*backend, p, out);
    bench.run(dot_ways());
  }
  std::fclose(out);
}

}  // namespace tilewright::cuda
