// A kernel as a whole: its head, its parameters, and its steps: control flow and what loops carry on.
#include "backends/cuda/print/kernel_printer.h"

#include "backends/cuda/analysis/overlap.h"
#include "backends/cuda/machine/target.h"
#include "backends/cuda/plan/grid.h"
#include "backends/cuda/print/pipeline.h"

#include <tilewright/base/error.h>

#include <fmt/ranges.h>

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

backends::Source KernelPrinter::run(Pipeline& pipeline) {
  pipeline_ = &pipeline;
  name_parameters();
  if (row_cluster(schedule_) > 1) need("cluster_exchange");
  pipeline.print_body();
  wait_for_previous();  // of a kernel that touches no memory, too
  TW_CHECK(elements_.reductions().is_complete(), "a maximum waits for a sum that no loop prints");

  Text head = out_.another(1);
  for (const std::string& s : shared_) head.write(s);
  programs_.print_thread_coordinates(head);
  std::string text = header_comment();
  need("edge");
  need("exchange");
  for (const std::string& h : headers_) text += fmt::format("#include \"tw_cuda/{}.cuh\"\n", h);
  std::string bounds = fmt::format("{}", block_threads(schedule_));
  if (is_wgmma(schedule_))
    bounds += ", 1";  // setmaxnreg wants the number
  else if (const auto* blocks = std::get_if<tile::FmaBlocks>(&schedule_.kind);
           blocks && blocks->programs_per_sm > 0)
    bounds += fmt::format(", {}", blocks->programs_per_sm);
  const std::string body = head.str() + out_.str(), entry = identifier(kernel_.name),
                    global =
                        fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}", bounds, entry);
  text += "\nnamespace tw {\n\n";
  if (together() > 1)
    text += print_together(global, body);
  else
    text += fmt::format("{}({}) {{\n{}}}\n", global, signature(), body);
  text += "\n}  // namespace tw\n";

  backends::Source source;
  source.text = std::move(text);
  source.entry = identifier(kernel_.name);
  source.schedule = schedule_;
  // Blocks of a multicast have a program each.
  const Index programs = layouts_.programs_per_block * launched_cluster(schedule_) / row_cluster(schedule_);
  source.launch = {.threads = block_threads(schedule_),
                   .cluster = launched_cluster(schedule_),
                   .shared_bytes = plan_.shared.dynamic,
                   .programs_per_block = programs,
                   .together = together()};
  return source;
}

std::string KernelPrinter::header_comment() const {
  std::string text = fmt::format("// {}: ", kernel_.name);
  const auto dims = [&](const std::vector<tile::Dim>& all) {
    std::vector<std::string> parts;
    parts.reserve(all.size());
    for (const tile::Dim& d : all)
      parts.push_back(d.is_constant() ? fmt::format("{}", d.value)
                                      : kernel_.scalars[static_cast<std::size_t>(d.scalar)].name);
    return fmt::format("[{}]", fmt::join(parts, ","));
  };
  std::vector<std::string> reads, writes;
  for (std::size_t i = 0; i < kernel_.views.size(); ++i) {
    const tile::ViewParam& v = kernel_.views[i];
    const std::string shape = fmt::format("{} {}{}", v.name, name(v.dtype), dims(v.extents));
    if (facts_.view_uses[i].read) reads.push_back(shape);
    if (facts_.is_written(static_cast<int>(i))) writes.push_back(shape);
  }
  text += fmt::format("{} -> {}\n", fmt::join(reads, ", "), fmt::join(writes, ", "));
  text += fmt::format("// schedule: {}\n", to_string(schedule_));
  for (const TileFrame& f : layouts_.frames) {
    if (f.rows * f.cols == 1) continue;
    text += fmt::format("// tiles [{},{}]: ", f.rows, f.cols);
    if (f.map == RowMap::mma)
      text += "as tensor cores accumulate: row g, g + 8 and so on, ";
    else if (f.map == RowMap::runs && f.row_groups() > 1)
      text += fmt::format("row g*{} + r of {}, ", f.row_steps(), f.rows);
    else if (f.rows > 1)
      text +=
          f.row_groups() > 1 ? fmt::format("row r*{} + g of {}, ", f.row_groups(), f.row_steps()) : "row r, ";
    text += fmt::format("column (c*{} + t)*{} + v{}", f.row_threads(), f.vector, f.shifted ? " - shift" : "");
    text += fmt::format("; {} rows, {} vectors of {} a thread\n", f.row_steps(), f.col_steps(), f.vector);
  }
  return text;
}

// Launches at once: blocks of one row of the grid have one launch's arguments. Maps of tensors are no part of
// them.
int KernelPrinter::together() const {
  if (!plan_.maps.empty() || kernel_.views.empty()) return 1;
  constexpr auto kArgument = static_cast<Index>(sizeof(std::uint64_t));  // the widest
  const Index most = kArgumentBytes / (kArgument * static_cast<Index>(parameters_.size()));
  return static_cast<int>(std::clamp<Index>(kernel_.together, 1, std::max<Index>(most, 1)));
}

