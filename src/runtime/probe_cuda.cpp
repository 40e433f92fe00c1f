// The GPU's probes: CUDA C++ with the instruction of interest written as assembly, so that no repeat is left
// out and nothing is fused. Blocks fill the device; each goes over a share of its own.
#include "runtime/probe_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::runtime {

namespace {

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

// One 16-byte access for each of 128 threads, stores past the caches: the fastest way of a pointwise kernel
// over memory, where blocks start and end at different times.
constexpr int kShortBlock = 128;
constexpr Index kShortShare = Index{kShortBlock} * 16;
constexpr const char* kShortCopy = R"(extern "C" __global__ void __launch_bounds__(128) probe(
    const char* __restrict__ x, char* __restrict__ y, long long, long long, long long, long long) {
  const long long at = (long long)blockIdx.x * 2048 + threadIdx.x * 16;
  unsigned a0, a1, a2, a3;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3) : "l"(x + at));
  asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" : : "l"(y + at), "r"(a0), "r"(a1), "r"(a2), "r"(a3) : "memory");
}
)";

ProbeKernel moving(const char* frame, const std::string& body) {
  return {.text = fmt::format(fmt::runtime(frame), fmt::arg("body", body)), .threads = kThreads};
}

// Bytes read and written a second by a kernel of short blocks over `bytes` in each view.
Result<double> short_copy_rate(ProbeBench& bench, Index bytes) {
  constexpr int kLaunches = 4;
  auto program = bench.load({.text = kShortCopy, .threads = kShortBlock});
  if (!program) return program.error();
  std::vector<void*> views = bench.views();
  const std::int64_t scalars[4] = {0, 0, 0, 0};
  const backends::LaunchArgs args{views.data(), scalars, {bytes / kShortShare, 1, 1}};
  const auto seconds = bench.launch_seconds(
      [&]() -> Status {
        for (int i = 0; i < kLaunches; ++i)
          if (Status s = (*program)->launch(args); !s) return s;
        return Unit{};
      },
      kLaunches);
  if (!seconds) return seconds.error();
  return 2 * static_cast<double>(bytes) / *seconds;
}

struct CudaLevel {
  std::string prefix;  // "memory.", "level.L2."
  const char* frame;
  std::string load, store;
  Index share_bytes;  // of a block; 0: what lies in its shared memory
  Index blocks;
};

Status measure_cuda_level(ProbeBench& bench, const CudaLevel& level, const ProbeReport& report) {
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
    const std::string figure = level.prefix + kind.name + "_bytes_per_s";
    if (!bench.wants(figure)) continue;
    if (Status s = bench.next(level.prefix + kind.name); !s) return s;
    auto program = bench.load(moving(level.frame, kind.body));
    if (!program) return program.error();
    constexpr Index kStep = Index{4} * kThreads * 16;
    const Index share = shared ? 0 : std::max(kStep, level.share_bytes / kind.views / kStep * kStep);
    const double bytes = shared ? kSharedStep * kind.views : static_cast<double>(share * kind.views);
    auto rate = bench.best_rate(
        **program, {.programs = blocks, .share_bytes = share, .amount = bytes * static_cast<double>(blocks)});
    if (!rate) return rate.error();
    if (level.prefix == "memory." && kind.views == 2) {
      const auto short_blocks = short_copy_rate(bench, level.share_bytes / 2 * blocks);
      if (!short_blocks) return short_blocks.error();
      rate = std::max(*rate, *short_blocks);
    }
    report.add(figure, *rate);
  }
  return Unit{};
}

Status measure_launches(ProbeBench& bench, const ProbeReport& report) {
  constexpr int kLaunches = 200;
  if (!bench.wants("launch_s")) return Unit{};
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
  all.push_back({.text = kShortCopy, .threads = kShortBlock});
  all.push_back({.text = kShortCopy, .threads = kShortBlock});
  for (ProbeKernel& each : cuda_math_kernels()) all.push_back(std::move(each));
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
  const CudaLevel levels[] = {{"level.shared.", kShared, four(kSharedLoad), four(kSharedStore), 0, blocks},
                              {"level.L2.", kBandwidth, four(kLoad), four(kStore), l2_share, l2_blocks},
                              {"memory.", kBandwidth, four(kLoad), four(kStore), memory_share, blocks}};
  for (const CudaLevel& each : levels)
    if (Status s = measure_cuda_level(bench, each, report); !s) return s;
  if (Status s = probe_cuda_math(bench, report); !s) return s;
  return measure_launches(bench, report);
}

}  // namespace tilewright::runtime
