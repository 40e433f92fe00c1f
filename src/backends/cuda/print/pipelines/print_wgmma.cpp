// The schedule dot=wgmma: a persistent kernel whose last warpgroup fetches blocks by TMA into a ring in
// shared memory while the others multiply them on the tensor cores and carry out what follows the loop.
#include "backends/cuda/print/kernel_printer.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace tilewright::cuda {

using printer::Step;
using tile::Op;
using tile::OpKind;

namespace {

// Registers a thread (a chain that carries two sums of 64 rows by 128 needs 240): the fetching warpgroup
// gives up what the others need. At the start all have 65536 / 384 = 168 (of 256 threads: 255); each sum
// stays below that of the start.
struct RegisterShare {
  int fetching, multiplying;
};
RegisterShare register_share(int warpgroups, bool crowded) {
  return warpgroups == 1   ? RegisterShare{56, 256}
         : warpgroups == 2 ? (crowded ? RegisterShare{24, 240} : RegisterShare{40, 232})
                           : RegisterShare{32, 160};
}

}  // namespace

// … of the multiplying warpgroups; with ping_pong each takes its own.
void KernelPrinter::open_multiplied_programs() {
  if (!schedule_.ping_pong) return open_program_loop();
  const int groups = schedule_.threads / kWarpgroup;
  out_.line("u32 passed = u32(group);  // programs of the others since the last own one");
  out_.open(
      "for (i32 program = i32(blockIdx.x) + group * i32(gridDim.x); program < {}; program += {} * "
      "i32(gridDim.x))",
      programs_text(), groups);
}

void KernelPrinter::open_program_loop() {
  if (schedule_.descending) {
    out_.open("for (i32 wave = 0, program; (program = serpentine(wave)) < {}; ++wave)", programs_text());
    return;
  }
  out_.open("for (i32 program = i32(blockIdx.x); program < {0}; program += i32(gridDim.x))", programs_text());
}

void KernelPrinter::print_wgmma_body() {
  need("wgmma_dot");
  const RegisterShare registers =
      register_share(schedule_.threads / kWarpgroup, chain_.has_value() || schedule_.ping_pong);
  index_scalars();
  if (chain_) name_chain();
  if (schedule_.descending) need("raster");
  Text multiply(3);
  std::swap(out_, multiply);
  previous_waited_ = true;  // by all threads, before they part
  print_steps(loops_.steps);
  previous_waited_ = false;
  std::swap(out_, multiply);
  if (chain_)
    print_chain_blocks();
  else
    print_dot_ring();
  wait_for_previous();
  out_.open("if (threadIdx.x >= {})", schedule_.threads);
  out_.line("registers_down<{}>();", registers.fetching);
  out_.open("if (threadIdx.x == {})", schedule_.threads);
  open_program_loop();
  if (chain_) print_chain_fetching();
  for (const Step& step : loops_.steps)
    if (dot_ && step.op == dot_->loop) print_fetching(step);
  out_.close();
  out_.close();
  out_.close_else();
  out_.line("registers_up<{}>();", registers.multiplying);
  out_.write("const int group = warpgroup();");
  if (schedule_.take_turns || schedule_.ping_pong)
    out_.line("if (group == {}) give_turn<{}>(group);", schedule_.threads / kWarpgroup - 1,
              schedule_.threads / kWarpgroup);
  print_outbox();
  print_exchange_place();
  open_multiplied_programs();
  print_program_ids();
  out_.append(multiply);
  out_.close();
  if (result_) out_.write("close_outbox();");
  out_.close();
  out_.line("close_ring<{}>();", schedule_.cluster);
}

// Where warps that multiply exchange values, of each tile that is under way: behind all blocks.
void KernelPrinter::print_exchange_place() {
  if (plan_.shared.exchanged == 0) return;
  out_.line("constexpr int kExchange = {}{};", plan_.shared.exchange_at,
            schedule_.ping_pong ? fmt::format(", kExchanged = {}", plan_.shared.exchanged) : "");
}

// Blocks of both operands share the places of one ring.
void KernelPrinter::print_dot_ring() {
  print_dot_blocks();
  out_.line("__shared__ Ring<{}> ring;", schedule_.stages);
  if (schedule_.cluster > 1) out_.write("const u32 rank = cluster_rank();");
  out_.line("open_ring<{}, {}>(ring);", dot_warpgroups(schedule_), schedule_.cluster);
  out_.line("Turn<{}> turn;", schedule_.stages);
}

// How the operands' blocks lie, and where.
void KernelPrinter::print_dot_blocks() {
  for (const auto& [name, o] : {std::pair{"A", &dot_->a}, std::pair{"B", &dot_->b}})
    out_.line("using {} = {}<{}, {}, {}, Major::{}>;", name,
              schedule_.dot == tile::DotUnit::fma_blocks ? "FmaBlock" : "Block", element_type(o->dtype),
              o->rows, o->depth, o->k_major ? "k" : "mn");
  out_.line("const u32 a_blocks = block_stage(), b_blocks = a_blocks + {} * A::bytes;", schedule_.stages);
}

// The loop's head, for both sides.
void KernelPrinter::open_dot_loop(const Op& op) {
  const ValueId i = op.blocks[0].args[0];
  const std::string name = value_name(i), lower = scalar(op.operands[0]).text;
  out_.open("for (i64 {0} = {1}; {0} < {2}; {0} += {3})", name, lower, scalar(op.operands[1]).text,
            scalar(op.operands[2]).text);
  scalars_[i] = {name, "i64"};
}

