// The GPU's probes: CUDA C++ with the instruction of interest written as assembly, so that no repeat is left
// out and nothing is fused. Blocks fill the device; each goes over a share of its own.
#include "runtime/probe_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::runtime {

namespace {

constexpr int kThreads = 512;
constexpr int kBlocksPerUnit = 4;  // 2048 threads: as many as a multiprocessor holds

// Each step moves 16 bytes a thread, four steps in flight.
constexpr const char* kBandwidth = R"(extern "C" __global__ void __launch_bounds__(512) probe(
    const char* __restrict__ x, char* __restrict__ y, long long share, long long repeats, long long, long long) {{
  x += share * blockIdx.x + threadIdx.x * 16;
  y += share * blockIdx.x + threadIdx.x * 16;
  unsigned a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
  unsigned c0 = 0, c1 = 0, c2 = 0, c3 = 0, d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  unsigned s = 0;
  for (long long r = 0; r < repeats; ++r)
    for (long long i = 0; i < share; i += 4 * 512 * 16) {{
{body}
    }}
  if (s == 0x9e3779b9u) *(unsigned*)y = s;
}}
)";

std::string four(const char* statement) {
  std::string text;
  for (int i = 0; i < 4; ++i)
    text += "      " +
            fmt::format(fmt::runtime(statement), fmt::arg("v", "abcd"[i]), fmt::arg("at", i * 512 * 16)) +
            "\n";
  return text;
}

// Loads that bypass L1 (.cg): a share that is read again must come from L2.
constexpr const char* kLoad =
    R"(asm volatile("ld.global.cg.v4.u32 {{%0, %1, %2, %3}}, [%4];" : "=r"({v}0), "=r"({v}1), "=r"({v}2), "=r"({v}3) : "l"(x + i + {at}));)";
constexpr const char* kUse = "s ^= {v}0 ^ {v}1 ^ {v}2 ^ {v}3;";
constexpr const char* kStore =
    R"(asm volatile("st.global.cg.v4.u32 [%0], {{%1, %2, %3, %4}};" : : "l"(y + i + {at}), "r"({v}0), "r"({v}1), "r"({v}2), "r"({v}3) : "memory");)";

// A block's shared memory: each thread moves 16 bytes a step, neighbours side by side.
constexpr const char* kShared = R"(extern "C" __global__ void __launch_bounds__(512) probe(
    const char* x, char* y, long long, long long repeats, long long, long long) {{
  __shared__ uint4 tile[2048];
  unsigned a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
  unsigned c0 = 0, c1 = 0, c2 = 0, c3 = 0, d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  unsigned s = 0;
  for (int i = 0; i < 4; ++i) tile[i * 512 + threadIdx.x] = make_uint4(0, 0, 0, 0);
  __syncthreads();
  const unsigned at = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x);
  for (long long r = 0; r < repeats; ++r) {{
{body}
  }}
  if (s == 0x9e3779b9u) *(unsigned*)y = s;
}}
)";
constexpr const char* kSharedLoad =
    R"(asm volatile("ld.shared.v4.u32 {{%0, %1, %2, %3}}, [%4];" : "=r"({v}0), "=r"({v}1), "=r"({v}2), "=r"({v}3) : "r"(at + {at}));)";
constexpr const char* kSharedStore =
    R"(asm volatile("st.shared.v4.u32 [%0], {{%1, %2, %3, %4}};" : : "r"(at + {at}), "r"({v}0), "r"({v}1), "r"({v}2), "r"({v}3) : "memory");)";

ProbeKernel moving(const char* frame, const std::string& body) {
  return {.text = fmt::format(fmt::runtime(frame), fmt::arg("body", body)), .threads = kThreads};
}

struct Level {
  std::string prefix;  // "memory.", "level.L2."
  const char* frame;
  std::string load, store;
  Index share_bytes;  // of a block; 0: what lies in its shared memory
  Index blocks;
};

Status measure_level(ProbeBench& bench, const Level& level, const ProbeReport& report) {
  const Index blocks = level.blocks;
  const bool shared = level.share_bytes == 0;
  constexpr double kSharedStep = 4.0 * kThreads * 16;
  struct Kind {
    const char* name;
    std::string body;
    int views;
  };
  for (const Kind& kind : {Kind{"read", level.load + four(kUse), 1}, Kind{"write", level.store, 1},
                           Kind{"copy", level.load + level.store, 2}}) {
    if (Status s = bench.next(level.prefix + kind.name); !s) return s;
    auto program = bench.load(moving(level.frame, kind.body));
    if (!program) return program.error();
    constexpr Index kStep = Index{4} * kThreads * 16;
    const Index share = shared ? 0 : std::max(kStep, level.share_bytes / kind.views / kStep * kStep);
    const double bytes = shared ? kSharedStep * kind.views : static_cast<double>(share * kind.views);
    const auto rate = bench.best_rate(
        **program, {.programs = blocks, .share_bytes = share, .amount = bytes * static_cast<double>(blocks)});
    if (!rate) return rate.error();
    report.add(level.prefix + kind.name + "_bytes_per_s", *rate);
  }
  return Unit{};
}

