// The text of a loop of one dot under wgmma.
#include "backends/cuda/print/pipelines/wgmma_dot.h"

#include "backends/cuda/print/pipelines/cp_async_dot.h"

#include <fmt/format.h>

namespace tilewright::cuda {

bool WgmmaDot::print_loop(const Step& step) {
  if (step.op != dot_->loop) return false;
  k_.declare_buffers(step.body[0]);
  print_rounds(*step.op);
  return true;
}

void WgmmaDot::print_pipelines() {
  print_dot_blocks(k_);
  out_.line("__shared__ TmaPipeline<{}> pipeline;", stages(schedule_));
  out_.line("open_pipeline<{}, 1>(pipeline);", dot_warpgroups(schedule_));
  out_.line("PipelineState<{}> state(barriers_of(pipeline));", stages(schedule_));
}

std::string WgmmaDot::end_of_blocks() const {
  return fmt::format("b_blocks + {} * B::bytes", stages(schedule_));
}

void WgmmaDot::print_fetching() {
  for (const Step& step : loops_.steps)
    if (step.op == dot_->loop) print_fetching(step);
}

void WgmmaDot::print_fetching(const Step& loop) {
  for (ValueId v : loop.op->operands) foresight_.print(v);
  for (const TensorOperand* o : {&dot_->a, &dot_->b})
    for (ValueId v : o->load->operands) foresight_.print(v);
  for (const Step& s : loop.body[0])
    if (s.kind == Step::Kind::scalar)
      for (ValueId v : s.op->operands) foresight_.print(v);
  open_dot_loop(*loop.op);
  for (const Step& s : loop.body[0])
    if (s.kind == Step::Kind::scalar) k_.scalars().print_scalar(*s.op);
  out_.write("Barrier& full = refill(pipeline, state, A::bytes + B::bytes);");
  print_block_loads({"A", "a_blocks", "state", "full", k_.map_name(0)}, dot_->a, plan_.maps[0]);
  print_block_loads({"B", "b_blocks", "state", "full", k_.map_name(1)}, dot_->b, plan_.maps[1]);
  out_.write("state.next();");
  out_.close();
}

// Warpgroups that multiply one tile begin it together; those that have their own pass over the blocks of the
// others' and wait for their turn.
void WgmmaDot::print_turn(const Op& loop) {
  if (!is_pingpong(schedule_)) {
    if (schedule_.threads > kWarpgroup) out_.line("keep_step<{}>();", schedule_.threads);
    return;
  }
  const std::string trips =
      dot_->trips > 0 ? integer(dot_->trips)
                      : fmt::format("trip_count({}, {}, {})", expressions_.scalar(loop.operands[0]).text,
                                    expressions_.scalar(loop.operands[1]).text,
                                    expressions_.scalar(loop.operands[2]).text);
  out_.line("state.skip(passed * {});", trips);
  out_.line("passed = {};", warpgroups() - 1);
  out_.write("pingpong_wait(group);");
}

// The multiplying side: while the tensor cores work on one block, the one before is given back.
void WgmmaDot::print_rounds(const Op& op) {
  const Registers acc = registers_.buffer(dot_->dot->results[0]);
  const std::string i = names_.value(op.blocks[0].args[0]), lower = expressions_.scalar(op.operands[0]).text;
  const std::string release = "release_previous<1>(state);";
  const std::string give =
      is_pingpong(schedule_) ? fmt::format("pingpong_signal<{}>(group);", warpgroups()) : "";
  const std::string blocks =
      fmt::format("{}, a_blocks + state.stage * A::bytes, b_blocks + state.stage * B::bytes, {}", acc.name,
                  is_pingpong(schedule_) ? "0" : "group");
  if (!plan_.elements.fetched.empty()) k_.elements().print_first_pieces();
  print_turn(op);
  open_dot_loop(op);
  out_.write("wait_full(state);");
  if (dot_->two_level) {
    out_.line("wgmma_two_level<A, B, {}>({});", dot_warpgroups(schedule_), blocks);
    out_.write("release<1>(state);");
    out_.write("state.next();");
    out_.close();
    if (!give.empty()) out_.write(give);
    return;
  }
  out_.line("wgmma_block<A, B, {}>({}, {});", dot_warpgroups(schedule_), blocks,
            dot_->from_zero ? fmt::format("{} > {}", i, lower) : "true");
  out_.write("wgmma_wait<1>();");
  out_.line("if ({} > {}) {}", i, lower, release);
  out_.write("state.next();");
  out_.close();
  if (!give.empty()) out_.write(give);  // the other's first products are handed over behind these last ones
  out_.write("wgmma_wait<0>();");
  out_.line("wgmma_pin({});", acc.name);
  if (dot_->from_zero)
    out_.write(release);
  else
    out_.line("if ({} < {}) {}", lower, expressions_.scalar(op.operands[1]).text, release);
}

}  // namespace tilewright::cuda
