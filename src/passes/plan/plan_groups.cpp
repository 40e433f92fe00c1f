// PlanWriter: what a group's kernels read and write becomes buffers, and the groups in their order become
// launches.
#include "passes/plan/plan_groups.h"

#include "base/side_by_side.h"
#include "ops/checkpoint.h"
#include "ops/rows.h"
#include "ops/stored_rows.h"
#include "passes/emit/lower.h"
#include "passes/fuse/checkpoints.h"
#include "passes/plan/fit_memory.h"
#include "passes/plan/plan_memory.h"
#include "passes/plan/shared_numbers.h"
#include "passes/plan/shared_text.h"
#include "passes/store/materialize.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

namespace tilewright::passes {

using ir::NodeId;
using ir::OpClass;
using tile::PlanBuffer;
using tile::PlanStep;

namespace {

class PlanWriter {
 public:
  PlanWriter(Compiled& compiled, const tile::Target& target, const PlanOptions& options)
      : out_(compiled),
        graph_(compiled.graph),
        options_(options),
        calls_(checkpointed_calls(graph_)),
        plans_(std::exchange(compiled.fusion.plans, nullptr)) {
    if (plans_ == nullptr || !(plans_->target() == target)) plans_ = std::make_shared<GroupPlans>(target);
    for (const ir::Node& n : graph_.nodes()) {
      if (n.op->kind == OpClass::update_slice) copied_.insert(storage_node(graph_, n.operands[0]));
      if (n.op->kind == OpClass::matmul || n.op->kind == OpClass::take || n.op->kind == OpClass::take_along)
        for (NodeId o : n.operands) read_from_memory_.insert({storage_node(graph_, o), n.op->kind});
    }
  }

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
    for (const Group& g : out_.fusion.groups) stored_.insert(g.outputs.begin(), g.outputs.end());
    for (const Group& g : out_.fusion.groups) place_parts(g);
    plan_ahead();
    for (const Group& g : out_.fusion.groups)
      if (g.outputs.empty() || !in_place_.count(g.outputs[0])) add_group(g);
    for (auto [from, to] : repeats)
      out_.plan.steps.push_back({.kind = PlanStep::Kind::copy, .buffer = to, .from = from});
    // A tuner compares kernels with their variants, which have the numbers inside.
    if (!options_.variants) share_numbers(out_.plan);
  }

  // What checkpoint(f) wants to be made again.
  CheckpointedLaunches checkpointed() const {
    CheckpointedLaunches out;
    if (calls_.empty()) return out;
    out.calls = kernel_calls_;
    for (const ir::Node& n : graph_.nodes()) {
      if (!ops::is_edge(n, ops::Edge::out)) continue;
      const auto buffer = buffer_of_.find(storage_node(graph_, n.operands[0]));
      if (buffer != buffer_of_.end()) out.results.insert(buffer->second);
    }
    return out;
  }

 private:
  PlanBuffer describe(NodeId id, PlanBuffer::Role role, int position) const {
    const ir::Type& type = graph_.type(id);
    return {role, position, type.dtype, ops::stored_shape(graph_.node(id)).size(), -1};
  }

  int add_buffer(NodeId id, PlanBuffer::Role role, int position) {
    out_.plan.buffers.push_back(describe(id, role, position));
    return buffer_of_[id] = static_cast<int>(out_.plan.buffers.size()) - 1;
  }

  // The place of a value's elements.
  struct Place {
    int buffer = -1;
    Index offset = 0;  // elements
  };
  Place place(NodeId id) {
    const auto part = part_of_.find(storage_node(graph_, id));
    return part != part_of_.end() ? Place{buffer(part->second.first), part->second.second}
                                  : Place{buffer(id), 0};
  }

  // A single element that lies where its neighbours leave it, and so at no multiple of kBufferAlign.
  bool is_element_of_whole(NodeId id) const {
    const NodeId stored = storage_node(graph_, id);
    return part_of_.count(stored) && graph_.type(stored).shape.size() == 1;
  }

