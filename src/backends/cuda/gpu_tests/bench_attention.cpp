// See bench_attention.h. Normal random data; medians over rounds of launches timed by device events.
#include "backends/cuda/gpu_tests/bench_attention.h"

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/gpu_tests/bench_tools.h"
#include "support/attention_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

namespace tilewright::cuda {
namespace {

using backends::Backend;
using backends::CopyKind;
using tile::Schedule;
using tile::samples::AttentionKernel;

struct AttentionProblem {
  std::string name;
  AttentionKernel sizes;
  bool copied = false;  // by mma.sync, the threads copy the blocks
};
struct AttentionWay {
  Index block_m = 128, block_n = 128;
  bool splits = true;
  Schedule schedule;
};

AttentionWay way(int threads, Index block_n, const tile::WgmmaB2b& kind) {
  return {.block_m = threads / 2, .block_n = block_n, .schedule = {.threads = threads, .kind = kind}};
}

// Attention as devices without wgmma run it: four warps of 32 rows, or eight of 16.
std::vector<AttentionWay> copied_ways(const AttentionKernel& sizes) {
  struct Tiles {
    int threads;
    Index block_n;
  };
  std::vector<AttentionWay> all;
  for (const Tiles& t : {Tiles{128, 32}, {128, 48}, {128, 64}, {128, 128}, {256, 64}, {256, 128}})
    for (int stages : {1, 2, 3}) {
      if (t.threads == 128 && t.block_n * sizes.depth > Index{64} * 128) continue;  // of registers
      AttentionWay w{.block_n = t.block_n,
                     .schedule = {.threads = t.threads,
                                  .kind = tile::MmaB2b{.stages = stages, .longest_first = sizes.causal}}};
      all.push_back(w);
    }
  return all;
}

// Tiles, places and schedules around the best that were measured.
std::vector<AttentionWay> ways(const AttentionKernel& sizes) {
  struct Tiles {
    int threads;
    Index block_n;
    int stages;
  };
  const std::vector<Tiles> narrow{{384, 128, 2}, {384, 128, 3}, {384, 96, 3}, {384, 160, 2}, {256, 128, 2}},
      wide{{256, 128, 2}, {256, 160, 2}, {256, 192, 2}, {256, 96, 3}};
  std::vector<AttentionWay> all;
  for (const Tiles& t : sizes.depth <= 64 ? narrow : wide)
    for (const tile::Rounds rounds :
         {tile::Rounds::fa3_pingpong, tile::Rounds::overlapped, tile::Rounds::apart})
      all.push_back(
          way(t.threads, t.block_n, {.stages = t.stages, .longest_first = sizes.causal, .rounds = rounds}));
  const auto change_first = [&](const auto& change) {
    all.push_back(all[0]);
    change(std::get<tile::WgmmaB2b>(all.back().schedule.kind));
  };
  change_first([](tile::WgmmaB2b& kind) { kind.store_stages = 2; });
  if (!sizes.causal) return all;
  change_first([](tile::WgmmaB2b& kind) { kind.longest_first = false; });
  all.push_back(all[0]);
  all.back().splits = false;
  return all;
}

class AttentionBench {
 public:
  AttentionBench(Backend& backend, const AttentionProblem& p, std::FILE* out)
      : backend_(backend),
        p_(p),
        out_(out),
        q_(random_matrix(backend, p.sizes.heads * p.sizes.queries * p.sizes.depth, 1)),
        k_(random_matrix(backend, key_heads() * p.sizes.keys * p.sizes.depth, 2)),
        v_(random_matrix(backend, key_heads() * p.sizes.keys * p.sizes.columns, 3)),
        y_(random_matrix(backend, p.sizes.heads * p.sizes.queries * p.sizes.columns, 4)) {}
  ~AttentionBench() {
    for (void* v : {q_.device, k_.device, v_.device, y_.device}) backend_.release(v, 0);
  }

  void run(const AttentionWay& w) {
    AttentionKernel sizes = p_.sizes;
    sizes.block_m = w.block_m, sizes.block_n = w.block_n, sizes.splits = w.splits;
    const tile::Kernel kernel = attention(sizes);
    const std::string what =
        fmt::format("\"problem\":\"{}\",\"blocks\":\"{}x{}{}\",\"schedule\":\"{}\"", p_.name, w.block_m,
                    w.block_n, w.splits ? " split" : "", to_string(w.schedule));
    const auto source = backend_.print(kernel, w.schedule);
    if (!source) return fmt::print(out_, "{{{},\"refused\":\"{}\"}}\n", what, source.error().message);
    const auto binary = backend_.compile(kernel, *source);
    if (!binary) return fmt::print(out_, "{{{},\"refused\":\"does not compile\"}}\n", what);
    const auto program = must_have(backend_.load(kernel, *source, *binary));
    std::vector<void*> views{q_.device, k_.device, v_.device, y_.device};
    backends::LaunchArgs args{.views = views.data()};
    const std::vector<Index> grid = tile::grid_extents(kernel, {});
    std::copy(grid.begin(), grid.end(), args.grid);
    must_have(backend_.fill(y_.device, {0xff}, y_.host.size() * 2));
    must_have(program->launch(args));
    const double error = worst_error();
    const double us = launch_us(backend_, *program, args);
    fmt::print(out_,
               "{{{},\"us\":{:.2f},\"tflops\":{:.1f},\"error\":{:.4f},\"compile_ms\":{:.0f},\"resources\":\"{"
               "}\"}}\n",
               what, us, flops() / us * 1e-6, error, binary->compile_ms, program->describe());
    std::fflush(out_);
  }

