// The CPU's probes: C++ with vector extensions. Each program is one thread's share; it goes over that share
// `repeats` times, so that a cache level is measured from within one launch.
#include "runtime/probe_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::runtime {

namespace {

// Eight vectors a step: enough loads in flight, and independent chains for what is combined. They lie side by
// side, or two by two in four streams, which some memory prefetchers follow faster. The empty assembly makes
// the compiler forget what it knows of the memory, so that no repeat is left out.
constexpr const char* kFrame = R"(typedef unsigned long word;
typedef word vec __attribute__((vector_size({bytes})));
extern "C" void probe(void* const* views, const long* scalars, long begin, long end, char*) {{
  const long share = scalars[0], repeats = scalars[1];
  for (long p = begin; p < end; ++p) {{
    char* x = (char*)views[0] + p * share;
    char* y = (char*)views[1] + p * share;
    const vec first = *(const vec*)views[0];
    vec s0 = first, s1 = first, s2 = first, s3 = first, s4 = first, s5 = first, s6 = first, s7 = first;
    for (long r = 0; r < repeats; ++r) {{
      asm volatile("" : "+r"(x), "+r"(y) : : "memory");
      const vec* from = (const vec*)x;
      vec* to = (vec*)y;
      const long part = share / (long)sizeof(vec) / {streams};
      for (long i = 0; i < part; i += 8 / {streams}) {{
        {prefetch}
{body}
      }}
    }}
    const vec s = ((s0 ^ s1) ^ (s2 ^ s3)) ^ ((s4 ^ s5) ^ (s6 ^ s7));
    if (s[0] == 0x9e3779b97f4a7c15ul) *(word*)y = s[1];
  }}
}}
)";

// A way to walk a share. `ahead`: vectors that are prefetched by hand; 0 leaves that to the processor.
struct Walk {
  int streams = 1, ahead = 0;
};

struct Statement {
  const char* text;    // s{0}: the chain; {1}: the place in the share
  bool reads = false;  // what prefetching may help
};
constexpr Statement kRead = {"s{0} ^= from[{1}];", true};
constexpr Statement kWrite = {"to[{1}] = s{0};"};
constexpr Statement kWriteStreaming = {"__builtin_nontemporal_store(s{0}, to + {1});"};
constexpr Statement kCopy = {"to[{1}] = from[{1}];", true};
constexpr Statement kCopyStreaming = {"__builtin_nontemporal_store(from[{1}], to + {1});", true};

ProbeKernel bandwidth_kernel(int vector_bytes, const Statement& statement, const Walk& walk) {
  std::string body, prefetch;
  const int side_by_side = 8 / walk.streams;
  for (int v = 0; v < 8; ++v) {
    const int stream = v / side_by_side, at = v % side_by_side;
    body += "        " +
            fmt::format(fmt::runtime(statement.text), v, fmt::format("{} * part + i + {}", stream, at)) +
            "\n";
    if (walk.ahead > 0 && v * vector_bytes % 64 == 0)
      prefetch += fmt::format("__builtin_prefetch(from + {} * part + i + {});", stream, at + walk.ahead);
  }
  body.pop_back();
  return {.text = fmt::format(kFrame, fmt::arg("bytes", vector_bytes), fmt::arg("body", body),
                              fmt::arg("streams", walk.streams), fmt::arg("prefetch", prefetch))};
}

// Ten chains: two units that take four cycles each need eight.
constexpr int kChains = 10;
constexpr const char* kFma = R"(typedef {type} vec __attribute__((vector_size({bytes})));
{declare}
extern "C" void probe(void* const* views, const long* scalars, long begin, long end, char*) {{
  for (long p = begin; p < end; ++p) {{
    const operand* at = (const operand*)views[0];
    asm volatile("" : "+r"(at) : : "memory");
    const operand a = at[0], b = at[1];
    vec s[{chains}];
    #pragma clang loop unroll(full)
    for (int c = 0; c < {chains}; ++c) s[c] = ((const vec*)at)[4 + c];
    for (long r = 0; r < scalars[1]; ++r) {{
      #pragma clang loop unroll(full)
      for (int c = 0; c < {chains}; ++c) s[c] = {step};
    }}
    vec sum = s[0];
    #pragma clang loop unroll(full)
    for (int c = 1; c < {chains}; ++c) sum += s[c];
    if (sum[0] == ({type})1.2345) *({type}*)views[1] = sum[1];
  }}
}}
)";

