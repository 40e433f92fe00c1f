// The text of back-to-back dots by wgmma, but for their rounds (wgmma_b2b_rounds.cpp).
#include "backends/cuda/print/pipelines/wgmma_b2b.h"

#include "backends/cuda/analysis/b2b_plan.h"

#include <algorithm>

namespace tilewright::cuda {

void WgmmaB2b::choose_names() {
  blocks_.choose_names();
  for (const B2bBlock& b : b2b_->blocks) {
    const std::string& view = names_.stem(b.operand.load->param);
    pipelines_.push_back({.name = names_.unique(view + "_pipeline"),
                          .state = names_.unique(view + "_state"),
                          .full = names_.unique(view + "_full")});
  }
  join_rings();
  for (const B2bDot& d : b2b_->dots)
    if (d.a < 0 && is_f8(kernel_.type(d.op->operands[0]).dtype)) name_parts(d);
  if (rounds(schedule_) != tile::Rounds::apart && !b2b_->scaled_accumulation()) name_late_dots();
}

// One product alone reads two blocks: one barrier tells that both are there, one that both are read.
void WgmmaB2b::join_rings() {
  const std::vector<B2bBlock>& blocks = b2b_->blocks;
  if (b2b_->dots.size() != 1 || blocks.size() != 2 || b2b_->dots[0].a != 0 || b2b_->dots[0].b != 1 ||
      blocks[0].resident() || blocks[1].resident())
    return;
  pipelines_[1].name = pipelines_[0].name;
  pipelines_[1].state = pipelines_[0].state;
  pipelines_[1].full = pipelines_[0].full;
  pipelines_[1].joins = true;
}

// Registers of its own for what a dot reads from registers; the steps leave it in f32, in those that the
// products before are computed on in.
void WgmmaB2b::name_parts(const B2bDot& d) {
  const tile::ValueId left = loops_.storage(d.op->operands[0]);
  if (parts_.count(left) > 0) return;
  const Registers narrow = registers_.buffer(left);
  parts_[left] = narrow;
  buffers_[left] = {names_.unique(narrow.name + "_wide"), narrow.layout, DType::f32, DType::f32};
}

// What runs under the next round's steps keeps its operand until it is done, while these make the next one.
void WgmmaB2b::name_late_dots() {
  const B2bDot* goes_on = nullptr;  // of the loop before, whose product the next one waits for
  for (const Step& step : loops_.steps) {
    const B2bDot* late = step.kind == Step::Kind::loop ? late_dot(*b2b_, *step.op) : nullptr;
    if (!late) continue;
    const B2bDot* const before = std::exchange(goes_on, plan_.rounds.next_of(step) ? late : nullptr);
    for (int block : {late->b})
      if (TmaPipeline& pipeline = pipelines_[static_cast<std::size_t>(block)];
          !blocks_.reads_first(*late, block) && pipeline.late_state.empty())
        pipeline.late_state = names_.unique(pipeline.state + "_late");
    if (before)
      share_late_registers(*before, *late);
    else
      name_parts(*late);
  }
}

// Prints the places of the blocks, and their barriers.
void WgmmaB2b::print_pipelines() {
  blocks_.print_stages("uniform(block_stage())");
  if (launched_cluster(schedule_) > 1) out_.write("const u32 rank = cluster_rank();");
  for (std::size_t i = 0; i < pipelines_.size(); ++i) {
    const TmaPipeline& pipeline = pipelines_[i];
    if (pipeline.joins) continue;
    out_.line("__shared__ TmaPipeline<{}> {};", plan_.block_stages[i], pipeline.name);
    out_.line("open_pipeline<{}, {}>({});", warpgroups(), launched_cluster(schedule_), pipeline.name);
  }
  for (std::size_t i = 0; i < pipelines_.size(); ++i) {
    const TmaPipeline& pipeline = pipelines_[i];
    if (!pipeline.joins)
      for (const std::string& state : {pipeline.state, pipeline.late_state})
        if (!state.empty())
          out_.line("PipelineState<{}> {}(uniform(barriers_of({})));", plan_.block_stages[i], state,
                    pipeline.name);
  }
}

void WgmmaB2b::print_fetching() {
  for (std::size_t i = 0; i < b2b_->blocks.size(); ++i)
    if (b2b_->blocks[i].resident()) {
      for (tile::ValueId v : b2b_->blocks[i].fetches.front().load->operands) foresight_.print(v);
      print_fetch(i, *b2b_->blocks[i].fetches.front().load);
    }
  for (const Step& step : loops_.steps)
    if (step.kind == Step::Kind::loop && b2b_->is_outermost(*step.op)) print_fetching(step);
}

void WgmmaB2b::print_fetching(const Step& loop) {
  const std::set<tile::ValueId> needed = blocks_.starts(loop);
  for (tile::ValueId v : needed) foresight_.print(v);
  open_dot_loop(*loop.op);
  blocks_.print_starts(loop, needed);
  // Blocks are fetched in the order in which they are read, one that several dots read with the first of
  // them.
  std::set<int> fetched;
  const auto fetch = [&](int block) {
    if (block < 0 || !fetched.insert(block).second) return;
    for (const B2bBlock::Fetch& f : b2b_->blocks[static_cast<std::size_t>(block)].fetches)
      if (f.loop == loop.op) print_fetch(static_cast<std::size_t>(block), *f.load);
  };
  // What threads compute an operand of is read before any dot; by block, not by address of the op.
  std::set<int> of_threads;
  for (const auto& [load, block] : b2b_->to_threads) of_threads.insert(block);
  for (int block : of_threads) fetch(block);
  for (const Step& s : loop.body[0]) {
    if (s.kind == Step::Kind::loop && b2b_->has_dots(*s.op)) print_fetching(s);
    if (s.kind != Step::Kind::dot) continue;
    fetch(b2b_->find(*s.op)->a);
    fetch(b2b_->find(*s.op)->b);
  }
  out_.close();
}

void WgmmaB2b::print_fetch(std::size_t block, const Op& load) {
  const TmaPipeline& pipeline = pipelines_[block];
  const B2bBlocks::Names& names = blocks_.names(static_cast<int>(block));
  TensorOperand o = b2b_->blocks[block].operand;
  o.load = &load;
  const bool joined = block + 1 < pipelines_.size() && pipelines_[block + 1].joins;
  const std::string more =
      joined ? fmt::format(" + {}::bytes", blocks_.names(static_cast<int>(block) + 1).type) : "";
  if (!pipeline.joins)
    out_.line("Barrier& {} = refill({}, {}, {}::bytes{});", pipeline.full, pipeline.name, pipeline.state,
              names.type, more);
  print_block_loads({names.type, names.stage, pipeline.state, pipeline.full, k_.map_name(block)}, o,
                    plan_.maps[block]);
  if (!joined) out_.line("{}.next();", pipeline.state);
}

bool WgmmaB2b::print_loop(const Step& step) {
  if (printed_.count(&step) > 0) return true;
  const bool outermost = b2b_->is_outermost(*step.op), multiplies = b2b_->has_dots(*step.op);
  if (!outermost && !multiplies) return false;
  const Step* next = printed_with(step);
  k_.declare_buffers(step.body[0]);
  if (next) printed_.insert(next);
  if (next && !shared_masks(step, *next)) k_.declare_buffers(next->body[0]);
  if (outermost) wait_for_residents();
  if (multiplies) {
    print_dots(step);
  } else {
    k_.open_loop(step);
    k_.print_steps(step.body[0]);
    k_.close_loop();
  }
  if (outermost && b2b_->dots.back().outermost == (next ? next : &step)->op) release_residents();
  return true;
}

std::vector<const B2bDot*> WgmmaB2b::dots_of(const Step& loop) const {
  std::vector<const B2bDot*> dots;
  for (const B2bDot& d : b2b_->dots)
    if (d.loop == loop.op) dots.push_back(&d);
  return dots;
}

WgmmaB2b::RoundForm WgmmaB2b::form_of(const Step& loop) const {
  const auto only_multiplies = [](const Step& s) {
    return s.kind == Step::Kind::scalar || s.kind == Step::Kind::dot;
  };
  if (dots_of(loop)[0]->is_nested() ||
      (b2b_->multiplies_alone() && std::all_of(loop.body[0].begin(), loop.body[0].end(), only_multiplies)))
    return RoundForm::pipeline;
  const bool overlap = rounds(schedule_) != tile::Rounds::apart && late_dot(*b2b_, *loop.op);
  return overlap ? RoundForm::overlapping : RoundForm::in_order;
}

// The loop whose rounds are printed with this one's: they take on its last product, or are its own rounds
// without their masks.
const printer::Step* WgmmaB2b::printed_with(const Step& loop) const {
  if (!b2b_->has_dots(*loop.op) || b2b_->scaled_accumulation()) return nullptr;
  switch (form_of(loop)) {
    case RoundForm::pipeline:
      return nullptr;
    case RoundForm::overlapping:
      return plan_.rounds.next_of(loop);
    case RoundForm::in_order:
      break;
  }
  for (std::size_t i = 0; i + 1 < loops_.steps.size(); ++i) {
    const Step& next = loops_.steps[i + 1];
    if (&loops_.steps[i] == &loop && goes_on(*b2b_, kernel_, loop, next) &&
        form_of(next) == RoundForm::in_order && shared_masks(loop, next))
      return &next;
  }
  return nullptr;
}

void WgmmaB2b::print_dots(const Step& loop) {
  const RoundForm form = form_of(loop);
  if (form == RoundForm::pipeline) return print_pipeline(loop, dots_of(loop));
  if (b2b_->scaled_accumulation() && warpgroups() > 1) out_.line("keep_step<{}>();", schedule_.threads);
  declare_parts(loop);
  if (form == RoundForm::overlapping) return print_overlapping(loop);
  print_in_order(loop);
}

// What is fetched once is there before the first loop of dots, and free after the last.
void WgmmaB2b::wait_for_residents() {
  for (std::size_t i = 0; i < b2b_->blocks.size(); ++i)
    if (b2b_->blocks[i].resident()) out_.line("wait_full({});", pipelines_[i].state);
}

// Each warp of a warpgroup waits for a stage by itself, and one thread gives it back for all of them. Where
// no product stands between, as in a program whose rounds are all left out, a warp that is late would find
// the stage filled once more, and wait for ever.
void WgmmaB2b::release_residents() {
  const bool any = std::any_of(b2b_->blocks.begin(), b2b_->blocks.end(),
                               [](const B2bBlock& block) { return block.resident(); });
  if (any) out_.write("OwnGroup::wait();");
  for (std::size_t i = 0; i < b2b_->blocks.size(); ++i)
    if (b2b_->blocks[i].resident()) release(static_cast<int>(i), pipelines_[i].state);
}

// A block that threads compute on: from shared memory into their registers, and free again.
bool WgmmaB2b::take_load(const PrintedLoop& loop, const Op& load, const Registers& r) {
  const auto found = b2b_->to_threads.find(&load);
  if (found == b2b_->to_threads.end()) return false;
  const int block = found->second;
  const B2bBlocks::Names& names = blocks_.names(block);
  const TmaPipeline& pipeline = pipelines_[static_cast<std::size_t>(block)];
  out_.line("wait_full({});", pipeline.state);
  registers_.for_registers(r, [&] {
    out_.line("{} = block_pair<{}>({} + {}.stage * {}::bytes, {}, {});", registers_.at(r), names.type,
              names.stage, pipeline.state, names.type, row_text(loop), col_text(loop));
  });
  out_.write("warpgroup_sync(group);");
  release(block, pipeline.state);
  return true;
}

void WgmmaB2b::release(int block, const std::string& state) {
  if (joins(block)) return;
  out_.line("release<{}>({});", launched_cluster(schedule_), state);
  out_.line("{}.next();", state);
}

const std::string& WgmmaB2b::state(const B2bDot& d, int block) const {
  const TmaPipeline& pipeline = pipelines_[static_cast<std::size_t>(block)];
  return !pipeline.late_state.empty() && late_dot(*b2b_, *d.loop) == &d ? pipeline.late_state
                                                                        : pipeline.state;
}

std::string WgmmaB2b::layout(const B2bDot& d, int block) const {
  return blocks_.layout(block, state(d, block) + ".stage");
}

// The registers that hold operand a.
Registers WgmmaB2b::left(const B2bDot& d) {
  const auto parts = parts_.find(loops_.storage(d.op->operands[0]));
  return parts == parts_.end() ? registers_.buffer(d.op->operands[0]) : parts->second;
}

// The blocks of a dot that come anew each round and are read by nobody before it.
void WgmmaB2b::wait(const B2bDot& d) {
  for (int block : {d.a, d.b})
    if (block >= 0 && !blocks_.is_resident(block) && blocks_.reads_first(d, block) && !joins(block))
      out_.line("wait_full({});", pipelines_[static_cast<std::size_t>(block)].state);
}

// Hands a product to the tensor cores.
void WgmmaB2b::issue(const B2bDot& d) { issue(d, d.from_zero ? "false" : "true"); }

void WgmmaB2b::issue(const B2bDot& d, const std::string& add) {
  const Registers acc = registers_.buffer(d.op->results[0]);
  const std::string b_type = blocks_.type(d.b, d.b_k_major);
  if (d.a >= 0)
    out_.line("wgmma_block<{}, {}, {}>({}, {}, {}, group, {});", blocks_.type(d.a, d.a_k_major), b_type,
              warpgroups(), acc.name, layout(d, d.a), layout(d, d.b), add);
  else
    out_.line("wgmma_block<{}>({}, {}, {}, {});", b_type, acc.name, left(d).name, layout(d, d.b), add);
}

// After a wait: the product's registers are the threads' own again, and the blocks nobody reads any more are
// free.
void WgmmaB2b::finish(const B2bDot& d) {
  out_.line("wgmma_pin({});", registers_.buffer(d.op->results[0]).name);
  if (d.a < 0) out_.line("wgmma_pin({});", left(d).name);
  for (int block : {d.a, d.b}) {
    if (block < 0 || blocks_.is_resident(block)) continue;
    if (blocks_.reads_last(d, block))
      release(block, state(d, block));
    else if (reads_last_early(d, block))
      out_.line("{}.next();", state(d, block));
  }
}

// The last but for the late one, which has a turn of its own.
bool WgmmaB2b::reads_last_early(const B2bDot& dot, int block) const {
  if (pipelines_[static_cast<std::size_t>(block)].late_state.empty()) return false;
  const B2bDot *last = nullptr, *late = late_dot(*b2b_, *dot.loop);
  for (const B2bDot& d : b2b_->dots)
    if (d.loop == dot.loop && &d != late && (d.a == block || d.b == block)) last = &d;
  return last == &dot;
}

}  // namespace tilewright::cuda