 private:
  Index key_heads() const { return p_.sizes.heads / p_.sizes.shared; }
  double flops() const {
    const AttentionKernel& s = p_.sizes;
    const double all = 2.0 * static_cast<double>(s.heads * (s.depth + s.columns)) *
                       static_cast<double>(s.queries) * static_cast<double>(s.keys);
    return s.causal ? all / 2 : all;
  }

  // The worst error of some rows, in units of the largest that a value is likely to have.
  double worst_error() {
    must_have(backend_.copy(y_.host.data(), y_.device, y_.host.size() * 2, CopyKind::device_to_host));
    std::mt19937_64 random(4);
    double worst = 0;
    for (int i = 0; i < 24; ++i) {
      const auto head = static_cast<Index>(random() % static_cast<std::uint64_t>(p_.sizes.heads));
      const auto row = static_cast<Index>(random() % static_cast<std::uint64_t>(p_.sizes.queries));
      const double error = row_error(head, row);
      worst = error >= worst ? error : error != error ? 1e30 : worst;
    }
    return worst;
  }

  double row_error(Index head, Index row) {
    const AttentionKernel& s = p_.sizes;
    const Index seen = s.causal ? row + 1 + s.keys - s.queries : s.keys;
    const auto at = [](const Matrix& m, Index i) { return bf16_value(m.host[static_cast<std::size_t>(i)]); };
    std::vector<double> weights(static_cast<std::size_t>(seen)), sums(static_cast<std::size_t>(s.columns));
    const Index keys = head / s.shared * s.keys, query = (head * s.queries + row) * s.depth;
    double highest = -1e300, total = 0;
    for (Index j = 0; j < seen; ++j) {
      double score = 0;
      for (Index d = 0; d < s.depth; ++d) score += at(q_, query + d) * at(k_, (keys + j) * s.depth + d);
      highest = std::max(
          highest, weights[static_cast<std::size_t>(j)] = score / std::sqrt(static_cast<double>(s.depth)));
    }
    for (Index j = 0; j < seen; ++j) {
      const double weight = std::exp(weights[static_cast<std::size_t>(j)] - highest);
      total += weight;
      for (Index d = 0; d < s.columns; ++d)
        sums[static_cast<std::size_t>(d)] += weight * at(v_, (keys + j) * s.columns + d);
    }
    double worst = 0, size = 0;
    for (double& x : sums) x /= total, size += x * x;
    size = std::sqrt(size / static_cast<double>(s.columns));
    for (Index d = 0; d < s.columns; ++d) {
      const double got = at(y_, (head * s.queries + row) * s.columns + d);
      const double error = std::abs(got - sums[static_cast<std::size_t>(d)]) / size;
      worst = error >= worst ? error : error != error ? 1e30 : worst;
    }
    return worst;
  }

  Backend& backend_;
  const AttentionProblem& p_;
  std::FILE* out_;
  Matrix q_, k_, v_, y_;
};

AttentionKernel square(Index heads, Index length, Index depth) {
  return {.heads = heads, .queries = length, .keys = length, .depth = depth, .columns = depth};
}

AttentionKernel causal(AttentionKernel a) {
  a.causal = a.skips = true;
  return a;
}

}  // namespace

void bench_attention(const std::string& path, const std::string& only) {
  std::FILE* out = std::fopen(path.c_str(), "w");
  if (out == nullptr) throw Error(fmt::format("cannot write {}", path));
  auto backend = must_have(CudaBackend::open({}));
  AttentionKernel grouped = causal(square(64, 8192, 128));
  grouped.shared = 8;
  const AttentionProblem problems[] = {{"d128 causal 16k", causal(square(16, 16384, 128))},
                                       {"d64 causal 16k", causal(square(48, 16384, 64))},
                                       {"d128 full 4k", square(64, 4096, 128)},
                                       {"d64 full 4k", square(64, 4096, 64)},
                                       {"d128 full 16k", square(16, 16384, 128)},
                                       {"d128 causal 8k, 8 heads share", grouped},
                                       {"mma d128 causal 16k", causal(square(16, 16384, 128)), true},
                                       {"mma d64 causal 16k", causal(square(48, 16384, 64)), true},
                                       {"mma d128 full 4k", square(64, 4096, 128), true},
                                       {"mma d64 full 4k", square(64, 4096, 64), true}};
  for (const AttentionProblem& p : problems) {
    if (p.name.find(only) == std::string::npos) continue;
    AttentionBench bench(*backend, p, out);
    for (const AttentionWay& w : p.copied ? copied_ways(p.sizes) : ways(p.sizes)) bench.run(w);
  }
  std::fclose(out);
}

}  // namespace tilewright::cuda
