// A kernel as a whole: its head, its parameters and its body.
#include "backends/cuda/analysis/loop_policy.h"
#include "backends/cuda/plan/grid.h"
#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/print/pipeline.h"

#include <tilewright/base/error.h>

#include <fmt/ranges.h>

#include <algorithm>

namespace tilewright::cuda {

using printer::Step;
using tile::Op;
using tile::OpKind;

KernelPrinter::KernelPrinter(const tile::Kernel& kernel, const CudaPlan& plan)
    : kernel_(kernel),
      plan_(plan),
      schedule_(plan.schedule),
      loops_(plan.loops),
      ranges_(plan.ranges),
      layouts_(plan.layouts),
      dot_(plan.dots.dot),
      b2b_(plan.dots.b2b),
      facts_(kernel),
      accuracy_(facts_.accuracy),
      crowded_(crowded(kernel, plan.schedule)),
      names_(kernel, plan.loops) {}

backends::Source KernelPrinter::run(Pipeline& pipeline) {
  pipeline_ = &pipeline;
  const std::string parameters = signature();
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
  text += fmt::format("\nnamespace tw {{\n\nextern \"C\" __global__ void __launch_bounds__({}) {}({}) {{\n",
                      bounds, identifier(kernel_.name), parameters);
  text += head.str() + out_.str() + "}\n\n}  // namespace tw\n";

  backends::Source source;
  source.text = std::move(text);
  source.entry = identifier(kernel_.name);
  source.schedule = schedule_;
  // Blocks of a multicast have a program each.
  const Index programs = layouts_.programs_per_block * launched_cluster(schedule_) / row_cluster(schedule_);
  source.launch = {.threads = block_threads(schedule_),
                   .cluster = launched_cluster(schedule_),
                   .shared_bytes = plan_.shared.dynamic,
                   .programs_per_block = programs};
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
    else if (f.rows > 1)
      text +=
          f.row_groups() > 1 ? fmt::format("row r*{} + g of {}, ", f.row_groups(), f.row_steps()) : "row r, ";
    text += fmt::format("column (c*{} + t)*{} + v", f.row_threads(), f.vector);
    text += fmt::format("; {} rows, {} vectors of {} a thread\n", f.row_steps(), f.col_steps(), f.vector);
  }
  return text;
}

std::string KernelPrinter::signature() {
  std::vector<std::string> parameters;
  for (std::size_t i = 0; i < kernel_.views.size(); ++i) {
    const bool written = facts_.is_written(static_cast<int>(i));
    parameters.push_back(fmt::format("{}{}* __restrict__ {}", written ? "" : "const ",
                                     element_type(kernel_.views[i].dtype), names_.view(static_cast<int>(i))));
  }
  for (std::size_t i = 0; i < kernel_.scalars.size(); ++i)
    parameters.push_back(
        fmt::format("{} {}", element_type(kernel_.scalars[i].dtype), names_.scalar(static_cast<int>(i))));
  for (int axis : grid_parameters(kernel_)) parameters.push_back(fmt::format("i32 grid_{}", axis));
  for (const TensorBlock& block : plan_.maps) {
    map_names_.push_back(names_.unique(names_.stem(block.view) + "_map"));
    parameters.push_back("const __grid_constant__ TensorMap " + map_names_.back());
  }
  return fmt::format("{}", fmt::join(parameters, ", "));
}

PrinterState::PrinterState(KernelPrinter& k)
    : kernel_(k.kernel_),
      plan_(k.plan_),
      schedule_(k.schedule_),
      loops_(k.loops_),
      ranges_(k.ranges_),
      layouts_(k.layouts_),
      facts_(k.facts_),
      dot_(k.dot_),
      b2b_(k.b2b_),
      out_(k.out_),
      scalars_(k.scalars_),
      buffers_(k.buffers_),
      names_(k.names_),
      declared_(k.declared_),
      headers_(k.headers_),
      shared_(k.shared_),
      accuracy_(k.accuracy_),
      crowded_(k.crowded_),
      loop_depth_(k.loop_depth_),
      stepped_(k.stepped_) {}

PrinterParts::PrinterParts(KernelPrinter& k)
    : PrinterState(k), k_(k), expressions_(k.expressions_), registers_(k.registers_) {}

}  // namespace tilewright::cuda