  // A group that does nothing but put values together that lie behind one another, or along the rows of the
  // whole with its pitch: whoever computes them writes them there.
  void place_parts(const Group& g) {
    if (g.nodes.size() != 1 || g.outputs.empty()) return;
    const NodeId whole = g.outputs[0];
    const ir::Node& copy = graph_.node(whole);
    if (copy.op != &ops::kCast || graph_.type(copy.operands[0]).dtype != copy.type.dtype ||
        ops::has_pitch(copy))
      return;
    const ir::Node& source = graph_.node(storage_node(graph_, copy.operands[0]));
    if (source.op->kind != OpClass::concat) return;
    const auto axis = static_cast<int>(source.attrs.integer("axis"));
    bool by_rows = false;
    for (int before = 0; before < axis; ++before) by_rows = by_rows || source.type.shape[before] != 1;
    if (by_rows && axis + 1 != source.type.shape.rank()) return;
    const Index pitch = by_rows ? source.type.shape[axis] : 0;
    std::map<NodeId, std::pair<NodeId, Index>> parts;
    Index offset = 0;
    for (NodeId o : source.operands) {
      const NodeId part = storage_node(graph_, o);
      const Shape& shape = graph_.type(part).shape;
      if (!is_computed_for(part, pitch) || shape.size() == 0 || part_of_.count(part) ||
          (shape.size() != 1 &&
           offset * static_cast<Index>(size_bytes(copy.type.dtype)) % tile::kBufferAlign != 0) ||
          !parts.insert({part, {whole, offset}}).second)
        return;
      offset += by_rows ? shape[shape.rank() - 1] : shape.size();
    }
    part_of_.insert(parts.begin(), parts.end());
    in_place_.insert(whole);
  }

