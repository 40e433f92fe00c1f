// Upload, run, download.
#include "support/run_graph.h"

#include "ops/rows.h"
#include "support/kernel_folder.h"
#include "support/open_device.h"
#include "support/random_graph.h"

#include <tilewright/base/error.h>
#include <tilewright/tile/text.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tilewright::test {

std::vector<char> pack(const ir::HostTensor& t) {
  const std::size_t size = size_bytes(t.type.dtype);
  std::vector<char> bytes(static_cast<std::size_t>(t.type.shape.size()) * size);
  for (std::size_t i = 0; i * size < bytes.size(); ++i) {
    if (is_float(t.type.dtype))
      store_f64(bytes.data() + i * size, t.type.dtype, t.f[i]);
    else
      store_i64(bytes.data() + i * size, t.type.dtype, t.i[i]);
  }
  return bytes;
}

namespace {

ir::HostTensor unpack(const ir::Type& type, const std::vector<char>& bytes) {
  ir::HostTensor t{type, {}, {}};
  const std::size_t size = size_bytes(type.dtype);
  for (std::size_t i = 0; i * size < bytes.size(); ++i) {
    if (is_float(type.dtype))
      t.f.push_back(load_f64(bytes.data() + i * size, type.dtype));
    else
      t.i.push_back(load_i64(bytes.data() + i * size, type.dtype));
  }
  return t;
}

// Whether a kernel promises that a block of this view lies in it, and so loads or stores it without a look at
// its ends.
bool is_trusted(const tile::Kernel& kernel, std::size_t view) {
  bool trusted = false;
  tile::for_each_op(kernel.body, [&](const tile::Op& op) {
    const bool block = op.kind == tile::OpKind::load || op.kind == tile::OpKind::store;
    trusted = trusted || (block && !op.bounded && op.param == static_cast<int>(view));
  });
  return trusted;
}

// A view that a kernel trusts lies in its buffer: a block that is read whole and chosen from afterwards would
// else read what lies beside it. (Ends of views that are looked at may be further: rows that an index picks
// are such.)
void check_views(const tile::Plan& plan) {
  for (const tile::PlanStep& step : plan.steps) {
    if (step.kind != tile::PlanStep::Kind::launch) continue;
    const tile::Kernel& kernel = plan.kernels[static_cast<std::size_t>(step.kernel)];
    const auto size = [&](const tile::Dim& d) {
      return d.is_constant() ? d.value : step.scalars[static_cast<std::size_t>(d.scalar)];
    };
    for (std::size_t v = 0; v < kernel.views.size(); ++v) {
      if (!is_trusted(kernel, v)) continue;
      const tile::ViewParam& view = kernel.views[v];
      Index first = step.views[v].offset, last = first;
      bool empty = false;
      for (std::size_t d = 0; d < view.extents.size(); ++d) {
        const Index extent = size(view.extents[d]), stride = size(view.strides[d]);
        empty = empty || extent == 0;
        (stride < 0 ? first : last) += (extent - 1) * stride;
      }
      const tile::PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(step.views[v].buffer)];
      if (!empty && (first < 0 || last >= buffer.elements))
        throw Error(fmt::format("kernel {}: view {} goes from element {} to {} of a buffer of {}:\n{}",
                                kernel.name, v, first, last, buffer.elements, tile::print(kernel)));
    }
  }
}

}  // namespace

GraphRunner::GraphRunner(const std::string& name, const std::string& isa)
    : device(open_device(name, isa)), kernels(name == "reference" ? "" : kernel_folder()) {}

namespace {

GraphRunner::Tensors run_once(runtime::Executable& executable, const passes::Compiled& compiled,
                              const std::shared_ptr<runtime::Device>& device,
                              std::span<const ir::HostTensor> inputs) {
  const ir::Graph& graph = compiled.graph;
  check_views(compiled.plan);
  auto buffer = [&](std::size_t bytes) {
    auto b = runtime::Buffer::allocate(device, bytes);
    if (!b) throw Error(b.error().message);
    return *b;
  };
  std::vector<std::shared_ptr<runtime::Buffer>> in, out;
  for (const ir::HostTensor& t : inputs) {
    const std::vector<char> bytes = pack(t);
    in.push_back(buffer(bytes.size()));
    (void)in.back()->write(bytes.data(), bytes.size()).value();
  }
  for (ir::NodeId o : graph.outputs()) {
    const ir::Type& type = graph.type(o);
    const std::size_t bytes = static_cast<std::size_t>(type.shape.size()) * size_bytes(type.dtype);
    out.push_back(buffer(bytes));
    // What is not written must show.
    if (bytes > 0) (void)device->backend().fill(out.back()->data(), {0xA5}, bytes).value();
  }
  // A temporary that is read before it is written must show, too: large finite numbers of every float type.
  if (const auto& between = executable.temporaries())
    (void)device->backend().fill(between->data(), {0x7B}, between->bytes()).value();
  for (const passes::Overwriting& o : compiled.overwriting)
    if (o.why_not.empty())
      out[static_cast<std::size_t>(o.what.output)] = in[static_cast<std::size_t>(o.what.inputs.front())];
  if (auto done = executable.run(in, out); !done) throw Error(done.error().message);
  std::vector<ir::HostTensor> results;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::vector<char> bytes(out[i]->bytes());
    (void)out[i]->read(bytes.data(), bytes.size()).value();
    results.push_back(unpack(graph.type(graph.outputs()[i]), bytes));
  }
  return results;
}

}  // namespace

