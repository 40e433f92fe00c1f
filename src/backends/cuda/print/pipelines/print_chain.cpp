// Chains of dots under the schedule dot=wgmma: each block of memory has a ring of its own in shared memory,
// which the last warpgroup fills. The others multiply, carry out the element loops on the accumulators in
// their registers, and multiply what these leave there.
#include "backends/cuda/analysis/chain_plan.h"
#include "backends/cuda/print/kernel_printer.h"

#include <algorithm>

namespace tilewright::cuda {

using printer::Step;
using tile::Op;
using tile::OpKind;

// Names for what a block's ring consists of.
void KernelPrinter::name_chain() {
  for (const ChainBlock& b : chain_->blocks) {
    const std::string& view = kernel_.views[static_cast<std::size_t>(b.operand.load->param)].name;
    chain_text_.push_back({.type = unique(view + "_block"),
                           .turned = "",
                           .stage = unique(view + "_blocks"),
                           .ring = unique(view + "_ring"),
                           .turn = unique(view + "_turn"),
                           .full = unique(view + "_full")});
  }
  for (const ChainDot& d : chain_->dots)
    for (const auto& [block, k_major] : {std::pair{d.a, d.a_k_major}, std::pair{d.b, d.b_k_major}}) {
      if (block < 0) continue;
      ChainText& text = chain_text_[static_cast<std::size_t>(block)];
      const bool turned = chain_->blocks[static_cast<std::size_t>(block)].operand.k_major != k_major;
      if (turned && text.turned.empty()) text.turned = unique(text.type + "_turned");
    }
  if (schedule_.dot != tile::DotUnit::wgmma) return;
  join_rings();
  for (const ChainDot& d : chain_->dots)
    if (d.a < 0 && is_f8(kernel_.type(d.op->operands[0]).dtype)) name_parts(d);
  if (schedule_.ahead && !chain_->adds_up()) name_late_dots();
}

// Registers of its own for what a dot reads from registers; the steps leave it in f32, in those that the
// products before are computed on in.
void KernelPrinter::name_parts(const ChainDot& d) {
  const tile::ValueId left = loops_.storage(d.op->operands[0]);
  if (chain_parts_.count(left) > 0) return;
  const Registers narrow = buffer(left);
  chain_parts_[left] = narrow;
  buffers_[left] = {unique(narrow.name + "_wide"), narrow.place, DType::f32, "f32"};
}

void KernelPrinter::declare_parts(const Step& loop) {
  for (const ChainDot& d : chain_->dots) {
    if (d.loop != loop.op || d.a >= 0) continue;
    const auto parts = chain_parts_.find(loops_.storage(d.op->operands[0]));
    if (parts == chain_parts_.end() || !declared_parts_.insert(parts->second.name).second) continue;
    const Registers& r = parts->second;
    const Frame& f = layouts_.frame(r.place);
    if (is_f8(r.dtype))
      out_.line("ByteOperand<{}, {}, {}> {};", r.type, f.row_steps() / 2, f.col_steps() / 4, r.name);
    else
      out_.write(declaration(r));
  }
}

// From f32 to what the tensor cores read.
void KernelPrinter::print_parts(const ChainDot& d) {
  const Registers narrow = chain_left(d), wide = buffer(d.op->operands[0]);
  need("convert");
  need("memory");
  if (is_f8(narrow.dtype)) return out_.line("to_bytes({}, {});", narrow.name, wide.name);
  for_registers(
      narrow, [&] { out_.line("{} = from_f32<{}>({});", at(narrow), element_type(narrow.dtype), at(wide)); });
}

// One product alone reads two blocks: one barrier tells that both are there, one that both are read.
void KernelPrinter::join_rings() {
  const std::vector<ChainBlock>& blocks = chain_->blocks;
  if (chain_->dots.size() != 1 || blocks.size() != 2 || chain_->dots[0].a != 0 || chain_->dots[0].b != 1 ||
      blocks[0].resident() || blocks[1].resident())
    return;
  chain_text_[1].ring = chain_text_[0].ring;
  chain_text_[1].turn = chain_text_[0].turn;
  chain_text_[1].full = chain_text_[0].full;
  chain_text_[1].joins = true;
}

// What runs under the next round's steps keeps its operand until it is done, while these make the next one.
void KernelPrinter::name_late_dots() {
  const ChainDot* goes_on = nullptr;  // of the loop before, whose product the next one waits for
  for (const Step& step : loops_.steps) {
    const ChainDot* late = step.kind == Step::Kind::loop ? late_dot(*chain_, *step.op) : nullptr;
    if (!late) continue;
    const ChainDot* const before = std::exchange(goes_on, plan_.rounds.next_of(step) ? late : nullptr);
    for (int block : {late->b})
      if (ChainText& text = chain_text_[static_cast<std::size_t>(block)];
          !reads_first(*late, block) && text.late_turn.empty())
        text.late_turn = unique(text.turn + "_late");
    if (before)
      share_late_registers(*before, *late);
    else
      name_parts(*late);
  }
}

// How the blocks lie, and where.
void KernelPrinter::print_chain_places() {
  std::string end = "block_stage()";
  for (std::size_t i = 0; i < chain_->blocks.size(); ++i) {
    const TensorOperand& o = chain_->blocks[i].operand;
    const ChainText& text = chain_text_[i];
    const std::string element = element_type(o.dtype);
    const auto define = [&](const std::string& name, Index rows, Index depth, bool k_major) {
      out_.line("using {} = Block<{}, {}, {}, Major::{}>;", name, element, rows, depth, k_major ? "k" : "mn");
    };
    define(text.type, o.rows, o.depth, o.k_major);
    if (!text.turned.empty()) define(text.turned, o.depth, o.rows, !o.k_major);
    out_.line("const u32 {} = {};", text.stage, end);
    end = fmt::format("{} + {} * {}::bytes", text.stage, plan_.places[i], text.type);
  }
}

// … and their barriers.
void KernelPrinter::print_chain_blocks() {
  print_chain_places();
  if (schedule_.cluster > 1) out_.write("const u32 rank = cluster_rank();");
  for (std::size_t i = 0; i < chain_text_.size(); ++i) {
    const ChainText& text = chain_text_[i];
    if (text.joins) continue;
    out_.line("__shared__ Ring<{}> {};", plan_.places[i], text.ring);
    out_.line("open_ring<{}, {}>({});", schedule_.threads / kWarpgroup, schedule_.cluster, text.ring);
  }
  for (std::size_t i = 0; i < chain_text_.size(); ++i) {
    const ChainText& text = chain_text_[i];
    if (!text.joins)
      out_.line("Turn<{}> {}{};", plan_.places[i], text.turn,
                text.late_turn.empty() ? "" : ", " + text.late_turn);
  }
}

// --- the fetching side

void KernelPrinter::print_chain_fetching() {
  foreseen_.clear();
  foreseen_axes_.clear();
  print_raster();
  for (std::size_t i = 0; i < chain_->blocks.size(); ++i)
    if (chain_->blocks[i].resident()) {
      for (tile::ValueId v : chain_->blocks[i].fetches.front().load->operands) foresee(v);
      print_chain_fetch(i, *chain_->blocks[i].fetches.front().load);
    }
  for (const Step& step : loops_.steps)
    if (step.kind == Step::Kind::loop && chain_->is_outermost(*step.op)) print_chain_fetching(step);
}

// The scalars that say where a loop's blocks begin, and those of loops inside it; and what these are made of.
std::set<tile::ValueId> KernelPrinter::chain_starts(const Step& loop) const {
  std::set<tile::ValueId> needed;
  for (tile::ValueId v : loop.op->operands)
    if (kernel_.type(v).rank() == 0) needed.insert(v);
  for (const ChainBlock& b : chain_->blocks)
    for (const ChainBlock::Fetch& f : b.fetches)
      if (f.loop == loop.op) needed.insert(f.load->operands.begin(), f.load->operands.end());
  for (auto s = loop.body[0].rbegin(); s != loop.body[0].rend(); ++s) {
    if (s->kind == Step::Kind::loop && chain_->has_dots(*s->op)) needed.merge(chain_starts(*s));
    if (s->kind == Step::Kind::scalar && !s->op->results.empty() && needed.count(s->op->results[0]) > 0)
      needed.insert(s->op->operands.begin(), s->op->operands.end());
  }
  return needed;
}

void KernelPrinter::print_chain_fetching(const Step& loop) {
  const std::set<tile::ValueId> needed = chain_starts(loop);
  for (tile::ValueId v : needed) foresee(v);
  open_dot_loop(*loop.op);
  for (const Step& s : loop.body[0])
    if (s.kind == Step::Kind::scalar && !s.op->results.empty() && needed.count(s.op->results[0]) > 0)
      print_scalar(*s.op);
  // In the order in which they are read, those that several dots read by the first of them.
  std::set<int> fetched;
  const auto fetch = [&](int block) {
    if (block < 0 || !fetched.insert(block).second) return;
    for (const ChainBlock::Fetch& f : chain_->blocks[static_cast<std::size_t>(block)].fetches)
      if (f.loop == loop.op) print_chain_fetch(static_cast<std::size_t>(block), *f.load);
  };
  // What threads compute an operand of is read before any dot; by block, not by address of the op.
  std::set<int> of_threads;
  for (const auto& [load, block] : chain_->to_threads) of_threads.insert(block);
  for (int block : of_threads) fetch(block);
  for (const Step& s : loop.body[0]) {
    if (s.kind == Step::Kind::loop && chain_->has_dots(*s.op)) print_chain_fetching(s);
    if (s.kind != Step::Kind::dot) continue;
    fetch(chain_->find(*s.op)->a);
    fetch(chain_->find(*s.op)->b);
  }
  out_.close();
}

void KernelPrinter::print_chain_fetch(std::size_t block, const Op& load) {
  const ChainText& text = chain_text_[block];
  TensorOperand o = chain_->blocks[block].operand;
  o.load = &load;
  const bool joined = block + 1 < chain_text_.size() && chain_text_[block + 1].joins;
  const std::string more = joined ? fmt::format(" + {}::bytes", chain_text_[block + 1].type) : "";
  if (!text.joins)
    out_.line("Barrier& {} = refill({}, {}, {}::bytes{});", text.full, text.ring, text.turn, text.type, more);
  print_block_loads({text.type, text.stage, text.turn, text.full, map_names_[block]}, o, plan_.maps[block]);
  if (!joined) out_.line("{}.next();", text.turn);
}

// --- the multiplying side

// Around a loop of dots: what is fetched once is there before the first, and free after the last of them.
void KernelPrinter::wait_for_residents() {
  for (std::size_t i = 0; i < chain_->blocks.size(); ++i)
    if (chain_->blocks[i].resident())
      out_.line("wait_full({}, {});", chain_text_[i].ring, chain_text_[i].turn);
}
void KernelPrinter::release_residents() {
  for (std::size_t i = 0; i < chain_->blocks.size(); ++i)
    if (chain_->blocks[i].resident()) print_chain_release(static_cast<int>(i), chain_text_[i].turn);
}

void KernelPrinter::print_chain_loop(const Step& step) {
  if (schedule_.dot == tile::DotUnit::mma) return print_copied_chain(step);
  std::vector<const ChainDot*> dots;
  for (const ChainDot& d : chain_->dots)
    if (d.loop == step.op) dots.push_back(&d);
  const bool multiplies =
      dots[0]->is_nested() ||
      (chain_->multiplies_alone() && std::all_of(step.body[0].begin(), step.body[0].end(), [](const Step& s) {
         return s.kind == Step::Kind::scalar || s.kind == Step::Kind::dot;
       }));
  if (multiplies) return print_chain_pipeline(step, dots);
  if (chain_->adds_up() && schedule_.threads > kWarpgroup) out_.line("keep_step<{}>();", schedule_.threads);
  if (adds_in_turn(*chain_)) return print_adding_rounds(step, chain_->dots[0]);
  declare_parts(step);
  const ChainDot* late = schedule_.ahead ? late_dot(*chain_, *step.op) : nullptr;
  if (late) return print_chain_rounds(step);
  open_loop(step);
  print_chain_steps(step);
  close_loop();
}

// A block that threads compute on: from shared memory into their registers, and free again.
void KernelPrinter::print_chain_load(const Loop& loop, const Op& load, const Registers& r) {
  const int block = chain_->to_threads.at(&load);
  const ChainText& text = chain_text_[static_cast<std::size_t>(block)];
  out_.line("wait_full({}, {});", text.ring, text.turn);
  for_registers(r, [&] {
    out_.line("{} = block_pair<{}>({} + {}.place * {}::bytes, {}, {});", at(r), text.type, text.stage,
              text.turn, text.type, row_text(loop), col_text(loop));
  });
  out_.write("warpgroup_sync(group);");
  print_chain_release(block, text.turn);
}

void KernelPrinter::print_chain_release(int block, const std::string& turn) {
  if (chain_text_[static_cast<std::size_t>(block)].joins) return;
  out_.line("release<{}>({}, {}.place);", schedule_.cluster,
            chain_text_[static_cast<std::size_t>(block)].ring, turn);
  out_.line("{}.next();", turn);
}

const std::string& KernelPrinter::chain_turn(const ChainDot& d, int block) const {
  const ChainText& text = chain_text_[static_cast<std::size_t>(block)];
  return !text.late_turn.empty() && late_dot(*chain_, *d.loop) == &d ? text.late_turn : text.turn;
}

std::string KernelPrinter::chain_place(const ChainDot& d, int block) const {
  const ChainText& text = chain_text_[static_cast<std::size_t>(block)];
  if (plan_.places[static_cast<std::size_t>(block)] == 1) return text.stage;
  const std::string place = schedule_.dot == tile::DotUnit::mma ? "turn" : chain_turn(d, block) + ".place";
  return fmt::format("{} + {} * {}::bytes", text.stage, place, text.type);
}

std::string KernelPrinter::chain_type(int block, bool k_major) const {
  const ChainText& text = chain_text_[static_cast<std::size_t>(block)];
  return chain_->blocks[static_cast<std::size_t>(block)].operand.k_major == k_major ? text.type : text.turned;
}

// The registers that hold operand a.
KernelPrinter::Registers KernelPrinter::chain_left(const ChainDot& d) {
  const auto parts = chain_parts_.find(loops_.storage(d.op->operands[0]));
  return parts == chain_parts_.end() ? buffer(d.op->operands[0]) : parts->second;
}

// The blocks of a dot that come anew each round and are read by nobody before it.
void KernelPrinter::print_chain_wait(const ChainDot& d) {
  for (int block : {d.a, d.b})
    if (block >= 0 && !chain_->blocks[static_cast<std::size_t>(block)].resident() && reads_first(d, block) &&
        !chain_text_[static_cast<std::size_t>(block)].joins)
      out_.line("wait_full({}, {});", chain_text_[static_cast<std::size_t>(block)].ring,
                chain_text_[static_cast<std::size_t>(block)].turn);
}

// Hands a product to the tensor cores.
void KernelPrinter::print_chain_issue(const ChainDot& d) {
  print_chain_issue(d, d.from_zero ? "false" : "true");
}
void KernelPrinter::print_chain_issue(const ChainDot& d, const std::string& add) {
  const Registers acc = buffer(d.op->results[0]);
  const std::string b_type = chain_type(d.b, d.b_k_major);
  if (d.a >= 0)
    out_.line("wgmma_block<{}, {}, {}>({}, {}, {}, group, {});", chain_type(d.a, d.a_k_major), b_type,
              schedule_.threads / kWarpgroup, acc.name, chain_place(d, d.a), chain_place(d, d.b), add);
  else
    out_.line("wgmma_block<{}>({}, {}, {}, {});", b_type, acc.name, chain_left(d).name, chain_place(d, d.b),
              add);
}

// After a wait: the product's registers are the threads' own again, and the blocks nobody reads any more are
// free.
void KernelPrinter::print_chain_done(const ChainDot& d) {
  out_.line("wgmma_pin({});", buffer(d.op->results[0]).name);
  if (d.a < 0) out_.line("wgmma_pin({});", chain_left(d).name);
  for (int block : {d.a, d.b}) {
    if (block < 0 || chain_->blocks[static_cast<std::size_t>(block)].resident()) continue;
    if (reads_last(d, block))
      print_chain_release(block, chain_turn(d, block));
    else if (reads_last_early(d, block))
      out_.line("{}.next();", chain_turn(d, block));
  }
}

bool KernelPrinter::reads_first(const ChainDot& dot, int block) const {
  for (const ChainDot& d : chain_->dots)
    if (d.loop == dot.loop && (d.a == block || d.b == block)) return &d == &dot;
  return false;
}

bool KernelPrinter::reads_last(const ChainDot& dot, int block) const {
  const ChainDot* last = nullptr;
  for (const ChainDot& d : chain_->dots)
    if (d.loop == dot.loop && (d.a == block || d.b == block)) last = &d;
  return last == &dot;
}

// The last but for the late one, which has a turn of its own.
bool KernelPrinter::reads_last_early(const ChainDot& dot, int block) const {
  if (chain_text_[static_cast<std::size_t>(block)].late_turn.empty()) return false;
  const ChainDot *last = nullptr, *late = late_dot(*chain_, *dot.loop);
  for (const ChainDot& d : chain_->dots)
    if (d.loop == dot.loop && &d != late && (d.a == block || d.b == block)) last = &d;
  return last == &dot;
}

}  // namespace tilewright::cuda
