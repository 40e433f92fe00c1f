// The text of back-to-back dots by mma.sync.
#include "backends/cuda/print/pipelines/cp_async_b2b.h"

#include "backends/cuda/print/pipelines/cp_async_dot.h"

#include <algorithm>

namespace tilewright::cuda {

void CpAsyncB2b::print_body() {
  need("mma_dot");
  k_.scalars().index_scalars();
  blocks_.choose_names();
  Text steps = out_.another(1);
  std::swap(out_, steps);
  k_.print_steps(loops_.steps);
  std::swap(out_, steps);
  blocks_.print_stages("block_stage()");
  if (stages(schedule_) > 1) out_.write("int stage = 0;  // which of a block's places is multiplied");
  out_.append(steps);
}

bool CpAsyncB2b::print_loop(const Step& step) {
  const bool outermost = b2b_->is_outermost(*step.op), multiplies = b2b_->has_dots(*step.op);
  if (!outermost && !multiplies) return false;
  k_.declare_buffers(step.body[0]);
  if (outermost) copy_residents(*step.op);
  if (multiplies) {
    print_dots(step);
  } else {
    k_.open_loop(step);
    k_.print_steps(step.body[0]);
    k_.close_loop();
  }
  return true;
}

// One block's copy, by all threads: its stage is counted from the block's first.
void CpAsyncB2b::copy(int block, const Op& load, const std::string& stage) {
  TensorOperand o = b2b_->blocks[static_cast<std::size_t>(block)].operand;
  o.load = &load;
  print_copy(k_, blocks_.names(block).type, blocks_.layout(block, stage), o);
}

// What the dots around a loop read in all of its rounds is asked for before the first: it has arrived when
// the loop's own first blocks have, which are asked for later.
void CpAsyncB2b::copy_residents(const Op& outermost) {
  std::set<int> blocks;
  for (const B2bDot& d : b2b_->dots)
    for (int block : {d.a, d.b})
      if (d.outermost == &outermost && block >= 0 && blocks_.is_resident(block) &&
          resident_copied_.insert(block).second)
        blocks.insert(block);
  for (int block : blocks)
    copy(block, *b2b_->blocks[static_cast<std::size_t>(block)].fetches.front().load, "0");
  if (!blocks.empty()) out_.write("copy_async_commit();");
}

// The copies of a round's blocks as functions, and those of the first rounds, in the order in which the
// rounds before would have asked for them.
void CpAsyncB2b::print_first_copies(const Step& loop, const std::vector<CopyPoint>& points,
                                    const CopiedLoop& names) {
  const Op& op = *loop.op;
  const tile::ValueId i = op.blocks[0].args[0];
  const std::set<tile::ValueId> needed = blocks_.starts(loop);
  for (const CopyPoint& point : points)
    for (const auto& [block, ahead] : point.copies) {
      const auto& fetches = b2b_->blocks[static_cast<std::size_t>(block)].fetches;
      const auto fetch = std::find_if(fetches.begin(), fetches.end(),
                                      [&](const B2bBlock::Fetch& f) { return f.loop == &op; });
      TW_CHECK(fetch != fetches.end(), "a loop reads a block that it does not load");
      out_.open("const auto {} = [&](i64 at, int stage)", names.copies.at(block));
      out_.open_if_needed("if (at < {})", names.end);
      out_.line("const {0} {1} = {0}(at);", expressions_.type_of(i), names_.value(i));
      scalars_[i] = {names_.value(i), expressions_.type_of(i)};
      blocks_.print_starts(loop, needed);
      copy(block, *fetch->load, "stage");
      out_.close();
      out_.close_with("};");
    }
  bool any = false;
  for (int round = -stages(schedule_); round < 0; ++round)
    for (const CopyPoint& point : points) {
      for (const auto& [block, ahead] : point.copies) {
        if (round + ahead < 0) continue;
        out_.line("{}({}, {});", names.copies.at(block), names.at(names.lower, round + ahead), round + ahead);
        any = true;
      }
      if (any) out_.write("copy_async_commit();");
    }
}

std::string CpAsyncB2b::CopiedLoop::at(const std::string& from, int rounds) const {
  return rounds == 0 ? from : rounds == 1 ? from + " + " + by : fmt::format("{} + {} * {}", from, rounds, by);
}

void CpAsyncB2b::print_copy_point(const CopyPoint& point, const CopiedLoop& names) {
  const int all = stages(schedule_);
  out_.line("copy_async_wait<{}>();", point.pending);
  out_.write("__syncthreads();");
  for (const auto& [block, ahead] : point.copies) {
    const std::string stage = all == 1       ? "0"
                              : ahead == all ? "stage"
                                             : fmt::format("stage == 0 ? {} : stage - 1", all - 1);
    out_.line("{}({}, {});", names.copies.at(block), names.at(names.index, ahead), stage);
  }
  out_.write("copy_async_commit();");
}

void CpAsyncB2b::print_dots(const Step& loop) {
  const Op& op = *loop.op;
  const tile::ValueId i = op.blocks[0].args[0];
  const std::vector<CopyPoint>& points = plan_.copy_points.at(&op);
  CopiedLoop names{.index = out_.local(names_.value(i) + "_i"),
                   .lower = wrapped(expressions_.scalar(op.operands[0])),
                   .end = out_.local(names_.value(i) + "_end"),
                   .by = out_.local(names_.value(i) + "_step")};
  for (const CopyPoint& point : points)
    for (const auto& [block, ahead] : point.copies)
      names.copies[block] = out_.local("copy_" + blocks_.names(block).type);
  out_.line("const i64 {} = {}, {} = {};", names.end, expressions_.scalar(op.operands[1]).text, names.by,
            expressions_.scalar(op.operands[2]).text);
  print_first_copies(loop, points, names);
  if (stages(schedule_) > 1) out_.write("stage = 0;");
  out_.open("for (i64 {0} = {1}; {0} < {2}; {0} += {3})", names.index, names.lower, names.end, names.by);
  out_.line("const {0} {1} = {0}({2});", expressions_.type_of(i), names_.value(i), names.index);
  scalars_[i] = {names_.value(i), expressions_.type_of(i)};
  ++loop_depth_;
  if (stages(schedule_) > 1) print_copy_point(points.front(), names);
  for (const Step& step : loop.body[0]) {
    if (step.kind != Step::Kind::dot) {
      k_.print_step(step);
      continue;
    }
    const B2bDot& d = *b2b_->find(*step.op);
    for (const CopyPoint& point : points)
      if (stages(schedule_) == 1 && point.dot == &d) print_copy_point(point, names);
    if (blocks_.zero_unused(d, schedule_.threads, [&](int block) { return stage(block); }))
      out_.write("__syncthreads();");
    multiply(d);
  }
  if (stages(schedule_) > 1) out_.line("stage = stage == {} ? 0 : stage + 1;", stages(schedule_) - 1);
  --loop_depth_;
  out_.close();
  // Waits until no copy is under way and all threads have read their blocks: what follows may use the stages.
  out_.write("copy_async_wait<0>();");
  out_.write("__syncthreads();");
}

void CpAsyncB2b::multiply(const B2bDot& d) {
  const Registers acc = registers_.buffer(d.op->results[0]);
  const std::string b_type = blocks_.type(d.b, d.b_k_major);
  if (d.a >= 0)
    out_.line("mma_block<{}, {}, {}, {}>({}, {}, {});", blocks_.type(d.a, d.a_k_major), b_type,
              schedule_.threads, layouts_.frame(acc.layout).threads_per_row / kQuad, acc.name, stage(d.a),
              stage(d.b));
  else
    out_.line("mma_block<{}>({}, {}, {});", b_type, acc.name, registers_.buffer(d.op->operands[0]).name,
              stage(d.b));
}

}  // namespace tilewright::cuda
