#include "backends/cuda/print/pipelines/wgmma_chain.h"

#include "backends/cuda/analysis/chain_plan.h"

#include <algorithm>

namespace tilewright::cuda {

void WgmmaChain::choose_names() {
  blocks_.choose_names();
  for (const ChainBlock& b : chain_->blocks) {
    const std::string& view = kernel_.views[static_cast<std::size_t>(b.operand.load->param)].name;
    rings_.push_back({.name = k_.unique(view + "_ring"),
                      .turn = k_.unique(view + "_turn"),
                      .full = k_.unique(view + "_full")});
  }
  join_rings();
  for (const ChainDot& d : chain_->dots)
    if (d.a < 0 && is_f8(kernel_.type(d.op->operands[0]).dtype)) name_parts(d);
  if (schedule_.ahead && !chain_->adds_up()) name_late_dots();
}

// One product alone reads two blocks: one barrier tells that both are there, one that both are read.
void WgmmaChain::join_rings() {
  const std::vector<ChainBlock>& blocks = chain_->blocks;
  if (chain_->dots.size() != 1 || blocks.size() != 2 || chain_->dots[0].a != 0 || chain_->dots[0].b != 1 ||
      blocks[0].resident() || blocks[1].resident())
    return;
  rings_[1].name = rings_[0].name;
  rings_[1].turn = rings_[0].turn;
  rings_[1].full = rings_[0].full;
  rings_[1].joins = true;
}

// Registers of its own for what a dot reads from registers; the steps leave it in f32, in those that the
// products before are computed on in.
void WgmmaChain::name_parts(const ChainDot& d) {
  const tile::ValueId left = loops_.storage(d.op->operands[0]);
  if (parts_.count(left) > 0) return;
  const Registers narrow = k_.buffer(left);
  parts_[left] = narrow;
  buffers_[left] = {k_.unique(narrow.name + "_wide"), narrow.place, DType::f32, "f32"};
}

// What runs under the next round's steps keeps its operand until it is done, while these make the next one.
void WgmmaChain::name_late_dots() {
  const ChainDot* goes_on = nullptr;  // of the loop before, whose product the next one waits for
  for (const Step& step : loops_.steps) {
    const ChainDot* late = step.kind == Step::Kind::loop ? late_dot(*chain_, *step.op) : nullptr;
    if (!late) continue;
    const ChainDot* const before = std::exchange(goes_on, plan_.rounds.next_of(step) ? late : nullptr);
    for (int block : {late->b})
      if (Ring& ring = rings_[static_cast<std::size_t>(block)];
          !blocks_.reads_first(*late, block) && ring.late_turn.empty())
        ring.late_turn = k_.unique(ring.turn + "_late");
    if (before)
      share_late_registers(*before, *late);
    else
      name_parts(*late);
  }
}

// Where the blocks lie, and their barriers.
void WgmmaChain::print_rings() {
  blocks_.print_places();
  if (schedule_.cluster > 1) out_.write("const u32 rank = cluster_rank();");
  for (std::size_t i = 0; i < rings_.size(); ++i) {
    const Ring& ring = rings_[i];
    if (ring.joins) continue;
    out_.line("__shared__ Ring<{}> {};", plan_.places[i], ring.name);
    out_.line("open_ring<{}, {}>({});", warpgroups(), schedule_.cluster, ring.name);
  }
  for (std::size_t i = 0; i < rings_.size(); ++i) {
    const Ring& ring = rings_[i];
    if (!ring.joins)
      out_.line("Turn<{}> {}{};", plan_.places[i], ring.turn,
                ring.late_turn.empty() ? "" : ", " + ring.late_turn);
  }
}

void WgmmaChain::print_fetching() {
  for (std::size_t i = 0; i < chain_->blocks.size(); ++i)
    if (chain_->blocks[i].resident()) {
      for (tile::ValueId v : chain_->blocks[i].fetches.front().load->operands) foresight_.print(v);
      print_fetch(i, *chain_->blocks[i].fetches.front().load);
    }
  for (const Step& step : loops_.steps)
    if (step.kind == Step::Kind::loop && chain_->is_outermost(*step.op)) print_fetching(step);
}

void WgmmaChain::print_fetching(const Step& loop) {
  const std::set<tile::ValueId> needed = blocks_.starts(loop);
  for (tile::ValueId v : needed) foresight_.print(v);
  open_dot_loop(*loop.op);
  for (const Step& s : loop.body[0])
    if (s.kind == Step::Kind::scalar && !s.op->results.empty() && needed.count(s.op->results[0]) > 0)
      k_.print_scalar(*s.op);
  // In the order in which they are read, those that several dots read by the first of them.
  std::set<int> fetched;
  const auto fetch = [&](int block) {
    if (block < 0 || !fetched.insert(block).second) return;
    for (const ChainBlock::Fetch& f : chain_->blocks[static_cast<std::size_t>(block)].fetches)
      if (f.loop == loop.op) print_fetch(static_cast<std::size_t>(block), *f.load);
  };
  // What threads compute an operand of is read before any dot; by block, not by address of the op.
  std::set<int> of_threads;
  for (const auto& [load, block] : chain_->to_threads) of_threads.insert(block);
  for (int block : of_threads) fetch(block);
  for (const Step& s : loop.body[0]) {
    if (s.kind == Step::Kind::loop && chain_->has_dots(*s.op)) print_fetching(s);
    if (s.kind != Step::Kind::dot) continue;
    fetch(chain_->find(*s.op)->a);
    fetch(chain_->find(*s.op)->b);
  }
  out_.close();
}

void WgmmaChain::print_fetch(std::size_t block, const Op& load) {
  const Ring& ring = rings_[block];
  const ChainBlocks::Names& names = blocks_.names(static_cast<int>(block));
  TensorOperand o = chain_->blocks[block].operand;
  o.load = &load;
  const bool joined = block + 1 < rings_.size() && rings_[block + 1].joins;
  const std::string more =
      joined ? fmt::format(" + {}::bytes", blocks_.names(static_cast<int>(block) + 1).type) : "";
  if (!ring.joins)
    out_.line("Barrier& {} = refill({}, {}, {}::bytes{});", ring.full, ring.name, ring.turn, names.type,
              more);
  print_block_loads({names.type, names.stage, ring.turn, ring.full, k_.map_name(block)}, o,
                    plan_.maps[block]);
  if (!joined) out_.line("{}.next();", ring.turn);
}

bool WgmmaChain::print_loop(const Step& step) {
  const auto is_this = [&](const auto& next) { return next.second == &step; };
  if (std::any_of(plan_.rounds.next.begin(), plan_.rounds.next.end(), is_this))
    return true;  // printed with the one before
  const bool outermost = chain_->is_outermost(*step.op), multiplies = chain_->has_dots(*step.op);
  if (!outermost && !multiplies) return false;
  const Step* next = plan_.rounds.next_of(step);
  k_.declare_buffers(step.body[0]);
  if (next) k_.declare_buffers(next->body[0]);
  if (outermost) wait_for_residents();
  if (multiplies) {
    print_dots(step);
  } else {
    k_.open_loop(step);
    k_.print_steps(step.body[0]);
    k_.close_loop();
  }
  if (outermost && chain_->dots.back().outermost == (next ? next : &step)->op) release_residents();
  return true;
}

void WgmmaChain::print_dots(const Step& loop) {
  std::vector<const ChainDot*> dots;
  for (const ChainDot& d : chain_->dots)
    if (d.loop == loop.op) dots.push_back(&d);
  const auto only_multiplies = [](const Step& s) {
    return s.kind == Step::Kind::scalar || s.kind == Step::Kind::dot;
  };
  if (dots[0]->is_nested() ||
      (chain_->multiplies_alone() && std::all_of(loop.body[0].begin(), loop.body[0].end(), only_multiplies)))
    return print_pipeline(loop, dots);
  if (chain_->adds_up() && warpgroups() > 1) out_.line("keep_step<{}>();", schedule_.threads);
  declare_parts(loop);
  if (schedule_.ahead && late_dot(*chain_, *loop.op)) return print_overlapping(loop);
  k_.open_loop(loop);
  print_in_order(loop);
  k_.close_loop();
}

// Around a loop of dots: what is fetched once is there before the first, and free after the last of them.
void WgmmaChain::wait_for_residents() {
  for (std::size_t i = 0; i < chain_->blocks.size(); ++i)
    if (chain_->blocks[i].resident()) out_.line("wait_full({}, {});", rings_[i].name, rings_[i].turn);
}

void WgmmaChain::release_residents() {
  for (std::size_t i = 0; i < chain_->blocks.size(); ++i)
    if (chain_->blocks[i].resident()) release(static_cast<int>(i), rings_[i].turn);
}

// A block that threads compute on: from shared memory into their registers, and free again.
bool WgmmaChain::take_load(const Loop& loop, const Op& load, const Registers& r) {
  const auto found = chain_->to_threads.find(&load);
  if (found == chain_->to_threads.end()) return false;
  const int block = found->second;
  const ChainBlocks::Names& names = blocks_.names(block);
  const Ring& ring = rings_[static_cast<std::size_t>(block)];
  out_.line("wait_full({}, {});", ring.name, ring.turn);
  k_.for_registers(r, [&] {
    out_.line("{} = block_pair<{}>({} + {}.place * {}::bytes, {}, {});", k_.at(r), names.type, names.stage,
              ring.turn, names.type, k_.row_text(loop), k_.col_text(loop));
  });
  out_.write("warpgroup_sync(group);");
  release(block, ring.turn);
  return true;
}

void WgmmaChain::release(int block, const std::string& turn) {
  if (joins(block)) return;
  out_.line("release<{}>({}, {}.place);", schedule_.cluster, rings_[static_cast<std::size_t>(block)].name,
            turn);
  out_.line("{}.next();", turn);
}

const std::string& WgmmaChain::turn(const ChainDot& d, int block) const {
  const Ring& ring = rings_[static_cast<std::size_t>(block)];
  return !ring.late_turn.empty() && late_dot(*chain_, *d.loop) == &d ? ring.late_turn : ring.turn;
}

std::string WgmmaChain::place(const ChainDot& d, int block) const {
  return blocks_.place(block, turn(d, block) + ".place");
}

// The registers that hold operand a.
WgmmaChain::Registers WgmmaChain::left(const ChainDot& d) {
  const auto parts = parts_.find(loops_.storage(d.op->operands[0]));
  return parts == parts_.end() ? k_.buffer(d.op->operands[0]) : parts->second;
}

// The blocks of a dot that come anew each round and are read by nobody before it.
void WgmmaChain::wait(const ChainDot& d) {
  for (int block : {d.a, d.b})
    if (block >= 0 && !blocks_.is_resident(block) && blocks_.reads_first(d, block) && !joins(block))
      out_.line("wait_full({}, {});", rings_[static_cast<std::size_t>(block)].name,
                rings_[static_cast<std::size_t>(block)].turn);
}

// Hands a product to the tensor cores.
void WgmmaChain::issue(const ChainDot& d) { issue(d, d.from_zero ? "false" : "true"); }

void WgmmaChain::issue(const ChainDot& d, const std::string& add) {
  const Registers acc = k_.buffer(d.op->results[0]);
  const std::string b_type = blocks_.type(d.b, d.b_k_major);
  if (d.a >= 0)
    out_.line("wgmma_block<{}, {}, {}>({}, {}, {}, group, {});", blocks_.type(d.a, d.a_k_major), b_type,
              warpgroups(), acc.name, place(d, d.a), place(d, d.b), add);
  else
    out_.line("wgmma_block<{}>({}, {}, {}, {});", b_type, acc.name, left(d).name, place(d, d.b), add);
}

// After a wait: the product's registers are the threads' own again, and the blocks nobody reads any more are
// free.
void WgmmaChain::finish(const ChainDot& d) {
  out_.line("wgmma_pin({});", k_.buffer(d.op->results[0]).name);
  if (d.a < 0) out_.line("wgmma_pin({});", left(d).name);
  for (int block : {d.a, d.b}) {
    if (block < 0 || blocks_.is_resident(block)) continue;
    if (blocks_.reads_last(d, block))
      release(block, turn(d, block));
    else if (reads_last_early(d, block))
      out_.line("{}.next();", turn(d, block));
  }
}

// The last but for the late one, which has a turn of its own.
bool WgmmaChain::reads_last_early(const ChainDot& dot, int block) const {
  if (rings_[static_cast<std::size_t>(block)].late_turn.empty()) return false;
  const ChainDot *last = nullptr, *late = late_dot(*chain_, *dot.loop);
  for (const ChainDot& d : chain_->dots)
    if (d.loop == dot.loop && &d != late && (d.a == block || d.b == block)) last = &d;
  return last == &dot;
}

}  // namespace tilewright::cuda
