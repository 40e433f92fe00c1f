// simplify → materialize → fuse → lower each group → plan memory.
#include "passes/pipeline.h"

#include "passes/lower.h"
#include "passes/simplify.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <map>
#include <utility>

namespace tilewright::passes {

using ir::NodeId;
using ir::OpClass;
using tile::Plan;
using tile::PlanBuffer;
using tile::PlanStep;

namespace {

class PlanWriter {
 public:
  PlanWriter(Compiled& compiled, const tile::Target& target, const PipelineOptions& options)
      : out_(compiled), graph_(compiled.graph), target_(target), options_(options) {}

  void run() {
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i)
      add_buffer(graph_.inputs()[i], PlanBuffer::Role::input, static_cast<int>(i));
    std::vector<std::pair<int, int>> repeats;  // output named twice: copied from its first place
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const NodeId stored = storage_node(graph_, graph_.outputs()[i]);
      if (buffer_of_.count(stored)) {
        const int first = buffer_of_.at(stored);
        repeats.push_back({first, static_cast<int>(out_.plan.buffers.size())});
        out_.plan.buffers.push_back(describe(stored, PlanBuffer::Role::output, static_cast<int>(i)));
      } else {
        add_buffer(stored, PlanBuffer::Role::output, static_cast<int>(i));
      }
    }
    for (const Group& g : out_.fusion.groups) add_group(g);
    for (auto [from, to] : repeats)
      out_.plan.steps.push_back({.kind = PlanStep::Kind::copy, .buffer = to, .from = from});
    plan_memory(out_.plan);
  }

 private:
  PlanBuffer describe(NodeId id, PlanBuffer::Role role, int position) const {
    const ir::Type& type = graph_.type(id);
    return {role, position, type.dtype, type.shape.size(), -1};
  }

  int add_buffer(NodeId id, PlanBuffer::Role role, int position) {
    out_.plan.buffers.push_back(describe(id, role, position));
    return buffer_of_[id] = static_cast<int>(out_.plan.buffers.size()) - 1;
  }

  int buffer(NodeId id) {
    const NodeId stored = storage_node(graph_, id);
    if (auto it = buffer_of_.find(stored); it != buffer_of_.end()) return it->second;
    return add_buffer(stored, PlanBuffer::Role::temporary, -1);
  }

  std::string kernel_name(const Group& g) const {
    // The names of the ops that shape the kernel, shortened.
    std::string text;
    int shown = 0;
    for (NodeId id : g.nodes) {
      const std::string_view op = graph_.node(id).op->name;
      if (op == "cast" && g.nodes.size() > 1) continue;
      if (shown++ == 4) break;
      text += (text.empty() ? "" : "_") + std::string(op);
    }
    if (text.empty()) text = "copy";
    return fmt::format("{}_{}", text, out_.plan.kernels.size());
  }

  void add_group(const Group& g) {
    auto built = build_program(graph_, g);
    if (auto* refusal = std::get_if<Refusal>(&built))
      throw Error(fmt::format("{}: this program cannot be lowered: {}", graph_.node(g.nodes[0]).op->name,
                              explain(*refusal)));
    const GroupProgram& program = std::get<GroupProgram>(built);
    const GroupCost cost = group_cost(graph_, program, target_);
    Lowered lowered =
        lower(graph_, program, target_, {.name = kernel_name(g), .variants = options_.variants});
    std::vector<int> temporaries;
    for (const Temporary& t : lowered.temporaries) {
      out_.plan.buffers.push_back({PlanBuffer::Role::temporary, -1, t.dtype, t.elements, -1});
      temporaries.push_back(static_cast<int>(out_.plan.buffers.size()) - 1);
    }
    for (NodeId z : lowered.zeroed)
      out_.plan.steps.push_back({.kind = PlanStep::Kind::zero, .buffer = buffer(z)});
    for (int t : lowered.zeroed_temporaries)
      out_.plan.steps.push_back(
          {.kind = PlanStep::Kind::zero, .buffer = temporaries[static_cast<std::size_t>(t)]});
    for (NodeId o : g.outputs) buffer(o);
    for (EmittedKernel& k : lowered.kernels) {
      PlanStep step{.kind = PlanStep::Kind::launch, .kernel = static_cast<int>(out_.plan.kernels.size())};
      for (const BufferSource& v : k.views)
        step.views.push_back(
            {v.node >= 0 ? buffer(v.node) : temporaries[static_cast<std::size_t>(v.temporary)], v.offset});
      out_.plan.kernels.push_back(std::move(k.kernel));
      out_.kernels.push_back({g.nodes, cost, std::move(k.note)});
      out_.variants.push_back(std::exchange(lowered.variants, {}));
      out_.plan.steps.push_back(std::move(step));
    }
  }

  Compiled& out_;
  const ir::Graph& graph_;
  const tile::Target& target_;
  const PipelineOptions& options_;
  std::map<NodeId, int> buffer_of_;
};

}  // namespace

Compiled run_pipeline(const ir::Graph& graph, const tile::Target& target, const PipelineOptions& options) {
  Compiled out;
  out.target = target;
  out.graph = materialize(options.simplify ? simplify(graph) : graph);
  out.fusion = options.fuse ? fuse(out.graph, target, options.recompute) : keep_apart(out.graph);
  PlanWriter(out, target, options).run();
  return out;
}

}  // namespace tilewright::passes
