// The text that all wgmma schedules have: the warpgroup that fetches, the ones that multiply, and their
// loops over programs.
#include "backends/cuda/print/pipelines/wgmma.h"

#include <fmt/ranges.h>

namespace tilewright::cuda {

// Registers a thread (a back-to-back matmul that carries two sums of 64 rows by 128 needs 240): the fetching
// warpgroup gives up what the others need. At the start all have 65536 / 384 = 168 (of 256 threads: 255);
// each sum stays below that of the start.
Wgmma::RegisterShare Wgmma::register_share() const {
  const bool crowded = b2b_.has_value() || is_pingpong(schedule_);
  return warpgroups() == 1   ? RegisterShare{56, 256}
         : warpgroups() == 2 ? (crowded ? RegisterShare{24, 240} : RegisterShare{40, 232})
                             : RegisterShare{32, 160};
}

void Wgmma::print_body() {
  need("wgmma_dot");
  tile::for_each_op(kernel_.body, [&](const tile::Op& op) {
    if (op.kind == tile::OpKind::dot) need(fmt::format("wgmma_n{}", kernel_.type(op.results[0]).shape[1]));
  });
  const RegisterShare registers = register_share();
  k_.scalars().index_scalars();
  choose_names();
  if (is_longest_first(schedule_)) need("tile_swizzle");
  Text multiply = out_.another(3);
  std::swap(out_, multiply);
  k_.print_steps_after_wait(loops_.steps);  // of all threads, before they part
  std::swap(out_, multiply);
  print_tile_barriers();
  print_pipelines();
  k_.wait_for_previous();
  out_.open_if_needed("if (threadIdx.x >= {})", schedule_.threads);
  out_.line("registers_down<{}>();", registers.fetching);
  out_.open_if_needed("if (threadIdx.x == {})", schedule_.threads);
  open_program_loop();
  foresight_.begin();
  k_.programs().print_tile_swizzle();
  print_fetching();
  out_.close();
  out_.close();
  out_.close_else();
  out_.line("registers_up<{}>();", registers.multiplying);
  out_.write("const int group = warpgroup();");
  if (rounds(schedule_) == tile::Rounds::fa3_pingpong || is_pingpong(schedule_))
    out_.line("if (group == {}) pingpong_signal<{}>(group);", warpgroups() - 1, warpgroups());
  print_store_stages();
  print_exchange_place();
  open_multiplied_programs();
  k_.programs().print_program_ids();
  out_.append(multiply);
  out_.close();
  if (!plan_.dots.results.empty() && plan_.dots.results[0].by_engine) out_.write("close_store_stages();");
  out_.close();
  out_.line("close_pipeline<{}>();", launched_cluster(schedule_));
}

void Wgmma::open_program_loop() {
  if (is_longest_first(schedule_)) {
    out_.open("for (i32 wave = 0, program; (program = serpentine(wave)) < {}; ++wave)",
              k_.programs().programs_text());
    return;
  }
  out_.open("for (i32 program = i32(blockIdx.x); program < {0}; program += i32(gridDim.x))",
            k_.programs().programs_text());
}

// Opens the loop over programs of the multiplying warpgroups; with cutlass_pingpong each takes its own.
void Wgmma::open_multiplied_programs() {
  if (!is_pingpong(schedule_)) return open_program_loop();
  const int groups = warpgroups();
  out_.line("u32 passed = u32(group);  // programs of the others since the last own one");
  out_.open(
      "for (i32 program = i32(blockIdx.x) + group * i32(gridDim.x); program < {}; program += {} * "
      "i32(gridDim.x))",
      k_.programs().programs_text(), groups);
}

// Prints the place at which warps that multiply exchange values, one for each tile under way: behind all
// blocks.
void Wgmma::print_exchange_place() {
  if (plan_.shared.exchanged == 0) return;
  out_.line("constexpr int kExchange = {}{};", plan_.shared.exchange_at,
            is_pingpong(schedule_) ? fmt::format(", kExchanged = {}", plan_.shared.exchanged) : "");
}

// Barriers of the stages to which pieces of a loaded tile come.
void Wgmma::print_tile_barriers() {
  if (plan_.elements.fetched.empty()) return;
  need("tile_store");
  out_.line("__shared__ Barrier tile_full[{}][{}];", warpgroups(), store_stages(schedule_));
  out_.write("open_tile_stages(tile_full);");
}

// Stages of results lie behind the operands' blocks.
void Wgmma::print_store_stages() {
  if (plan_.dots.results.empty()) return;
  need("tile_store");
  const std::size_t fetched = plan_.elements.fetched.size(), results = plan_.dots.results.size();
  const std::string type = fetched > 0
                               ? fmt::format("TmaTileStages<{}, {}, {}>", store_stages(schedule_),
                                             std::max(results, fetched), fetched)
                               : fmt::format("TmaStoreStages<{}, {}>", store_stages(schedule_), results);
  out_.line("{} store_stages{{{} + u32(group) * {} * kPieceBytes{}}};", type, end_of_blocks(),
            store_stages(schedule_), fetched > 0 ? ", tile_full[group]" : "");
}

// One operand's block into its place: each block of a cluster fetches its share of what all of them need.
void Wgmma::print_block_loads(const BlockNames& names, const TensorOperand& o, const TensorBlock& map) {
  const bool multicast = o.shared && launched_cluster(schedule_) > 1;
  const Index panel = map.box[0], share = multicast ? launched_cluster(schedule_) : 1;
  const Index panels = o.inner() / panel / (o.k_major ? 1 : share);
  std::string to = fmt::format("{} + {}.stage * {}::bytes", names.stage, names.state, names.type);
  if (multicast)
    to += fmt::format(" + rank * {}",
                      o.k_major ? o.rows / share * kPanelBytes : panels * o.depth * kPanelBytes);
  std::vector<std::string> layout;
  for (int d : map.dims) {
    std::string start =
        expressions_.as_type(expressions_.scalar(o.load->operands[static_cast<std::size_t>(d)]), DType::i32);
    if (multicast && d == o.row_dim) start += fmt::format(" + i32(rank) * {}", o.rows / share);
    layout.push_back(start);
  }
  const std::string function = fmt::format("tma_{}_panels<{}, {}::panel_bytes, {}>",
                                           multicast ? "multicast" : "load", panels, names.type, panel);
  const std::string all = multicast ? fmt::format("{}, ", (1 << launched_cluster(schedule_)) - 1) : "";
  out_.line("{}({}{}, {}, {}, {});", function, all, to, names.map, names.full, fmt::join(layout, ", "));
}

// The loop's head, for both sides.
void Wgmma::open_dot_loop(const Op& op) {
  const ValueId i = op.blocks[0].args[0];
  const std::string name = names_.value(i), lower = expressions_.scalar(op.operands[0]).text;
  out_.open("for (i64 {0} = {1}; {0} < {2}; {0} += {3})", name, lower,
            expressions_.scalar(op.operands[1]).text, expressions_.scalar(op.operands[2]).text);
  scalars_[i] = {name, DType::i64};
}

bool Wgmma::runs_always(const Op& loop) const {
  return OperandReader(kernel_, tile::DotUnit::wgmma).trips(loop) > 0;
}

bool Wgmma::runs_once(const Op& loop) const {
  return OperandReader(kernel_, tile::DotUnit::wgmma).trips(loop) == 1;
}

}  // namespace tilewright::cuda