ProbeKernel fma_kernel(int vector_bytes, const char* type) {
  const bool baseline = vector_bytes < 32;  // no multiply-add instruction: two instructions, as compiled code
  return {.text = fmt::format(
              kFma, fmt::arg("type", type), fmt::arg("bytes", vector_bytes),
              fmt::arg("declare", "typedef vec operand;"), fmt::arg("chains", kChains),
              fmt::arg("step", baseline ? "s[c] * a + b" : "__builtin_elementwise_fma(s[c], a, b)"))};
}

ProbeKernel bf16_kernel() {
  return {.text = fmt::format(kFma, fmt::arg("type", "float"), fmt::arg("bytes", 64),
                              fmt::arg("declare", "typedef __bf16 operand __attribute__((vector_size(64)));"),
                              fmt::arg("chains", kChains),
                              fmt::arg("step", "__builtin_ia32_dpbf16ps_512(s[c], a, b)"))};
}

ProbeKernel i8_kernel() {
  return {.text = fmt::format(kFma, fmt::arg("type", "int"), fmt::arg("bytes", 64),
                              fmt::arg("declare", "typedef vec operand;"), fmt::arg("chains", kChains),
                              fmt::arg("step", "__builtin_ia32_vpdpbusd512(s[c], a, b)"))};
}

// Ten products of tile registers a repeat, of which each is added to one of six.
constexpr const char* kTileProducts =
    R"(extern "C" void probe(void* const*, const long* scalars, long begin, long end, char*) {{
  struct alignas(64) {{
    unsigned char palette, start, reserved[14];
    unsigned short row_bytes[16];
    unsigned char rows[16];
  }} const shape = {{1, 0, {{}}, {{64, 64, 64, 64, 64, 64, 64, 64}}, {{16, 16, 16, 16, 16, 16, 16, 16}}}};
  __builtin_ia32_tile_loadconfig(&shape);
  for (long p = begin; p < end; ++p)
    for (long r = 0; r < scalars[1]; ++r) {{
{products}    }}
  __builtin_ia32_tilerelease();
}}
)";

ProbeKernel tile_kernel(const char* instruction) {
  std::string products;
  for (int c = 0; c < kChains; ++c) products += fmt::format("      {}({}, 6, 7);\n", instruction, c % 6);
  return {.text = fmt::format(kTileProducts, fmt::arg("products", products))};
}

// Whether code is compiled here for a processor that has the instructions of a compiler's macro.
Result<bool> has_instructions(ProbeBench& bench, std::string_view macro) {
  auto program =
      bench.load({.text = fmt::format(
                      R"(extern "C" void probe(void* const* views, const long*, long, long, char*) {{
#ifdef {}
  *(int*)views[0] = 1;
#endif
}}
)",
                      macro)});
  if (!program) return program.error();
  int has = 0;
  void* const views[2] = {&has, nullptr};
  const std::int64_t scalars[4] = {};
  if (Status s = (*program)->launch({views, scalars, {1, 1, 1}}); !s) return s.error();
  if (Status s = bench.backend().synchronize(); !s) return s.error();
  return has == 1;
}

struct Level {
  std::string name;
  Index share_bytes = 0;  // of a thread: what a read goes over
};

