// The GPU's arithmetic: multiply-adds of each type, and the tensor cores by both of their instructions.
// Written as assembly, so that what is measured is the instruction of that name.
#include "runtime/probe_parts.h"

#include <fmt/format.h>

#include <iterator>

namespace tilewright::runtime {

namespace {

// Eight chains of a multiply-add in each thread. `type` is that of a register, `constraint` its letter.
struct Fma {
  const char *what, *instruction, *type, *constraint;
  int operations;  // of one instruction in one thread
};
constexpr Fma kFmas[] = {{"vector.f32", "fma.rn.f32", "float", "f", 2},
                         {"vector.f64", "fma.rn.f64", "double", "d", 2},
                         {"vector.f16", "fma.rn.f16x2", "unsigned", "r", 4},
                         {"vector.bf16", "fma.rn.bf16x2", "unsigned", "r", 4}};
constexpr int kFmaChains = 8, kUnroll = 16;

ProbeKernel fma_kernel(const Fma& fma) {
  std::string steps;
  for (int c = 0; c < kFmaChains; ++c)
    steps +=
        fmt::format("      asm volatile(\"{} %0, %0, %1, %2;\" : \"+{}\"(s[{}]) : \"{}\"(a), \"{}\"(b));\n",
                    fma.instruction, fma.constraint, c, fma.constraint, fma.constraint);
  return {.text = fmt::format(
              R"(extern "C" __global__ void __launch_bounds__(512) probe(
    const {0}* x, {0}* y, long long, long long repeats, long long, long long) {{
  {0} s[{1}];
  const {0} a = x[threadIdx.x], b = x[512 + threadIdx.x];
#pragma unroll
  for (int c = 0; c < {1}; ++c) s[c] = x[c];
  for (long long r = 0; r < repeats; ++r) {{
#pragma unroll
    for (int u = 0; u < {2}; ++u) {{
{3}    }}
  }}
#pragma unroll
  for (int c = 1; c < {1}; ++c) s[0] += s[c];
  if (s[0] == ({0})12345) y[0] = s[0];
}}
)",
              fma.type, kFmaChains, kUnroll, steps),
          .threads = kThreads};
}

