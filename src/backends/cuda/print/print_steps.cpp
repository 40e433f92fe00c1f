// The steps of a loop plan: scalars, control flow, what loops carry on.
#include "backends/cuda/analysis/overlap.h"
#include "backends/cuda/print/pipeline.h"

#include <algorithm>

namespace tilewright::cuda {

using printer::Step;
using tile::Op;
using tile::OpKind;

namespace {

// Anything but arithmetic on scalars.
bool touches_memory(const Step& step) {
  return step.kind != Step::Kind::scalar || step.op->results.empty() || step.op->kind == OpKind::load ||
         step.op->kind == OpKind::gather;
}

bool holds_exchange(const std::vector<Step>& steps) {
  bool found = false;
  for_each_step(steps, [&](const Step& step) {
    for (const printer::Instr& in : step.loop.body)
      found = found || in.kind == printer::Instr::Kind::reduce || in.kind == printer::Instr::Kind::scan;
  });
  return found;
}

}  // namespace

// Before the first exchange, and before code that runs many times or not at all and exchanges.
void ProgramPrinter::wait_for_cluster() {
  if (row_cluster(schedule_) == 1 || cluster_waited_) return;
  out_.write("cluster_wait();");
  cluster_waited_ = true;
}

// For the end of the kernel before, and for all that it wrote: before the first access to memory, since no
// view is known to be one that no kernel writes, and by all threads, since no block may end without having
// waited. If this kernel could be over before the one ahead of it, the one behind it, which waits for this
// one alone, would come too early.
void KernelPrinter::wait_for_previous() {
  if (previous_waited_ || !overlaps()) return;
  need("async");
  out_.write(std::string(kWaitForPrevious));
  previous_waited_ = true;
}

void ScalarPrinter::index_scalars() {
  for (const Step& step : loops_.steps)
    if (step.kind == Step::Kind::scalar && !step.op->results.empty())
      definitions_[step.op->results[0]] = step.op;
}

const Op* ScalarPrinter::scalar_definition(ValueId v) const {
  const auto found = definitions_.find(v);
  return found == definitions_.end() ? nullptr : found->second;
}

std::string ScalarPrinter::scalar_line(ValueId v) const {
  const auto found = lines_.find(v);
  return found == lines_.end() ? "" : found->second;
}

tile::ValueId ScalarPrinter::same_scalar(ValueId v) const {
  const auto same = same_.find(v);
  return same == same_.end() ? v : same->second;
}

// Buffers first touched inside a nested block must be there before it.
void KernelPrinter::declare_buffers(const std::vector<Step>& steps) {
  const auto declare = [&](ValueId v) {
    const ValueId s = loops_.storage(v);
    if (kernel_.type(s).rank() == 0 || !layouts_.buffers.count(s)) return;
    if (!declared_.insert(s).second) return;
    std::string text = registers_.declaration(registers_.buffer(s));
    // Its first product ignores what is there; to the compiler it would be there since the kernel began.
    if (b2b_ && std::any_of(b2b_->dots.begin(), b2b_->dots.end(), [&](const B2bDot& d) {
          return d.loop_from_zero && loops_.storage(d.op->results[0]) == s;
        }))
      text.insert(text.rfind(';'), " = {}");
    out_.write(text);
  };
  for (const Step& step : steps) {
    if (step.kind == Step::Kind::elements)
      for (const Instr& in : step.loop.body)
        if (in.kind != Instr::Kind::compute && in.value >= 0) declare(in.value);
    if (step.kind == Step::Kind::dot || step.kind == Step::Kind::relayout) declare(step.op->results[0]);
    for (auto [from, to] : step.moves) declare(to);
    for (const auto& body : step.body) declare_buffers(body);
  }
}

// In threads that have waited for the kernel before; others wait for themselves.
void KernelPrinter::print_steps_after_wait(const std::vector<Step>& steps) {
  previous_waited_ = true;
  print_steps(steps);
  previous_waited_ = false;
}

void KernelPrinter::print_steps(const std::vector<Step>& steps) {
  for (const Step& step : steps) print_step(step);
}

void KernelPrinter::print_step(const Step& step) {
  if (touches_memory(step)) wait_for_previous();
  if (step.kind != Step::Kind::scalar && loop_depth_ == 0) out_.blank();
  switch (step.kind) {
    case Step::Kind::scalar:
      return scalar_printer_.print_scalar(*step.op);
    case Step::Kind::elements:
      return elements_.print_elements(step.loop);
    case Step::Kind::relayout:
      return exchanges_.print_relayout(step);
    case Step::Kind::dot:
      return exchanges_.print_dot(step);
    case Step::Kind::loop:
      return print_loop(step);
    case Step::Kind::branch:
      return print_branch(step);
    case Step::Kind::assign:
      return print_assign(step);
  }
}

void ScalarPrinter::print_scalar(const Op& op) {
  if (op.results.empty()) return print_scalar_effect(op);
  const ValueId v = op.results[0];
  switch (op.kind) {
    case OpKind::constant:
      scalars_[v] = {literal(kernel_.type(v).dtype, op.number), expressions_.type_of(v)};
      return;
    case OpKind::scalar_param:
      scalars_[v] = {names_.scalar(op.param), compute_type(kernel_.type(v).dtype)};
      return;
    case OpKind::program_id:
      scalars_[v] = {k_.programs().axis_name(op.param), "i32"};
      return;
    case OpKind::broadcast:
    case OpKind::reshape:
      scalars_[v] = expressions_.scalar(op.operands[0]);
      return;
    default:
      break;
  }
  const bool needs_variable = declared_.count(v) > 0;
  if (!needs_variable && uses_.is_unused(v)) return;
  TypedText e;
  if (op.kind == OpKind::load) {
    e = expressions_.scalar_load(op);
  } else {
    std::vector<TypedText> operands;
    operands.reserve(op.operands.size());
    for (ValueId o : op.operands) operands.push_back(expressions_.scalar(o));
    e = expressions_.compute(op, operands);
  }
  const std::string type = expressions_.type_of(v);
  if (!needs_variable && uses_.is_part_of_another(v)) {
    scalars_[v] = {expressions_.as_type(e, type), type, e.operations};
    return;
  }
  if (!needs_variable && loop_depth_ == 0 && uses_.is_of_program(v)) {
    const auto [same, is_new] = equal_.insert({type + " " + expressions_.as_type(e, type), v});
    if (!is_new) {
      same_[v] = same->second;
      scalars_[v] = expressions_.scalar(same->second);
      return;
    }
  }
  const std::string declares = needs_variable ? "" : fmt::format("const {} ", type);
  const std::string line =
      fmt::format("{}{} = {};", declares, names_.value(v), expressions_.as_type(e, type));
  lines_[v] = line;
  out_.write(line);
  scalars_[v] = {names_.value(v), type};
}

void KernelPrinter::print_loop(const Step& step) {
  if (pipeline_->print_loop(step)) return;
  declare_buffers(step.body[0]);
  if (holds_exchange(step.body[0])) programs_.wait_for_cluster();
  open_loop(step);
  print_steps(step.body[0]);
  close_loop();
}

// Bounds may be wider than the induction value: an empty loop's upper bound can be anything.
bool KernelPrinter::counts_in_32_bits(const Op& loop) const {
  constexpr Index kMost = std::numeric_limits<std::int32_t>::max();
  const printer::ValueRange &end = expressions_.range(loop.operands[1]),
                            &step = expressions_.range(loop.operands[2]);
  return expressions_.range(loop.operands[0]).fits_i32() && end.fits_i32() && step.fits_i32() &&
         end.high + step.high <= kMost;
}

void KernelPrinter::open_loop(const Step& step) {
  const Op& op = *step.op;
  const ValueId i = op.blocks[0].args[0];
  const std::string type = expressions_.type_of(i), name = names_.value(i);
  const std::string from = expressions_.scalar(op.operands[0]).text,
                    upper = expressions_.scalar(op.operands[1]).text,
                    step_text = expressions_.scalar(op.operands[2]).text;
  if (type == "i32" && counts_in_32_bits(op)) {
    out_.open("for (i32 {0} = {1}; {0} < {2}; {0} += {3})", name, from, upper, step_text);
  } else {
    const std::string end = out_.local(name + "_end"), by = out_.local(name + "_step");
    out_.line("const i64 {} = {}, {} = {};", end, upper, by, step_text);
    const std::string wide = out_.local(name + "_i");
    out_.open("for (i64 {0} = {1}; {0} < {2}; {0} += {3})", wide, from, end, by);
    out_.line("const {0} {1} = {0}({2});", type, name, wide);
  }
  scalars_[i] = {name, type};
  ++loop_depth_;
}

void KernelPrinter::close_loop() {
  --loop_depth_;
  out_.close();
}

void KernelPrinter::print_branch(const Step& step) {
  const Op& op = *step.op;
  for (ValueId r : op.results) {
    if (kernel_.type(r).rank() > 0) continue;
    declared_.insert(r);
    scalars_[r] = {names_.value(r), expressions_.type_of(r)};
    out_.line("{} {};", expressions_.type_of(r), names_.value(r));
  }
  declare_buffers(step.body[0]);
  declare_buffers(step.body[1]);
  if (holds_exchange(step.body[0]) || holds_exchange(step.body[1])) programs_.wait_for_cluster();
  out_.open("if ({})", expressions_.scalar(op.operands[0]).text);
  ++loop_depth_;  // as in a loop: the two sides share nothing
  print_steps(step.body[0]);
  if (!step.body[1].empty()) {
    out_.close_else();
    print_steps(step.body[1]);
  }
  --loop_depth_;
  out_.close();
}

// All right sides are read before any left side is written.
void KernelPrinter::print_assign(const Step& step) {
  std::vector<std::pair<ValueId, std::string>> scalars;
  for (auto [from, to] : step.moves) {
    if (kernel_.type(to).rank() > 0) continue;
    const std::string type = expressions_.type_of(to);
    if (step.moves.size() == 1) {
      scalars.push_back({to, expressions_.as_type(expressions_.scalar(from), type)});
    } else {
      const std::string next = out_.local("next_" + names_.value(to));
      out_.line("const {} {} = {};", type, next, expressions_.as_type(expressions_.scalar(from), type));
      scalars.push_back({to, next});
    }
  }
  for (auto& [to, text] : scalars) {
    const bool fresh = declared_.insert(to).second;
    out_.line("{}{} = {};", fresh ? expressions_.type_of(to) + " " : "", names_.value(to), text);
    scalars_[to] = {names_.value(to), expressions_.type_of(to)};
  }
  // Tiles: copies through temporaries keep "all at once", which one alone is; the compiler renames registers.
  const auto is_tile = [&](const auto& move) { return kernel_.type(move.second).rank() > 0; };
  const bool alone = std::count_if(step.moves.begin(), step.moves.end(), is_tile) == 1;
  std::vector<std::pair<Registers, Registers>> tiles;
  for (auto [from, to] : step.moves) {
    if (kernel_.type(to).rank() == 0) continue;
    const Registers target = registers_.buffer(to);
    Registers source = exchanges_.converted(from, target.layout);
    Registers copy = source;
    if (!alone) {
      copy.name = out_.local(source.name + "_old");
      out_.write(registers_.declaration(copy));
      registers_.for_registers(copy,
                               [&] { out_.line("{} = {};", registers_.at(copy), registers_.at(source)); });
    }
    tiles.push_back({copy, target});
  }
  for (auto& [copy, target] : tiles)
    registers_.for_registers(copy,
                             [&] { out_.line("{} = {};", registers_.at(target), registers_.at(copy)); });
}

}  // namespace tilewright::cuda
