// The schedule dot=wgmma: a persistent kernel whose last warpgroup fetches blocks by TMA into a ring in
// shared memory while the others multiply them on the tensor cores and carry out what follows the loop.
#include "backends/cuda/print/kernel_printer.h"

#include <tilewright/tile/tensor_rate.h>

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

// That multiply. Of products, two: with three, ptxas has 128 registers a thread for an instruction that names
// 154 (C7602). A chain's sums are smaller.
constexpr int kMaxWarpgroups = 2, kMaxChainWarpgroups = 3;
constexpr Index kSwizzleBytes = 1024;
// Of a sum of 64 rows in the registers of a warpgroup.
constexpr Index kMostColumns = 256;

}  // namespace

// What the schedule promises and the layout does not check.
void KernelPrinter::check_wgmma() const {
  const int warpgroups = schedule_.threads / kWarpgroup;
  if (!options_.arch.has_warpgroup_dots())
    refuse(fmt::format("dot=wgmma: {} has none", options_.arch.text()));
  if (schedule_.threads % kWarpgroup != 0 || warpgroups > (chain_ ? kMaxChainWarpgroups : kMaxWarpgroups))
    refuse("dot=wgmma: threads are one or two warpgroups of 128");
  if (schedule_.stages < 2) refuse("dot=wgmma: wants two stages at least");
  if (schedule_.take_turns && (!(schedule_.ahead || (chain_ && adds_in_turn())) || warpgroups < 2))
    refuse("take_turns: wants ahead and several warpgroups");
  if (schedule_.store_places == 1) refuse("store_places: two at least");
  if (chain_ && schedule_.ping_pong) refuse("ping_pong: the loop is no single dot");
  if (chain_) return check_chain();
  if (schedule_.ahead) refuse("ahead: the loop is no chain of dots");
  const Frame& f = layouts_.frame(layouts_.buffers.at(plan_.storage(dot_->dot->results[0])));
  if (f.cols % 32 != 0 || f.cols > kMostColumns) refuse("dot=wgmma: tiles of 32, 64 … 256 columns");
  // Of 8-bit floats every thread has two accumulators in its 232 registers.
  constexpr Index kMostPromoted = 64 * 192;
  if (dot_->promoted && f.rows * f.cols > dot_warpgroups() * kMostPromoted)
    refuse("dot=wgmma: tiles of 8-bit floats have at most 192 columns for a warpgroup's 64 rows");
  if (schedule_.ping_pong) check_ping_pong(f);
  if (schedule_.cluster > 1) check_multicast(dot_->a, dot_->b);
}

void KernelPrinter::check_multicast(const TensorOperand& a, const TensorOperand& b) const {
  const Index below = kernel_.grid.size() > 1 ? grid(1).number().value_or(0) : 0;
  if (a.shared == b.shared || schedule_.raster % schedule_.cluster != 0 || schedule_.raster == 0 ||
      below == 0 || below % schedule_.cluster != 0)
    refuse(fmt::format("cluster={}: no operand that neighbours along the second grid axis share",
                       schedule_.cluster));
  const TensorOperand& shared = a.shared ? a : b;
  if (shared.rows % (schedule_.cluster * (shared.k_major ? 8 : 64)) != 0)
    refuse(fmt::format("cluster={}: cannot share {} rows out", schedule_.cluster, shared.rows));
}

// A warpgroup passes over the blocks of the others' programs: it must know how many they are.
void KernelPrinter::check_ping_pong(const Frame& f) const {
  if (schedule_.threads <= kWarpgroup) refuse("ping_pong: wants several warpgroups");
  if (schedule_.descending) refuse("ping_pong: the programs are taken as they are counted");
  if (!tile::fits_ping_pong(f.rows, f.cols))
    refuse("ping_pong: a warpgroup's tile has at most 128 by 192 elements");
  for (std::size_t i : {0u, 1u, 2u})
    if (differs_[static_cast<std::size_t>(dot_->loop->operands[i])])
      refuse("ping_pong: the loops of programs differ in length");
}

// Those that multiply one program's tile.
int KernelPrinter::dot_warpgroups() const { return program_threads(schedule_) / kWarpgroup; }

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
  check_wgmma();
  need("wgmma_dot");
  const RegisterShare registers =
      register_share(schedule_.threads / kWarpgroup, chain_.has_value() || schedule_.ping_pong);
  index_scalars();
  if (chain_) name_chain();
  if (schedule_.descending) need("raster");
  Text multiply(3);
  std::swap(out_, multiply);
  previous_waited_ = true;  // by all threads, before they part
  print_steps(plan_.steps);
  previous_waited_ = false;
  std::swap(out_, multiply);
  if (!shared_.empty()) refuse("dot=wgmma: threads exchange values");
  const Index exchanged = stage_bytes_;
  if (exchanged > 0 && chain_ && !chain_->multiplies_alone())
    refuse("dot=wgmma: threads exchange values in the loop of a chain");
  if (result_ && !result_sent_)
    refuse("store_places: the tile is not stored as the product stands in registers");
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
  for (const Step& step : plan_.steps)
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
  print_exchange_place(exchanged);
  open_multiplied_programs();
  print_program_ids();
  out_.append(multiply);
  out_.close();
  if (result_) out_.write("close_outbox();");
  out_.close();
  out_.line("close_ring<{}>();", schedule_.cluster);
}

// Where warps that multiply exchange values, of each tile that is under way: behind all blocks.
void KernelPrinter::print_exchange_place(Index bytes) {
  if (bytes == 0) return;
  out_.line("constexpr int kExchange = {}{};", stage_bytes_,
            schedule_.ping_pong ? fmt::format(", kExchanged = {}", bytes) : "");
  stage_bytes_ += schedule_.threads / program_threads(schedule_) * bytes;
}

// Blocks of both operands share the places of one ring.
void KernelPrinter::print_dot_ring() {
  print_dot_blocks();
  out_.line("__shared__ Ring<{}> ring;", schedule_.stages);
  if (schedule_.cluster > 1) out_.write("const u32 rank = cluster_rank();");
  out_.line("open_ring<{}, {}>(ring);", dot_warpgroups(), schedule_.cluster);
  out_.line("Turn<{}> turn;", schedule_.stages);
  stage_bytes_ = schedule_.stages * (dot_->a.bytes() + dot_->b.bytes()) + kSwizzleBytes;
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
  const std::vector<TensorBlock> maps = tensor_blocks(kernel_, schedule_);
  print_block_loads({"A", "a_blocks", "turn", "full", map_names_[0]}, dot_->a, maps[0]);
  print_block_loads({"B", "b_blocks", "turn", "full", map_names_[1]}, dot_->b, maps[1]);
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
    out_.line("wgmma_promoted<A, B, {}>({});", dot_warpgroups(), blocks);
    out_.line("release<{}>(ring, turn.place);", schedule_.cluster);
    out_.write("turn.next();");
    out_.close();
    if (!give.empty()) out_.write(give);
    return;
  }
  out_.line("wgmma_block<A, B, {}>({}, {});", dot_warpgroups(), blocks,
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