// mma.sync, the warp's own tensor-core instruction: four independent accumulators a warp.
struct Mma {
  const char *what, *instruction;
  int operations;  // 2 m n k of one instruction of a warp
};
constexpr Mma kMmas[] = {
    {"matrix.bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 2 * 16 * 8 * 16},
    {"matrix.f16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 2 * 16 * 8 * 16},
    {"matrix.f8e4m3", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", 2 * 16 * 8 * 32}};
constexpr int kTiles = 8;

ProbeKernel mma_kernel(const Mma& mma) {
  return {.text = fmt::format(
              R"(extern "C" __global__ void __launch_bounds__(512) probe(
    const unsigned* x, float* y, long long, long long repeats, long long, long long) {{
  float c[{1}][4] = {{}};
  const unsigned a0 = x[threadIdx.x], a1 = x[512 + threadIdx.x], a2 = x[1024 + threadIdx.x], a3 = x[1536 + threadIdx.x];
  const unsigned b0 = x[2048 + threadIdx.x], b1 = x[2560 + threadIdx.x];
  for (long long r = 0; r < repeats; ++r) {{
#pragma unroll
    for (int u = 0; u < {2}; ++u)
#pragma unroll
      for (int t = 0; t < {1}; ++t)
        asm volatile("{0} {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
                     : "+f"(c[t][0]), "+f"(c[t][1]), "+f"(c[t][2]), "+f"(c[t][3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }}
  float s = 0;
#pragma unroll
  for (int t = 0; t < {1}; ++t) s += c[t][0] + c[t][1] + c[t][2] + c[t][3];
  if (s == 12345.f) y[0] = s;
}}
)",
              mma.instruction, kTiles, kUnroll),
          .threads = kThreads};
}

// wgmma, Hopper's instruction of four warps: both operands come from shared memory, 128-byte swizzled rows of
// 64 (f8: 128) elements; two groups of warps a block take turns. m64n256k16 (f8: k32) reads 10 KiB in the 128
// cycles that its arithmetic takes, below the 128 bytes a cycle of shared memory.
constexpr int kGroupThreads = 256, kGroupSteps = 16;
struct Wgmma {
  const char *what, *instruction, *tail;  // `tail`: the immediates after scale-d; f8 has no transposition
  int k;
};
constexpr Wgmma kWgmmas[] = {
    {"matrix.bf16", "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", "1, 1, 0, 0", 16},
    {"matrix.f16", "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", "1, 1, 0, 0", 16},
    {"matrix.f8e4m3", "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3", "1, 1", 32}};

ProbeKernel wgmma_kernel(const Wgmma& wgmma) {
  std::string registers, outputs;
  for (int i = 0; i < 128; ++i) {
    registers += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
    outputs += fmt::format("{}\"+f\"(d[{}])", i == 0 ? "" : ", ", i);
  }
  return {.text = fmt::format(
              R"(__device__ __forceinline__ unsigned long long descriptor(const void* tile) {{
  const unsigned long long at = (unsigned)__cvta_generic_to_shared(tile);
  return ((at & 0x3ffff) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
}}
extern "C" __global__ void __launch_bounds__(256) probe(
    const unsigned* x, float* y, long long, long long repeats, long long, long long) {{
  __shared__ alignas(1024) unsigned a[64 * 32], b[256 * 32];
  for (int i = threadIdx.x; i < 64 * 32; i += 256) a[i] = x[i];
  for (int i = threadIdx.x; i < 256 * 32; i += 256) b[i] = x[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const unsigned long long a0 = descriptor(a), b0 = descriptor(b);
  float d[128];
#pragma unroll
  for (int i = 0; i < 128; ++i) d[i] = 0;
  for (long long r = 0; r < repeats; ++r) {{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int s = 0; s < {4}; ++s) {{
      const unsigned long long k = (s & 3) * 2;
      asm volatile("{{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
                   "{0} {{{1}}}, %128, %129, p, {2};\n}}"
                   : {3}
                   : "l"(a0 + k), "l"(b0 + k), "r"(1));
    }}
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }}
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 128; ++i) sum += d[i];
  if (sum == 12345.f) y[0] = sum;
}}
)",
              wgmma.instruction, registers, wgmma.tail, outputs, kGroupSteps),
          .threads = kGroupThreads};
}

// One way to reach a rate. A figure may have several: the fastest counts.
struct MathProbe {
  std::string what, by;
  ProbeKernel kernel;
  int blocks_per_unit;
  double operations;  // of one repeat of a block
};

std::vector<MathProbe> math_probes() {
  std::vector<MathProbe> all;
  for (const Fma& f : kFmas)
    all.push_back({f.what, f.instruction, fma_kernel(f), kBlocksPerUnit,
                   double(kFmaChains) * kUnroll * f.operations * kThreads});
  for (std::size_t i = 0; i < std::size(kMmas); ++i) {
    const Mma& m = kMmas[i];
    all.push_back({m.what, "mma.sync", mma_kernel(m), kBlocksPerUnit,
                   double(kTiles) * kUnroll * m.operations * kThreads / 32});
    const Wgmma& w = kWgmmas[i];
    all.push_back(
        {w.what, "wgmma", wgmma_kernel(w), 1, 2.0 * 64 * 256 * w.k * kGroupSteps * kGroupThreads / 128});
  }
  return all;
}

}  // namespace

std::vector<ProbeKernel> cuda_math_kernels() {
  std::vector<ProbeKernel> all;
  for (MathProbe& each : math_probes()) all.push_back(std::move(each.kernel));
  return all;
}

Status probe_cuda_math(ProbeBench& bench, const ProbeReport& report) {
  const std::vector<MathProbe> all = math_probes();
  for (std::size_t i = 0; i < all.size();) {
    const std::string what = all[i].what;
    double best = 0;
    ProbeReport by = report;
    const bool wanted = bench.wants(what);
    for (; i < all.size() && all[i].what == what; ++i) {
      if (!wanted) continue;
      if (Status s = bench.next(what + ", " + all[i].by); !s) return s;
      auto program = bench.load(all[i].kernel);
      if (!program) {
        // The compiler refuses an instruction that the architecture does not have.
        if (program.error().kind != Failure::Kind::compile) return program.error();
        continue;
      }
      const Index blocks = Index{all[i].blocks_per_unit} * bench.target().units;
      const auto rate = bench.best_rate(
          **program,
          {.programs = blocks, .share_bytes = 0, .amount = all[i].operations * static_cast<double>(blocks)});
      if (!rate) return rate.error();
      if (*rate > best) {
        best = *rate;
        by.how = report.how + ", " + all[i].by;
      }
    }
    if (best > 0)
      by.add(what, best);
    else if (wanted)
      report.leave_out(what, "the device has no such instruction");
  }
  return Unit{};
}

}  // namespace tilewright::runtime