// Eight chains of a multiply-add in each thread. `type` is that of a register, `constraint` its letter.
struct Fma {
  const char *what, *instruction, *type, *constraint;
  int operations;  // of one instruction in one thread
};
constexpr Fma kFmas[] = {{"vector.f32", "fma.rn.f32", "float", "f", 2},
                         {"vector.f64", "fma.rn.f64", "double", "d", 2},
                         {"vector.f16", "fma.rn.f16x2", "unsigned", "r", 4},
                         {"vector.bf16", "fma.rn.bf16x2", "unsigned", "r", 4}};
constexpr int kChains = 8, kUnroll = 16;

ProbeKernel fma_kernel(const Fma& fma) {
  std::string steps;
  for (int c = 0; c < kChains; ++c)
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
              fma.type, kChains, kUnroll, steps),
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
                   double(kChains) * kUnroll * f.operations * kThreads});
  for (std::size_t i = 0; i < std::size(kMmas); ++i) {
    const Mma& m = kMmas[i];
    all.push_back({m.what, "mma.sync", mma_kernel(m), kBlocksPerUnit,
                   double(kTiles) * kUnroll * m.operations * kThreads / 32});
    const Wgmma& w = kWgmmas[i];
    all.push_back(
        {w.what, "wgmma", wgmma_kernel(w), 1, 2.0 * 64 * 256 * w.k * kGroupSteps * (kGroupThreads / 128)});
  }
  return all;
}

Status measure_math(ProbeBench& bench, const ProbeReport& report) {
  const std::vector<MathProbe> all = math_probes();
  for (std::size_t i = 0; i < all.size();) {
    const std::string what = all[i].what;
    double best = 0;
    ProbeReport by = report;
    for (; i < all.size() && all[i].what == what; ++i) {
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
    else
      report.leave_out(what, "the device has no such instruction");
  }
  return Unit{};
}

Status measure_launches(ProbeBench& bench, const ProbeReport& report) {
  constexpr int kLaunches = 200;
  if (Status s = bench.next("launch"); !s) return s;
  auto program = bench.load({.text = "extern \"C\" __global__ void probe(const char*, char*, long long, long "
                                     "long, long long, long long) {}\n",
                             .threads = 32});
  if (!program) return program.error();
  backends::RecordedLaunch one{
      .program = program->get(), .views = {nullptr, nullptr}, .scalars = {0, 0, 0, 0}};
  const backends::LaunchArgs args{one.views.data(), one.scalars.data(), {1, 1, 1}};
  const auto launch_all = [&]() -> Status {
    for (int i = 0; i < kLaunches; ++i)
      if (Status s = (*program)->launch(args); !s) return s;
    return Unit{};
  };
  const auto each = bench.launch_seconds(launch_all, kLaunches);
  if (!each) return each.error();
  report.add("launch_s", *each);
  if (Status s = bench.next("graph launch"); !s) return s;
  auto graph = bench.backend().record(std::vector<backends::RecordedLaunch>(kLaunches, one));
  if (!graph) return graph.error();
  if (!*graph) return Unit{};
  const auto in_graph = bench.launch_seconds([&] { return (*graph)->run(); }, kLaunches);
  if (!in_graph) return in_graph.error();
  report.add("graph_launch_s", *in_graph);
  return bench.backend().synchronize();
}

}  // namespace

std::vector<ProbeKernel> cuda_probe_kernels() {
  std::vector<ProbeKernel> all;
  for (const std::string& body : {four(kLoad) + four(kUse), four(kStore), four(kLoad) + four(kStore)})
    all.push_back(moving(kBandwidth, body));
  for (const std::string& body :
       {four(kSharedLoad) + four(kUse), four(kSharedStore), four(kSharedLoad) + four(kSharedStore)})
    all.push_back(moving(kShared, body));
  for (MathProbe& each : math_probes()) all.push_back(std::move(each.kernel));
  return all;
}

Status probe_cuda(ProbeBench& bench, const ProbeReport& report) {
  const std::vector<backends::DeviceFact> facts = bench.backend().facts();
  const Index blocks = Index{kBlocksPerUnit} * bench.target().units;
  const double l2 = backends::fact_value(facts, "l2_bytes");
  const double shared = backends::fact_value(facts, "shared_bytes_per_multiprocessor");
  auto& measurements = report.out.ceilings.measurements;
  const auto level = [&](const char* name, double bytes, double instances) {
    measurements.push_back({fmt::format("level.{}.bytes", name), bytes, "the driver"});
    measurements.push_back({fmt::format("level.{}.instances", name), instances, "the driver"});
  };
  level("shared", shared, bench.target().units);
  level("L2", l2, 1);
  // A third of L2: it lies in two halves, and lines may be kept in both. Half of the blocks, so that each
  // has a whole step of it.
  const Index l2_blocks = blocks / 2;
  const Index l2_share = static_cast<Index>(l2 / 3) / l2_blocks, memory_share = (Index{4} << 30) / blocks;
  if (Status s = bench.next("memory for the probes"); !s) return s;
  if (Status s = bench.reserve(std::size_t{4} << 30); !s) return s;
  const Level levels[] = {{"level.shared.", kShared, four(kSharedLoad), four(kSharedStore), 0, blocks},
                          {"level.L2.", kBandwidth, four(kLoad), four(kStore), l2_share, l2_blocks},
                          {"memory.", kBandwidth, four(kLoad), four(kStore), memory_share, blocks}};
  for (const Level& each : levels)
    if (Status s = measure_level(bench, each, report); !s) return s;
  if (Status s = measure_math(bench, report); !s) return s;
  return measure_launches(bench, report);
}

}  // namespace tilewright::runtime