// A level's working set is half of it: the other half of a shared cache is someone else's, and the next
// inner level must not hold it.
std::vector<Level> levels_of(const std::vector<backends::DeviceFact>& facts, int threads,
                             const ProbeReport& report) {
  std::vector<Level> levels;
  double inner = 0, last = 16 << 20;
  const auto share_of = [](double bytes) { return static_cast<Index>(bytes) / 4096 * 4096; };
  for (int level = 1; level <= 3; ++level) {
    const double bytes = backends::fact_value(facts, fmt::format("l{}_bytes", level));
    const double instances = std::max(1.0, backends::fact_value(facts, fmt::format("l{}_instances", level)));
    const double share = bytes * std::min(instances, double(threads)) / threads / 2;
    // A slice of a large L3 that is smaller than an L2 cannot be told from it.
    if (bytes == 0 || share < 1.5 * inner) continue;
    const std::string name = fmt::format("L{}", level);
    auto& measurements = report.out.ceilings.measurements;
    measurements.push_back({"level." + name + ".bytes", bytes, "/sys"});
    measurements.push_back({"level." + name + ".instances", instances, "/sys"});
    levels.push_back({name, share_of(share)});
    inner = share;
    last = std::max(last, bytes * instances);
  }
  const double memory = backends::fact_value(facts, "memory_bytes");
  const double outside = std::clamp(6 * last, 256e6, std::max(256e6, memory / 16));
  levels.push_back({"memory", share_of(outside / threads)});
  return levels;
}

constexpr const char* kKinds[] = {"read", "write", "copy"};

std::string figure_of(const Level& level, const char* kind) {
  return (level.name == "memory" ? "memory." : "level." + level.name + ".") + kind + "_bytes_per_s";
}

Status measure_level(ProbeBench& bench, const Level& level, const ProbeReport& report) {
  const int threads = bench.target().units;
  const int vector_bytes = bench.target().vector_bytes;
  struct Kind {
    const char* name;
    std::vector<Statement> statements;
    int views;  // that share the working set
  };
  const bool memory = level.name == "memory";
  for (const Kind& kind : {Kind{"read", {kRead}, 1}, Kind{"write", {kWrite, kWriteStreaming}, 1},
                           Kind{"copy", {kCopy, kCopyStreaming}, 2}}) {
    const std::string figure = figure_of(level, kind.name);
    if (!bench.wants(figure)) continue;
    if (Status s = bench.next(fmt::format("{} {}", level.name, kind.name)); !s) return s;
    const Index share = level.share_bytes / kind.views / 4096 * 4096;
    const ProbeBench::Work work{.programs = threads,
                                .share_bytes = share,
                                .amount = static_cast<double>(share) * threads * kind.views};
    double best = 0;
    for (const Statement& statement : kind.statements) {
      // A cache needs no help of its prefetchers, and streaming stores leave it.
      if (!memory && statement.text != kind.statements[0].text) continue;
      for (const Walk& walk :
           {Walk{}, Walk{1, 4096 / vector_bytes}, Walk{4, 0}, Walk{4, 2048 / vector_bytes}}) {
        if ((!memory && walk.streams + walk.ahead > 1) || (walk.ahead > 0 && !statement.reads)) continue;
        auto program = bench.load(bandwidth_kernel(vector_bytes, statement, walk));
        if (!program) return program.error();
        const auto rate = bench.best_rate(**program, work);
        if (!rate) return rate.error();
        best = std::max(best, *rate);
      }
    }
    report.add(figure, best);
  }
  return Unit{};
}