  // Whether one kernel writes it, element by element, to a buffer that is not the caller's, with this pitch
  // of rows; 0: none.
  bool is_computed_for(NodeId id, Index pitch) const {
    const ir::Node& n = graph_.node(id);
    if ((ops::has_pitch(n) ? n.attrs.integer(ops::kPitch) : 0) != pitch) return false;
    const OpClass kind = n.op->kind;
    const bool written = kind == OpClass::matmul || kind == OpClass::pointwise || kind == OpClass::reduce ||
                         kind == OpClass::cast;
    return written && !copied_.count(id) && !buffer_of_.count(id) && !in_place_.count(id) &&
           stored_.count(id);
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

  // Fusion may be given up, the program never: of a group that cannot be lowered every value is stored. A
  // node by itself lowers, as all that it reads lies in memory (materialize()).
  void add_group(const Group& g, const std::string& note = "") {
    std::string why;
    try {
      const auto refusal = add_kernels(g, note);
      if (!refusal) return;
      why = explain(*refusal);
    } catch (const Error& e) {
      why = e.what();
    }
    if (g.nodes.size() == 1)
      throw Error(
          fmt::format("{}: this program cannot be lowered: {}", graph_.node(g.nodes[0]).op->name, why));
    out_.taken_apart.push_back(why);
    for (NodeId id : g.nodes)
      add_group({.nodes = {id}, .outputs = {id}}, "by itself, as its group has no kernel: " + why);
  }

  // Why a view is stored, for explain().
  std::string why_stored(NodeId id) const {
    const ir::Node& copy = graph_.node(id);
    if (copy.op != &ops::kCast || copy.type.dtype != graph_.type(copy.operands[0]).dtype) return "";
    if (!is_inlined(graph_.node(copy.operands[0]))) return "";
    const auto reader = read_from_memory_.find(id);
    if (reader == read_from_memory_.end()) return "stores a view as an output";
    return reader->second == OpClass::matmul ? "stores a view that a product would not read as it lies"
                                             : "stores a view, whose elements are then picked from memory";
  }

  // A group's kernels. Those of groups of one form are written once: they differ in what they read and write.
  struct Written {
    GroupForm form;
    Lowered lowered;
    GroupCost cost;
  };
  std::variant<Written, Refusal> written(const Group& g) {
    GroupForm form = forms_.of(g);
    if (const auto known = written_.find(form.key); known != written_.end()) {
      Written same = known->second;
      rename_nodes(same.lowered, same.form.nodes, form.nodes);
      return same;
    }
    auto plan = planned(form, g);
    if (const auto* refusal = std::get_if<Refusal>(&plan)) return *refusal;
    auto& [cost, lowered] = std::get<PlannedGroup>(plan);
    const Hash128 key = form.key;
    return written_.emplace(key, Written{std::move(form), std::move(lowered), cost}).first->second;
  }

  // What was planned ahead of the groups of a form, in the numbers of one of them.
  struct PlannedAhead {
    std::vector<NodeId> nodes;
    PlannedGroup plan;
  };
  // A group's kernels by its own names: those of the group of its form that was planned ahead, or new ones.
  std::variant<PlannedGroup, Refusal> planned(const GroupForm& form, const Group& g) {
    const auto ahead = planned_.find(form.key);
    if (ahead == planned_.end())
      return plans_->plan(graph_, form, g, {.name = kernel_name(g), .variants = options_.variants});
    PlannedGroup plan = std::move(ahead->second.plan);
    rename_nodes(plan.lowered, ahead->second.nodes, form.nodes);
    name_kernels(plan, kernel_name(g));
    planned_.erase(ahead);
    return plan;
  }

  // The kernels of a large program's groups, one group of each form, on the cores that this process may use.
  void plan_ahead() {
    constexpr std::size_t kFewForms = 8;  // chosen: threads take a part of a millisecond to begin
    std::vector<std::pair<GroupForm, const Group*>> different;
    std::unordered_set<Hash128> seen;
    if (out_.fusion.groups.size() < kFewForms || options_.variants) return;
    for (const Group& g : out_.fusion.groups) {
      if (!g.outputs.empty() && in_place_.count(g.outputs[0])) continue;
      if (GroupForm form = forms_.of(g); seen.insert(form.key).second)
        different.push_back({std::move(form), &g});
    }
    if (different.size() < kFewForms) return;
    std::vector<std::optional<PlannedGroup>> plans(different.size());
    side_by_side(different.size(), kFewForms, [&](std::size_t i) {
      try {
        const auto& [form, group] = different[i];
        auto plan = plans_->plan(graph_, form, *group, {.name = std::string(kUnnamed)});
        if (auto* made = std::get_if<PlannedGroup>(&plan)) plans[i] = std::move(*made);
      } catch (const Error&) {
        plans[i] = std::nullopt;  // it is met again where the group is added
      }
    });
    for (std::size_t i = 0; i < different.size(); ++i)
      if (plans[i])
        planned_.emplace(different[i].first.key,
                         PlannedAhead{std::move(different[i].first.nodes), *std::move(plans[i])});
  }

  // Adds a group's kernels to the plan, or returns why it cannot, with nothing added.
  std::optional<Refusal> add_kernels(const Group& g, std::string note) {
    auto made = written(g);
    if (const auto* refusal = std::get_if<Refusal>(&made)) return *refusal;
    auto& [form, lowered, cost] = std::get<Written>(made);
    std::vector<int> temporaries;
    for (const Temporary& t : lowered.temporaries) {
      out_.plan.buffers.push_back({PlanBuffer::Role::temporary, -1, t.dtype, t.elements, -1});
      temporaries.push_back(static_cast<int>(out_.plan.buffers.size()) - 1);
    }
    for (NodeId z : lowered.zeroed)
      out_.plan.steps.push_back({.kind = PlanStep::Kind::zero, .buffer = place(z).buffer});
    for (int t : lowered.zeroed_temporaries)
      out_.plan.steps.push_back(
          {.kind = PlanStep::Kind::zero, .buffer = temporaries[static_cast<std::size_t>(t)]});
    for (auto [from, to] : lowered.copied)
      out_.plan.steps.push_back(
          {.kind = PlanStep::Kind::copy, .buffer = place(to).buffer, .from = place(from).buffer});
    for (NodeId o : g.outputs) place(o);
    for (NodeId id : g.nodes)
      if (const ir::Node& n = graph_.node(id); n.attrs.has(ops::kPartsAttr))
        note += fmt::format("{}{} of the six products of bf16 parts that an f32 product is made of",
                            note.empty() ? "" : "; ", n.attrs.integer(ops::kPartsAttr));
    for (NodeId o : g.outputs)
      if (const std::string stored = why_stored(o); !stored.empty() && note.find(stored) == std::string::npos)
        note += (note.empty() ? "" : "; ") + stored;
    for (EmittedKernel& k : lowered.kernels) {
      PlanStep step{.kind = PlanStep::Kind::launch, .kernel = static_cast<int>(out_.plan.kernels.size())};
      for (const BufferSource& v : k.views) {
        const Place p =
            v.node >= 0 ? place(v.node) : Place{temporaries[static_cast<std::size_t>(v.temporary)], 0};
        if (v.node >= 0 && is_element_of_whole(v.node)) {
          tile::ViewParam& view = k.kernel.views[step.views.size()];
          view.align_bytes = static_cast<Index>(size_bytes(view.dtype));
        }
        step.views.push_back({p.buffer, p.offset + v.offset});
      }
      texts_.name_like_its_equal(k.kernel, out_.plan.kernels);
      out_.plan.kernels.push_back(std::move(k.kernel));
      if (!note.empty()) k.note += (k.note.empty() ? "" : "; ") + note;
      out_.kernels.push_back({g.nodes, cost, std::move(k.note)});
      if (!calls_.empty()) {
        const NodeId made = g.outputs.empty() ? g.nodes.front() : g.outputs.front();
        kernel_calls_.push_back(calls_[static_cast<std::size_t>(made)]);
      }
      out_.variants.push_back(std::exchange(lowered.variants, {}));
      out_.plan.steps.push_back(std::move(step));
    }
    return std::nullopt;
  }

  Compiled& out_;
  const ir::Graph& graph_;
  const PlanOptions options_;
  const std::vector<int> calls_;   // of checkpoint(), by node
  std::vector<int> kernel_calls_;  // the same, by kernel
  std::set<NodeId> stored_;        // by groups
  std::set<NodeId> copied_;        // what blocks are placed in
  std::map<NodeId, int> buffer_of_;
  std::map<NodeId, OpClass> read_from_memory_;  // what products and gathers read, and by which of them
  std::map<NodeId, std::pair<NodeId, Index>> part_of_;  // what lies in another value's buffer: it, and where
  SharedText texts_;
  std::shared_ptr<GroupPlans> plans_;
  GroupForms forms_{graph_};
  std::unordered_map<Hash128, Written> written_;       // by form
  std::unordered_map<Hash128, PlannedAhead> planned_;  // by form
  std::set<NodeId> in_place_;                          // values whose parts all do
};

}  // namespace

Compiled plan_groups(ir::Graph graph, Fusion fusion, const tile::Target& target, const PlanOptions& options) {
  Compiled out;
  out.target = target;
  out.graph = std::move(graph);
  out.fusion = std::move(fusion);
  PlanWriter writer(out, target, options);
  writer.run();
  const auto place = [&target](Compiled& compiled) {
    merge_copied_temporaries(compiled.plan, compiled.variants);
    reuse_large_temporaries(compiled.plan, compiled.variants, target);
    plan_memory(compiled.plan);
  };
  const MemoryWish wish{.bytes = options.arena_bytes, .checkpointed = writer.checkpointed()};
  if (!wish.bytes && wish.checkpointed.calls.empty()) {
    place(out);
    return out;
  }
  const MemoryFit fit = fit_memory(out, wish, place);
  if (wish.bytes || fit.repeated > 0) out.memory = fit;
  return out;
}

}  // namespace tilewright::passes
