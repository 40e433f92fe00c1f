// The questions about work in blocks: a tiled matmul and attention.
#include <tilewright/base/error.h>

#include <fmt/format.h>

#include "tw/roofline/roofline_input.h"

namespace tilewright::tw {

void add_tiled(CLI::App& roofline) {
  CLI::App* sub = nullptr;
  auto in = add_workload<perf::TiledMatmul>(
      roofline, "tiled", "[M,K] x [K,N] in tiles of bm x bn; without M, N, K: one step of the inner loop",
      sub);
  perf::TiledMatmul& w = in->work;
  add_extent(sub, "bm", w.bm, "Rows of a tile")->required();
  add_extent(sub, "bn", w.bn, "Columns of a tile")->required();
  auto* m = add_extent(sub, "m", w.m, "Rows of the result");
  auto* n = add_extent(sub, "n", w.n, "Columns of the result");
  auto* k = add_extent(sub, "k", w.k, "Inner extent");
  m->needs(n)->needs(k);
  n->needs(m)->needs(k);
  k->needs(m)->needs(n);
  sub->add_option("--dtype", in->dtype, "Element type of operands and result (default bf16)")
      ->type_name("DTYPE");
  sub->add_option("--math", in->math, "Element type that is multiplied (default: that of --dtype)")
      ->type_name("DTYPE");
  sub->callback([in] {
    perf::TiledMatmul& work = in->work;
    work.operands = work.output = dtype_or(in->dtype, DType::bf16);
    work.math = dtype_or(in->math, work.operands);
    answer({.work = "tiled",
            .describe =
                [&work] {
                  const std::string whole =
                      work.k == 0 ? std::string("one step of the inner loop")
                                  : fmt::format("[{},{}] x [{},{}]", work.m, work.k, work.k, work.n);
                  return fmt::format("{} in {} x {} tiles of {}", whole, work.bm, work.bn,
                                     name(work.operands));
                },
            .extents = {{"bm", &work.bm}, {"bn", &work.bn}, {"m", &work.m}, {"n", &work.n}, {"k", &work.k}},
            .settings = {{"dtype", std::string(name(work.operands))}, {"math", std::string(name(work.math))}},
            .cost = [&work] { return cost(work); },
            .facts =
                [&work](const perf::Hardware&) {
                  return std::vector<Fact>{{"tile_intensity", tile_intensity(work), {}}};
                }},
           in->options);
  });
}

namespace {

struct AttentionWork : perf::Attention {
  std::string traffic_name = "flash";
};

// The level next to the math, whose size one instance of the flash loop has to itself.
double on_chip_bytes_of(const perf::Hardware& hardware) {
  if (!hardware.levels.empty()) return hardware.levels.front().bytes.value;
  throw Error(
      fmt::format("the on-chip memory of {} is not known; give it with --on-chip in bytes", hardware.name));
}

}  // namespace

void add_attention(CLI::App& roofline) {
  CLI::App* sub = nullptr;
  auto in =
      add_workload<AttentionWork>(roofline, "attention", "softmax(Q K^T) V for heads of [N,d], forward", sub);
  AttentionWork& w = in->work;
  add_extent(sub, "n", w.n, "Length of the sequence")->required();
  add_extent(sub, "d", w.d, "Width of a head (default 64)");
  add_extent(sub, "heads", w.heads, "Heads, all sequences together (default 1)");
  sub->add_flag("--causal", w.causal, "Only keys up to the query's position");
  sub->add_option(
         "--traffic", w.traffic_name,
         "standard: S and P go through memory, O(Nd + N^2); flash: they stay on chip, O(N^2 d^2 / M)")
      ->check(CLI::IsMember({"standard", "flash"}));
  sub->add_option("--on-chip", w.on_chip_bytes,
                  "M in bytes (default: the hardware's level nearest to the math)")
      ->check(positive());
  sub->add_option("--dtype", in->dtype, "Element type (default bf16)")->type_name("DTYPE");
  sub->callback([in] {
    AttentionWork& work = in->work;
    work.dtype = dtype_or(in->dtype, work.dtype);
    const bool flash = work.traffic_name == "flash";
    work.traffic = flash ? perf::Attention::Traffic::flash : perf::Attention::Traffic::standard;
    if (flash && work.on_chip_bytes == 0)
      work.on_chip_bytes = on_chip_bytes_of(hardware_argument(in->options.hardware));
    answer({.work = "attention",
            .describe =
                [&work] {
                  return fmt::format("{} heads of {}[{},{}]{}, {} traffic", work.heads, name(work.dtype),
                                     work.n, work.d, work.causal ? ", causal" : "", work.traffic_name);
                },
            .extents = {{"n", &work.n}, {"d", &work.d}, {"heads", &work.heads}},
            .settings = {{"dtype", std::string(name(work.dtype))},
                         {"traffic", work.traffic_name},
                         {"causal", work.causal}},
            .cost = [&work] { return cost(static_cast<const perf::Attention&>(work)); },
            .facts =
                [&work, flash](const perf::Hardware&) {
                  if (!flash) return std::vector<Fact>{};
                  return std::vector<Fact>{{"on_chip_bytes", work.on_chip_bytes, {}},
                                           {"block_rows", static_cast<double>(flash_block_rows(work)), {}}};
                }},
           in->options);
  });
}

}  // namespace tilewright::tw