// A kernel for several launches at once: it finds the arguments of the launch that a block is of in a table.
std::string KernelPrinter::print_together(const std::string& global, const std::string& body) const {
  const std::string entry = identifier(kernel_.name);
  std::string members, arguments;
  for (const Parameter& p : parameters_) {
    members += fmt::format("  {} {};\n", p.type, p.name);
    arguments += fmt::format("{}launch.{}", arguments.empty() ? "" : ", ", p.name);
  }
  std::string text = fmt::format("struct {}_arguments {{\n{}}};\n", entry, members);
  text += fmt::format("struct {0}_table {{\n  {0}_arguments at[{1}];\n}};\n\n", entry, together());
  text += fmt::format("static __device__ __forceinline__ void {}_once({}) {{\n{}}}\n\n", entry, signature(),
                      body);
  text += fmt::format("{}(const __grid_constant__ {}_table launches) {{\n", global, entry);
  text += fmt::format("  const {}_arguments& launch = launches.at[blockIdx.y];\n", entry);
  return text + fmt::format("  {}_once({});\n}}\n", entry, arguments);
}

void KernelPrinter::name_parameters() {
  for (std::size_t i = 0; i < kernel_.views.size(); ++i) {
    const bool written = facts_.is_written(static_cast<int>(i));
    parameters_.push_back({fmt::format("{}{}*", written ? "" : "const ", kernel_.views[i].dtype),
                           names_.view(static_cast<int>(i)), true});
  }
  for (std::size_t i = 0; i < kernel_.scalars.size(); ++i)
    parameters_.push_back(
        {fmt::format("{}", kernel_.scalars[i].dtype), names_.scalar(static_cast<int>(i)), false});
  for (int axis : grid_parameters(kernel_))
    parameters_.push_back({"i32", fmt::format("grid_{}", axis), false});
  for (const TensorBlock& block : plan_.maps) {
    map_names_.push_back(names_.unique(names_.stem(block.view) + "_map"));
    parameters_.push_back({"const __grid_constant__ TensorMap", map_names_.back(), false});
  }
}

std::string KernelPrinter::signature() const {
  std::vector<std::string> parts;
  parts.reserve(parameters_.size());
  for (const Parameter& p : parameters_)
    parts.push_back(fmt::format("{}{} {}", p.type, p.is_address ? " __restrict__" : "", p.name));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Prints the wait for the end of the kernel before, and for all that it wrote. It stands before the first
// access to memory, since any view may be one that a kernel writes. All threads wait, so that no block ends
// without having waited: were this kernel over before the one ahead of it, the one behind it, which waits for
// this one alone, would come too early.
void KernelPrinter::wait_for_previous() {
  if (previous_waited_ || !overlaps()) return;
  need("async");
  out_.write(std::string(kWaitForPrevious));
  previous_waited_ = true;
}

// Buffers first touched inside a nested block must be there before it.
void KernelPrinter::declare_buffers(const std::vector<Step>& steps) {
  const auto declare = [&](ValueId v) {
    const ValueId s = loops_.storage(v);
    if (kernel_.type(s).rank() == 0 || !layouts_.buffers.count(s)) return;
    if (!declared_.insert(s).second) return;
    // Its first product ignores what is there; to the compiler it would be there since the kernel began.
    const bool zeros = b2b_ && std::any_of(b2b_->dots.begin(), b2b_->dots.end(), [&](const B2bDot& d) {
                         return d.loop_from_zero && loops_.storage(d.op->results[0]) == s;
                       });
    const Registers r = registers_.buffer(s);
    out_.write(zeros ? registers_.declaration_of_zeros(r) : registers_.declaration(r));
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

// Prints steps of threads that have waited for the kernel before; others wait for themselves.
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
      return step.op->kind == OpKind::argsort ? exchanges_.print_argsort(step)
                                              : exchanges_.print_relayout(step);
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
  const DType type = expressions_.type_of(i);
  const std::string name = names_.value(i);
  const std::string from = expressions_.scalar(op.operands[0]).text,
                    upper = expressions_.scalar(op.operands[1]).text,
                    step_text = expressions_.scalar(op.operands[2]).text;
  if (type == DType::i32 && counts_in_32_bits(op)) {
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
  out_.open_if_needed("if ({})", expressions_.scalar(op.operands[0]).text);
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
    const DType type = expressions_.type_of(to);
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
    out_.line("{}{} = {};", fresh ? fmt::format("{} ", expressions_.type_of(to)) : "", names_.value(to),
              text);
    scalars_[to] = {names_.value(to), expressions_.type_of(to)};
  }
  // Tiles: what a move before overwrites is copied first.
  std::set<ValueId> overwritten;
  std::vector<std::pair<Registers, Registers>> tiles;
  for (auto [from, to] : step.moves) {
    if (kernel_.type(to).rank() == 0) continue;
    const bool alone = overwritten.count(loops_.storage(from)) == 0;
    overwritten.insert(loops_.storage(to));
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
