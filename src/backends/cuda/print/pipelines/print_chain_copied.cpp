// Chains of dots under the schedule dot=mma: all threads copy the blocks of later rounds into shared memory
// (cp.async), multiply the present ones by mma.sync and carry out the element loops between. What a warp
// waits for, the others of its multiprocessor fill.
#include "backends/cuda/analysis/chain_plan.h"
#include "backends/cuda/print/kernel_printer.h"

#include <algorithm>

namespace tilewright::cuda {

using printer::Step;
using tile::Op;

void KernelPrinter::print_copied_chain_body() {
  need("mma_dot");
  index_scalars();
  name_chain();
  Text steps(1);
  std::swap(out_, steps);
  print_steps(loops_.steps);
  std::swap(out_, steps);
  print_chain_places();
  if (schedule_.stages > 1) out_.write("int turn = 0;  // which of a block's places is multiplied");
  out_.append(steps);
}

// One block's copy, by all threads: its place is counted from the block's first.
void KernelPrinter::print_chain_copy(int block, const Op& load, const std::string& place) {
  const ChainText& text = chain_text_[static_cast<std::size_t>(block)];
  TensorOperand o = chain_->blocks[static_cast<std::size_t>(block)].operand;
  o.load = &load;
  print_copy(text.type,
             plan_.places[static_cast<std::size_t>(block)] == 1
                 ? text.stage
                 : text.stage + " + " + place + " * " + text.type + "::bytes",
             o);
}

// What the dots around a loop read in all of its rounds is asked for before the first: it has arrived when
// the loop's own first blocks have, which are asked for later.
void KernelPrinter::copy_residents(const Op& outermost) {
  std::set<int> blocks;
  for (const ChainDot& d : chain_->dots)
    for (int block : {d.a, d.b})
      if (d.outermost == &outermost && block >= 0 &&
          chain_->blocks[static_cast<std::size_t>(block)].resident() && resident_copied_.insert(block).second)
        blocks.insert(block);
  for (int block : blocks)
    print_chain_copy(block, *chain_->blocks[static_cast<std::size_t>(block)].fetches.front().load, "0");
  if (!blocks.empty()) out_.write("copy_async_commit();");
}

// The copies of a round's blocks as functions, and those of the first rounds, in the order in which the
// rounds before would have asked for them.
void KernelPrinter::print_first_copies(const Step& loop, const std::vector<CopyPoint>& points,
                                       const CopiedLoop& names) {
  const Op& op = *loop.op;
  const tile::ValueId i = op.blocks[0].args[0];
  const std::set<tile::ValueId> needed = chain_starts(loop);
  for (const CopyPoint& point : points)
    for (const auto& [block, ahead] : point.copies) {
      const auto& fetches = chain_->blocks[static_cast<std::size_t>(block)].fetches;
      const auto fetch = std::find_if(fetches.begin(), fetches.end(),
                                      [&](const ChainBlock::Fetch& f) { return f.loop == &op; });
      TW_CHECK(fetch != fetches.end(), "a loop reads a block that it does not load");
      out_.open("const auto {} = [&](i64 at, int place)", names.copies.at(block));
      out_.open("if (at < {})", names.end);
      out_.line("const {0} {1} = {0}(at);", type_of(i), value_name(i));
      scalars_[i] = {value_name(i), type_of(i)};
      for (const Step& s : loop.body[0])
        if (s.kind == Step::Kind::scalar && !s.op->results.empty() && needed.count(s.op->results[0]) > 0)
          print_scalar(*s.op);
      print_chain_copy(block, *fetch->load, "place");
      out_.close();
      out_.close_with("};");
    }
  bool any = false;
  for (int round = -schedule_.stages; round < 0; ++round)
    for (const CopyPoint& point : points) {
      for (const auto& [block, ahead] : point.copies) {
        if (round + ahead < 0) continue;
        out_.line("{}({}, {});", names.copies.at(block), names.at(names.lower, round + ahead), round + ahead);
        any = true;
      }
      if (any) out_.write("copy_async_commit();");
    }
}

std::string KernelPrinter::CopiedLoop::at(const std::string& from, int rounds) const {
  return rounds == 0 ? from : rounds == 1 ? from + " + " + by : fmt::format("{} + {} * {}", from, rounds, by);
}

void KernelPrinter::print_copy_point(const CopyPoint& point, const CopiedLoop& names) {
  const int places = schedule_.stages;
  out_.line("copy_async_wait<{}>();", point.pending);
  out_.write("__syncthreads();");
  for (const auto& [block, ahead] : point.copies) {
    const std::string place = places == 1       ? "0"
                              : ahead == places ? "turn"
                                                : fmt::format("turn == 0 ? {} : turn - 1", places - 1);
    out_.line("{}({}, {});", names.copies.at(block), names.at(names.index, ahead), place);
  }
  out_.write("copy_async_commit();");
}

void KernelPrinter::print_copied_chain(const Step& loop) {
  const Op& op = *loop.op;
  const tile::ValueId i = op.blocks[0].args[0];
  const std::vector<CopyPoint>& points = plan_.copy_points.at(&op);
  CopiedLoop names{.index = value_name(i) + "_i",
                   .lower = wrapped(scalar(op.operands[0]).text),
                   .end = unique(value_name(i) + "_end"),
                   .by = unique(value_name(i) + "_step")};
  for (const CopyPoint& point : points)
    for (const auto& [block, ahead] : point.copies)
      names.copies[block] = unique("copy_" + chain_text_[static_cast<std::size_t>(block)].type);
  out_.line("const i64 {} = {}, {} = {};", names.end, scalar(op.operands[1]).text, names.by,
            scalar(op.operands[2]).text);
  print_first_copies(loop, points, names);
  if (schedule_.stages > 1) out_.write("turn = 0;");
  out_.open("for (i64 {0} = {1}; {0} < {2}; {0} += {3})", names.index, names.lower, names.end, names.by);
  out_.line("const {0} {1} = {0}({2});", type_of(i), value_name(i), names.index);
  scalars_[i] = {value_name(i), type_of(i)};
  ++loop_depth_;
  if (schedule_.stages > 1) print_copy_point(points.front(), names);
  for (const Step& step : loop.body[0]) {
    if (step.kind != Step::Kind::dot) {
      print_step(step);
      continue;
    }
    const ChainDot& d = *chain_->find(*step.op);
    for (const CopyPoint& point : points)
      if (schedule_.stages == 1 && point.dot == &d) print_copy_point(point, names);
    print_used_parts(d);
    print_chain_multiply(d);
  }
  if (schedule_.stages > 1) out_.line("turn = turn == {} ? 0 : turn + 1;", schedule_.stages - 1);
  --loop_depth_;
  out_.close();
  // Nothing is under way any more, and all have read what there was: what follows may use the places.
  out_.write("copy_async_wait<0>();");
  out_.write("__syncthreads();");
}

void KernelPrinter::print_chain_multiply(const ChainDot& d) {
  const Registers acc = buffer(d.op->results[0]);
  const std::string b_type = chain_type(d.b, d.b_k_major);
  if (d.a >= 0)
    out_.line("mma_block<{}, {}, {}, {}>({}, {}, {});", chain_type(d.a, d.a_k_major), b_type,
              schedule_.threads, layouts_.frame(acc.place).threads_per_row / kQuad, acc.name,
              chain_place(d, d.a), chain_place(d, d.b));
  else
    out_.line("mma_block<{}>({}, {}, {});", b_type, acc.name, chain_left(d).name, chain_place(d, d.b));
}

}  // namespace tilewright::cuda
