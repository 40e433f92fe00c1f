// Upload, run, download.
#include "support/run_graph.h"

#include "ops/rows.h"
#include "support/open_device.h"
#include "support/random_graph.h"

#include <tilewright/base/error.h>

#include <algorithm>
#include <set>

namespace tilewright::test {

namespace {

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

}  // namespace

GraphRunner::GraphRunner(const std::string& name, const std::string& isa) : device(open_device(name, isa)) {}

namespace {

GraphRunner::Tensors run_once(runtime::Executable& executable, const ir::Graph& graph,
                              const std::shared_ptr<runtime::Device>& device,
                              std::span<const ir::HostTensor> inputs) {
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
    if (bytes > 0) (void)device->backend().fill(out.back()->data(), 0xA5, bytes).value();
  }
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
  runtime::KernelStore store(device, &cache);
  auto executable = runtime::Executable::create(compiled.plan, store);
  if (!executable) throw Error(executable.error().message);
  std::vector<Tensors> results;
  for (const Tensors& inputs : sets)
    results.push_back(run_once(**executable, compiled.graph, device, inputs));
  return results;
}

GraphRunner::Tensors GraphRunner::run(const passes::Compiled& compiled,
                                      std::span<const ir::HostTensor> inputs) {
  return run_each(compiled, std::vector<Tensors>{{inputs.begin(), inputs.end()}}).front();
}

ir::Graph with_stored_roundings(const passes::Compiled& compiled) {
  const ir::Graph& graph = compiled.graph;
  std::vector<std::set<ir::NodeId>> groups_of(static_cast<std::size_t>(graph.size()));
  std::set<ir::NodeId> stored;
  for (std::size_t g = 0; g < compiled.fusion.groups.size(); ++g) {
    for (ir::NodeId n : compiled.fusion.groups[g].nodes)
      groups_of[static_cast<std::size_t>(n)].insert(static_cast<int>(g));
    stored.insert(compiled.fusion.groups[g].outputs.begin(), compiled.fusion.groups[g].outputs.end());
  }
  // A view belongs to whoever reads it, so it is written twice: over the exact and over the rounded value.
  ir::Graph out(graph.name());
  std::vector<ir::NodeId> exact(static_cast<std::size_t>(graph.size()), -1), rounded = exact;
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    const ir::Node& n = graph.node(id);
    const auto i = static_cast<std::size_t>(id);
    if (n.op->kind == ir::OpClass::input) {
      exact[i] = rounded[i] = out.add_input(n.name, n.type);
      continue;
    }
    auto add = [&](const std::vector<ir::NodeId>& from) {
      std::vector<ir::NodeId> operands;
      operands.reserve(n.operands.size());
      for (ir::NodeId o : n.operands) operands.push_back(from[static_cast<std::size_t>(o)]);
      return out.add(*n.op, operands, n.attrs);
    };
    if (passes::is_inlined(n)) {
      exact[i] = add(exact);
      rounded[i] = add(rounded);
      continue;
    }
    std::vector<ir::NodeId> operands;
    for (ir::NodeId o : n.operands) {
      ir::NodeId source = o;
      while (passes::is_inlined(graph.node(source)) && !graph.node(source).operands.empty())
        source = graph.node(source).operands[0];
      const std::set<ir::NodeId>& mine = groups_of[i];
      const std::set<ir::NodeId>& theirs = groups_of[static_cast<std::size_t>(source)];
      const bool together =
          std::any_of(mine.begin(), mine.end(), [&](ir::NodeId g) { return theirs.count(g) != 0; });
      operands.push_back((together ? exact : rounded)[static_cast<std::size_t>(o)]);
    }
    exact[i] = rounded[i] = out.add(*n.op, operands, n.attrs);
    if (stored.count(id) && is_narrow_float(n.type.dtype))
      rounded[i] = out.add(ops::kCast, {exact[i]}, {{"dtype", std::string(name(n.type.dtype))}});
  }
  std::vector<ir::NodeId> outputs;
  for (ir::NodeId o : graph.outputs()) outputs.push_back(exact[static_cast<std::size_t>(o)]);
  out.set_outputs(outputs);
  return out;
}

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