Status measure_math(ProbeBench& bench, const ProbeReport& report) {
  const int threads = bench.target().units, bytes = bench.target().vector_bytes;
  struct Instruction {
    ProbeKernel kernel;
    int operations;
    const char* macro =
        nullptr;  // which the compiler defines where there is such an instruction; null: always
  };
  struct Rate {
    const char *unit, *type;
    std::vector<Instruction> instructions;  // the first that there is
  };
  const Instruction bf16_tiles = {tile_kernel("__builtin_ia32_tdpbf16ps"), 2 * 16 * 16 * 32, "__AMX_BF16__"},
                    i8_tiles = {tile_kernel("__builtin_ia32_tdpbssd"), 2 * 16 * 16 * 64, "__AMX_INT8__"},
                    bf16_vectors = {bf16_kernel(), 2 * 32, "__AVX512BF16__"},
                    i8_vectors = {i8_kernel(), 2 * 64, "__AVX512VNNI__"};
  for (const Rate& rate :
       {Rate{"vector", "f32", {{fma_kernel(bytes, "float"), 2 * bytes / 4}}},
        Rate{"vector", "f64", {{fma_kernel(bytes, "double"), 2 * bytes / 8}}},
        Rate{"matrix", "bf16", {bf16_tiles, bf16_vectors}}, Rate{"matrix", "i8", {i8_tiles, i8_vectors}}}) {
    const std::string what = fmt::format("{}.{}", rate.unit, rate.type);
    // A product of f32 or f64 is made of the same multiply-adds.
    const std::string product = fmt::format("matrix.{}", rate.type);
    if (!bench.wants(what) && !bench.wants(product)) continue;
    if (Status s = bench.next(what); !s) return s;
    double best = 0;
    for (const Instruction& instruction : rate.instructions) {
      if (instruction.macro != nullptr) {
        const Result<bool> has = has_instructions(bench, instruction.macro);
        if (!has) return has.error();
        if (!*has) continue;
      }
      auto program = bench.load(instruction.kernel);
      if (!program) return program.error();
      const double flops = double(kChains) * instruction.operations * threads;
      const auto measured =
          bench.best_rate(**program, {.programs = threads, .share_bytes = 0, .amount = flops});
      if (!measured) return measured.error();
      best = *measured;
      break;
    }
    if (best == 0) {
      report.leave_out(what, fmt::format("the processor has no {} dot product", rate.type));
      continue;
    }
    report.add(what, best);
    if (product != what) report.add(product, best);
  }
  // The same ports do both.
  report.out.ceilings.measurements.push_back({"matrix_beside_vector", 0, "the same instructions' ports"});
  return Unit{};
}

Status measure_launch(ProbeBench& bench, const ProbeReport& report) {
  constexpr int kLaunches = 1000;
  if (!bench.wants("launch_s")) return Unit{};
  if (Status s = bench.next("launch"); !s) return s;
  auto program =
      bench.load({.text = "extern \"C\" void probe(void* const*, const long*, long, long, char*) {}\n"});
  if (!program) return program.error();
  const auto launch_all = [&]() -> Status {
    void* const views[2] = {nullptr, nullptr};
    const std::int64_t scalars[4] = {};
    const backends::LaunchArgs args{views, scalars, {bench.target().units, 1, 1}};
    for (int i = 0; i < kLaunches; ++i)
      if (Status s = (*program)->launch(args); !s) return s;
    return Unit{};
  };
  const auto seconds = bench.launch_seconds(launch_all, kLaunches);
  if (!seconds) return seconds.error();
  report.add("launch_s", *seconds);
  return Unit{};
}

}  // namespace

Status probe_cpu(ProbeBench& bench, const ProbeReport& report) {
  const std::vector<Level> levels = levels_of(bench.backend().facts(), bench.target().units, report);
  if (Status s = bench.next("memory for the probes"); !s) return s;
  Index most = 0;
  for (const Level& level : levels)
    if (std::any_of(std::begin(kKinds), std::end(kKinds),
                    [&](const char* kind) { return bench.wants(figure_of(level, kind)); }))
      most = std::max(most, level.share_bytes * bench.target().units);
  if (Status s = bench.reserve(static_cast<std::size_t>(most)); !s) return s;
  for (const Level& level : levels)
    if (Status s = measure_level(bench, level, report); !s) return s;
  if (Status s = measure_math(bench, report); !s) return s;
  return measure_launch(bench, report);
}

}  // namespace tilewright::runtime