void KernelPrinter::print_fetching(const Step& loop) {
  foreseen_.clear();
  foreseen_axes_.clear();
  print_raster();
  for (ValueId v : loop.op->operands) foresee(v);
  for (const TensorOperand* o : {&dot_->a, &dot_->b})
    for (ValueId v : o->load->operands) foresee(v);
  for (const Step& s : loop.body[0])
    if (s.kind == Step::Kind::scalar)
      for (ValueId v : s.op->operands) foresee(v);
  open_dot_loop(*loop.op);
  for (const Step& s : loop.body[0])
    if (s.kind == Step::Kind::scalar) print_scalar(*s.op);
  out_.write("Barrier& full = refill(ring, turn, A::bytes + B::bytes);");
  print_block_loads({"A", "a_blocks", "turn", "full", map_names_[0]}, dot_->a, plan_.maps[0]);
  print_block_loads({"B", "b_blocks", "turn", "full", map_names_[1]}, dot_->b, plan_.maps[1]);
  out_.write("turn.next();");
  out_.close();
}

// What a scalar of the kernel's own body is made of, in the fetching function.
void KernelPrinter::foresee(ValueId v) {
  if (scalar_definitions_.count(v) > 0) print_foreseen(v);
}

// One operand's block into its place: each block of a cluster fetches its share of what all of them need.
void KernelPrinter::print_block_loads(const BlockNames& names, const TensorOperand& o,
                                      const TensorBlock& map) {
  const bool multicast = o.shared && schedule_.cluster > 1;
  const Index panel = map.box[0], share = multicast ? schedule_.cluster : 1;
  const Index panels = o.inner() / panel / (o.k_major ? 1 : share);
  std::string to = fmt::format("{} + {}.place * {}::bytes", names.stage, names.turn, names.type);
  if (multicast)
    to += fmt::format(" + rank * {}",
                      o.k_major ? o.rows / share * kPanelBytes : panels * o.depth * kPanelBytes);
  std::vector<std::string> place;
  for (int d : map.dims) {
    std::string start = as_type(scalar(o.load->operands[static_cast<std::size_t>(d)]), "i32");
    if (multicast && d == o.row_dim) start += fmt::format(" + i32(rank) * {}", o.rows / share);
    place.push_back(start);
  }
  const std::string function = fmt::format("tma_{}_panels<{}, {}::panel_bytes, {}>",
                                           multicast ? "multicast" : "load", panels, names.type, panel);
  const std::string all = multicast ? fmt::format("{}, ", (1 << schedule_.cluster) - 1) : "";
  out_.line("{}({}{}, {}, {}, {});", function, all, to, names.map, names.full, fmt::join(place, ", "));
}

// Warpgroups that multiply one tile begin it together; those that have their own pass over the blocks of the
// others' and wait for their turn.
void KernelPrinter::print_dot_turn(const Op& loop) {
  if (!schedule_.ping_pong) {
    if (schedule_.threads > kWarpgroup) out_.line("keep_step<{}>();", schedule_.threads);
    return;
  }
  const std::string trips = dot_->trips > 0
                                ? integer(dot_->trips)
                                : fmt::format("trip_count({}, {}, {})", scalar(loop.operands[0]).text,
                                              scalar(loop.operands[1]).text, scalar(loop.operands[2]).text);
  out_.line("turn.skip(passed * {});", trips);
  out_.line("passed = {};", schedule_.threads / kWarpgroup - 1);
  out_.write("take_turn(group);");
}

// The multiplying side: while the tensor cores work on one block, the one before is given back.
void KernelPrinter::print_wgmma_loop(const Step& step) {
  const Op& op = *step.op;
  const Registers acc = buffer(dot_->dot->results[0]);
  const std::string i = value_name(op.blocks[0].args[0]), lower = scalar(op.operands[0]).text;
  const std::string release = fmt::format("release_previous<{}>(ring, turn);", schedule_.cluster);
  const std::string give =
      schedule_.ping_pong ? fmt::format("give_turn<{}>(group);", schedule_.threads / kWarpgroup) : "";
  const std::string blocks =
      fmt::format("{}, a_blocks + turn.place * A::bytes, b_blocks + turn.place * B::bytes, {}", acc.name,
                  schedule_.ping_pong ? "0" : "group");
  print_dot_turn(op);
  open_dot_loop(op);
  out_.write("wait_full(ring, turn);");
  if (dot_->promoted) {
    out_.line("wgmma_promoted<A, B, {}>({});", dot_warpgroups(schedule_), blocks);
    out_.line("release<{}>(ring, turn.place);", schedule_.cluster);
    out_.write("turn.next();");
    out_.close();
    if (!give.empty()) out_.write(give);
    return;
  }
  out_.line("wgmma_block<A, B, {}>({}, {});", dot_warpgroups(schedule_), blocks,
            dot_->from_zero ? fmt::format("{} > {}", i, lower) : "true");
  out_.write("wgmma_wait<1>();");
  out_.line("if ({} > {}) {}", i, lower, release);
  out_.write("turn.next();");
  out_.close();
  if (!give.empty()) out_.write(give);  // the other's first products are handed over behind these last ones
  out_.write("wgmma_wait<0>();");
  out_.line("wgmma_pin({});", acc.name);
  if (dot_->from_zero)
    out_.write(release);
  else
    out_.line("if ({} < {}) {}", lower, scalar(op.operands[1]).text, release);
}

}  // namespace tilewright::cuda