std::vector<GraphRunner::Tensors> GraphRunner::run_each(const passes::Compiled& compiled,
                                                        std::span<const Tensors> sets) {
  auto executable = runtime::Executable::create(compiled.plan, store);
  if (!executable) throw Error(executable.error().message);
  std::vector<Tensors> results;
  for (const Tensors& inputs : sets) results.push_back(run_once(**executable, compiled, device, inputs));
  return results;
}

GraphRunner::Tensors GraphRunner::run(const passes::Compiled& compiled,
                                      std::span<const ir::HostTensor> inputs) {
  return run_each(compiled, std::vector<Tensors>{{inputs.begin(), inputs.end()}}).front();
}

namespace {

// Writes the graph once more as its kernels compute it: a value that several of them compute is written for
// each, from what that one has exactly and from what it reads, rounded, from memory.
class StoredRoundings {
 public:
  explicit StoredRoundings(const passes::Compiled& compiled)
      : graph_(compiled.graph), groups_(compiled.fusion.groups), out_(graph_.name()) {
    for (int g = 0; g < static_cast<int>(groups_.size()); ++g)
      for (ir::NodeId o : groups_[static_cast<std::size_t>(g)].outputs) stored_by_.emplace(o, g);
  }

  ir::Graph run() {
    for (ir::NodeId id : graph_.inputs())
      known_[{id, kNone}] = out_.add_input(graph_.node(id).name, graph_.type(id));
    std::vector<ir::NodeId> outputs;
    for (ir::NodeId o : graph_.outputs()) {
      const auto by = stored_by_.find(passes::storage_node(graph_, o));
      outputs.push_back(read(o, by == stored_by_.end() ? kNone : by->second));
    }
    out_.set_outputs(outputs);
    return std::move(out_);
  }

 private:
  static constexpr int kNone = -1;

  bool computes(int group, ir::NodeId id) const {
    if (group == kNone) return false;
    const std::vector<ir::NodeId>& nodes = groups_[static_cast<std::size_t>(group)].nodes;
    return std::binary_search(nodes.begin(), nodes.end(), id);
  }

  // A value as a kernel of the group has it: computed there, or from memory. Views belong to their readers.
  ir::NodeId read(ir::NodeId id, int group) {
    const ir::Node& n = graph_.node(id);
    if (n.op->kind == ir::OpClass::input) return known_.at({id, kNone});
    if (passes::is_inlined(n) || computes(group, id)) return written(id, group);
    const auto by = stored_by_.find(id);
    if (by == stored_by_.end()) return written(id, group);  // nothing to compute: it has no elements
    const ir::NodeId exact = written(id, by->second);
    if (!is_narrow_float(n.type.dtype)) return exact;
    return out_.add(ops::kCast, {exact}, {{"dtype", std::string(name(n.type.dtype))}});
  }

  ir::NodeId written(ir::NodeId id, int group) {
    if (const auto known = known_.find({id, group}); known != known_.end()) return known->second;
    const ir::Node& n = graph_.node(id);
    std::vector<ir::NodeId> operands;
    operands.reserve(n.operands.size());
    for (ir::NodeId o : n.operands) operands.push_back(read(o, group));
    return known_[{id, group}] = out_.add(*n.op, operands, n.attrs);
  }

  const ir::Graph& graph_;
  const std::vector<passes::Group>& groups_;
  ir::Graph out_;
  std::map<ir::NodeId, int> stored_by_;
  std::map<std::pair<ir::NodeId, int>, ir::NodeId> known_;  // of a value and a group
};

}  // namespace

ir::Graph with_stored_roundings(const passes::Compiled& compiled) { return StoredRoundings(compiled).run(); }

ir::Graph oracle_of(const ir::Graph& graph, const passes::Compiled& compiled) {
  const bool narrow = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                  [](const ir::Node& n) { return is_narrow_float(n.type.dtype); });
  return narrow ? with_stored_roundings(compiled) : graph;
}

std::string difference_from(const ir::Graph& oracle, std::span<const ir::HostTensor> inputs,
                            std::span<const ir::HostTensor> got, RoundingOptions options) {
  std::string wrong;
  for (int runs = 5; runs <= options.runs; runs *= 10) {
    wrong = difference(got, reference_with_spread(oracle, inputs, {.seed = options.seed, .runs = runs}));
    if (wrong.empty()) break;
  }
  return wrong;
}

}  // namespace tilewright::test
