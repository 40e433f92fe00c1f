// Tensor handles: reading, moving, and the choice between running an operation and recording it.
#include "base/no_value.h"
#include "ir/graph_key.h"
#include "passes/plan/launch_together.h"
#include "runtime/outputs_apart.h"
#include "tensor/memory_budget.h"
#include "tensor/size_family.h"
#include "tensor/trace.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

namespace tilewright {

namespace {

const detail::TensorImpl& checked(const Tensor& t, const char* what, const Location& where) {
  if (!t.defined()) throw Error(fmt::format("{}: this tensor {}", what, kNoValue), where);
  return *t.impl();
}

// A function that is being recorded may go another way at another shape.
const Shape& shape_read(const Tensor& t, const char* what, const Location& where) {
  const detail::TensorImpl& impl = checked(t, what, where);
  for (detail::Trace* trace = impl.trace.get(); trace; trace = trace->enclosing.get())
    trace->reads_shapes = true;
  return impl.type.shape;
}

// `use` is the function that was called: "item".
void read_values(const Tensor& tensor, void* to, DType as, const char* use, const Location& where) {
  const detail::TensorImpl& t = *tensor.impl();
  const std::shared_ptr<detail::ContextState> context = detail::context_of(tensor, use, where);
  const std::lock_guard lock(context->mutex);
  if (!t.donated.empty()) throw Error(fmt::format("{}: this tensor {}", use, detail::donated_text(t)), where);
  detail::at_place(where, [&] { detail::check_thread(t); });
  if (context->recording() || !t.buffer) {
    const std::string what = fmt::format("{}() of {}", use, to_string(t.type));
    if (!t.buffer) detail::give_memory(t, context, what, where);
    detail::happens_now(*context, what, where, t.trace.get());
  }
  const auto count = static_cast<std::size_t>(t.type.shape.size());
  if (count == 0) return;
  const DType dtype = t.type.dtype;
  if (as == dtype) {
    if (auto done = t.buffer->read(to, count * size_bytes(as)); !done)
      throw Error(done.error().message, where);
    return;
  }
  std::vector<char> raw(count * size_bytes(dtype));
  if (auto done = t.buffer->read(raw.data(), raw.size()); !done) throw Error(done.error().message, where);
  convert(raw.data(), dtype, to, as, count);
}

}  // namespace

Tensor::Tensor(const Tensor&) noexcept = default;
Tensor::Tensor(Tensor&&) noexcept = default;
Tensor& Tensor::operator=(const Tensor&) & noexcept = default;
Tensor& Tensor::operator=(Tensor&&) & noexcept = default;
Tensor::~Tensor() = default;

Shape Tensor::shape(const Location& where) const { return shape_read(*this, "shape", where); }
Index Tensor::size(const Location& where) const { return shape_read(*this, "size", where).size(); }
int Tensor::rank(const Location& where) const { return checked(*this, "rank", where).type.shape.rank(); }
DType Tensor::dtype(const Location& where) const { return checked(*this, "dtype", where).type.dtype; }
std::string Tensor::device(const Location& where) const {
  return checked(*this, "device", where).device->name();
}

void Tensor::read(void* to, DType as, const Location& where) const {
  checked(*this, "read", where);
  read_for("read", to, as, where);
}

void Tensor::read_for(const char* function, void* to, DType as, const Location& where) const {
  read_values(*this, to, as, function, where);
}

void Tensor::check_defined(const char* what, const Location& where) const { checked(*this, what, where); }

void Tensor::check_single(const Location& where) const {
  checked(*this, "item", where);
  if (size() != 1) throw Error(fmt::format("item: the tensor has {} elements, not one", size()), where);
}

double Tensor::number(const Location& where) const {
  double value = 0;
  if (dtype() != DType::i64) {
    read_for("item", &value, DType::f64, where);
    return value;
  }
  std::int64_t exact = 0;
  read_for("item", &exact, DType::i64, where);
  value = static_cast<double>(exact);
  constexpr double kPastLargest = 0x1p63;
  if (value >= kPastLargest || static_cast<std::int64_t>(value) != exact)
    throw Error(fmt::format("item: no double is {}; item<std::int64_t>() gives it", exact), where);
  return value;
}

Tensor Tensor::to(const std::string& device, const Location& where) const {
  const detail::TensorImpl& t = checked(*this, "to", where);
  const std::shared_ptr<detail::ContextState> context = detail::context_of(*this, "to", where);
  const std::lock_guard lock(context->mutex);
  detail::DeviceState& target =
      detail::in_function("to", where, [&]() -> auto& { return context->device(device); });
  if (target.device == t.device) return *this;
  std::vector<char> raw(static_cast<std::size_t>(t.type.shape.size()) * size_bytes(t.type.dtype));
  read_values(*this, raw.data(), t.type.dtype, "to", where);
  auto buffer = detail::in_function("to", where, [&] { return detail::allocate(target.device, t.type); });
  if (auto done = buffer->write(raw.data(), raw.size()); !done) throw Error(done.error().message, where);
  return detail::make_tensor(context, t.type, target.device, std::move(buffer));
}

namespace detail {

std::string location_text(const Location& where) {
  const std::string text = at(where);  // " (at file:line)"
  return text.substr(5, text.size() - 6);
}

std::shared_ptr<ContextState> context_of(const Tensor& t, const char* what, const Location& where) {
  if (auto context = checked(t, what, where).context.lock()) return context;
  throw Error(fmt::format("{}: the tensor's Context no longer exists", what), where);
}

std::string apart(const runtime::Device& a, const runtime::Device& b) {
  if (a.name() != b.name()) return fmt::format("on {} and {}", a.name(), b.name());
  return fmt::format(
      "of two Contexts, both on {}: make them from one Context, or copy by to_vector() and from()", a.name());
}

Tensor make_tensor(const std::shared_ptr<ContextState>& context, ir::Type type,
                   std::shared_ptr<runtime::Device> device, std::shared_ptr<runtime::Buffer> buffer) {
  auto impl = std::make_shared<TensorImpl>();
  impl->context = context;
  impl->type = std::move(type);
  impl->device = std::move(device);
  impl->buffer = std::move(buffer);
  return Tensor(std::move(impl));
}

void raise(const Failure& failure, const std::string& message) {
  if (failure.kind == Failure::Kind::out_of_memory) throw OutOfMemory(message);
  if (failure.kind == Failure::Kind::invalid) throw Error(message);
  throw Unavailable(message);
}

std::shared_ptr<runtime::Buffer> allocate(const std::shared_ptr<runtime::Device>& device,
                                          const ir::Type& type) {
  ir::check_shape(type.shape);
  const auto bytes = static_cast<std::size_t>(type.shape.size()) * size_bytes(type.dtype);
  auto buffer = runtime::Buffer::allocate(device, bytes);
  if (!buffer)
    raise(buffer.error(),
          fmt::format("{} on {}: {}", to_string(type), device->name(), buffer.error().message));
  return std::move(*buffer);
}

std::string GivenNames::of(std::size_t i) const { return name ? name(i) : fmt::format("{} {}", role, i); }

void check_given(std::string_view name, const GivenNames& names, std::span<const Tensor> tensors,
                 const Location& where) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i].defined()) throw Error(fmt::format("{}: {} {}", name, names.of(i), kNoValue), where);
}

void check_kept(std::string_view name, const GivenNames& names, std::span<const Tensor> tensors,
                const Location& where) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (const TensorImpl& t = *tensors[i].impl(); !t.donated.empty())
      throw Error(fmt::format("{}: {} {}", name, names.of(i), donated_text(t)), where);
}

std::string donated_text(const TensorImpl& tensor) {
  return fmt::format(
      "was donated to the compiled function called at {}, which took its memory: use what that call returned",
      tensor.donated);
}

void check_operands(std::string_view name, const std::vector<Tensor>& operands, const Location& where) {
  check_given(name, {"operand"}, operands, where);
  for (const Tensor& t : operands)
    if (const runtime::Device &a = *operands[0].impl()->device, &b = *t.impl()->device; &a != &b)
      throw Error(fmt::format("{}: operands are {}", name, apart(a, b)), where);
}

void rename_error(std::string_view name, const Error& error) {
  const auto in_word = [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  std::string text = error.what();
  const std::size_t word =
      static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), in_word) - text.begin());
  if (text.substr(0, word) == name) throw;
  const bool names_part = word > 0 && text.compare(word, 2, ": ") == 0;
  text = fmt::format("{}: {}", name, names_part ? text.substr(word + 2) : text);
  throw_like(error, text);
}

std::vector<Tensor> apply(const char* name, const std::vector<Tensor>& operands, const GraphFunction& write,
                          const Location& where) {
  TW_CHECK(!operands.empty(), "apply needs an operand");
  check_operands(name, operands, where);
  const std::shared_ptr<ContextState> context = context_of(operands[0], name, where);
  const std::lock_guard lock(context->mutex);
  check_kept(name, {"operand"}, operands, where);
  const std::shared_ptr<runtime::Device>& device = operands[0].impl()->device;
  return in_function(name, where, [&] {
    if (const std::shared_ptr<Trace> trace = recording_trace(*context, operands))
      return record(context, trace, operands, write, where);
    if (context->recording()) happens_now(*context, fmt::format("{} on {}", name, device->name()), where);
    const auto graph_of = [&](const auto& type_of) {
      ir::Graph graph(name);
      const ir::LocationScope scope(graph, location_text(where));
      std::vector<ir::Value> inputs;
      inputs.reserve(operands.size());
      for (std::size_t i = 0; i < operands.size(); ++i)
        inputs.push_back({&graph, graph.add_input(fmt::format("a{}", i), type_of(i))});
      std::vector<ir::NodeId> outputs;
      for (const ir::Value& v : write(graph, inputs)) outputs.push_back(v.id);
      graph.set_outputs(outputs);
      return graph;
    };
    DeviceState& state = context->device(device->name());
    const ir::Graph graph =
        graph_of([&](std::size_t i) -> const ir::Type& { return operands[i].impl()->type; });
    const auto imagined = [&](std::size_t way) -> std::optional<ir::Graph> {
      const auto types = imagined_types(types_of(operands), way);
      if (!types) return std::nullopt;
      return graph_of([&](std::size_t i) -> const ir::Type& { return (*types)[i]; });
    };
    return run_graph(context, state, *eager_graph(state, graph, std::cref(imagined)), operands);
  });
}

std::vector<ir::Type> output_types(const ir::Graph& graph) {
  std::vector<ir::Type> types;
  types.reserve(graph.outputs().size());
  for (ir::NodeId o : graph.outputs()) types.push_back(graph.type(o));
  return types;
}

std::shared_ptr<CompiledGraph> load_graph(DeviceState& device, passes::Compiled compiled,
                                          std::vector<ir::Type> outputs,
                                          std::optional<runtime::BuiltKernels> kernels) {
  auto out = std::make_shared<CompiledGraph>();
  out->compiled = std::move(compiled);
  out->outputs = std::move(outputs);
  const tile::Plan& plan = out->compiled.plan;
  auto executable = kernels ? runtime::Executable::create(plan, device.store, *std::move(kernels))
                            : runtime::Executable::create(plan, device.store);
  if (!executable) raise(executable.error(), executable.error().message);
  out->executable = std::move(*executable);
  out->ceilings = device.ceilings;
  return out;
}

tile::Target with_policy(tile::Target target, const GraphOptions& options) {
  target.tf32 = options.precision == Precision::tf32;
  return target;
}

passes::PipelineOptions pipeline_options(const GraphOptions& options) {
  return {.fuse = options.fuse,
          .recompute = options.recompute,
          .precision = options.precision,
          .deterministic = options.deterministic};
}

passes::Compiled lowered(DeviceState& device, const ir::Graph& graph, const tile::Target& target,
                         const passes::PipelineOptions& options) {
  ++device.lowerings;
  try {
    return passes::run_pipeline(graph, target, options);
  } catch (const Error& e) {
    // A place in it is the compiler's, which writes kernels as users do; the user's is known to the caller.
    const std::string text = e.what();
    throw Error(text.substr(0, text.rfind(" (at ")) + ", in a kernel for this operation");
  }
}

void overwrite_inputs(passes::Compiled& compiled, const std::vector<passes::Overwrite>& over) {
  if (!over.empty()) compiled.overwriting = passes::overwrite_inputs(compiled.plan, compiled.variants, over);
}

namespace {

// What temporaries may grow by so that short launches run as one: a 256th (chosen).
constexpr Index kShareForBundles = 256;

passes::Compiled lowered_alone(DeviceState& device, const ir::Graph& graph, const GraphOptions& options) {
  passes::Compiled compiled = lowered_within(graph, options, [&](std::optional<Index> arena_bytes) {
    passes::PipelineOptions how = pipeline_options(options);
    how.variants = options.autotune;
    how.arena_bytes = arena_bytes;
    return lowered(device, graph, with_policy(device.target, options), how);
  });
  passes::launch_together(compiled,
                          options.memory_budget > 0 ? 0 : compiled.plan.arena_bytes / kShareForBundles);
  return compiled;
}

std::shared_ptr<CompiledGraph> compiled_alone(DeviceState& device, const ir::Graph& graph,
                                              const GraphOptions& options) {
  return load_graph(device, lowered_alone(device, graph, options), output_types(graph));
}

// The same while others use the Context, for those who wait in compile_graph() as well.
std::shared_ptr<CompiledGraph> compiled_unlocked(DeviceState& device, const ir::Graph& graph,
                                                 const GraphOptions& options, const Hash128& key,
                                                 const Unlocked& unlocked) {
  struct Entry {  // also where it fails: who waited tries it then
    DeviceState& device;
    const Hash128& key;
    std::promise<void> done;
    Entry(DeviceState& d, const Hash128& k) : device(d), key(k) {
      device.underway.emplace(key, done.get_future().share());
    }
    ~Entry() {
      device.underway.erase(key);
      done.set_value();
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
  } const entry(device, key);
  passes::Compiled compiled;
  std::optional<runtime::BuiltKernels> kernels;
  unlocked([&] {
    compiled = lowered_alone(device, graph, options);
    auto built = device.store.build(compiled.plan.kernels);
    if (!built) raise(built.error(), built.error().message);
    kernels = *std::move(built);
  });
  return load_graph(device, std::move(compiled), output_types(graph), std::move(kernels));
}

// What is known by the graph's key, or what `compile` makes.
template <class Compile>
std::shared_ptr<CompiledGraph> known_or(DeviceState& device, const ir::Graph& graph,
                                        const GraphOptions& options, const Compile& compile) {
  const Hash128 key = options.key_with(ir::key_of(graph));
  if (const auto* known = device.graphs.find(key)) return *known;
  // A result of more elements than a grid has programs is first of all one that no memory holds: that is what
  // is said.
  for (ir::NodeId o : graph.outputs())
    if (graph.type(o).shape.size() > std::numeric_limits<std::int32_t>::max())
      allocate(device.device, graph.type(o));
  std::shared_ptr<CompiledGraph> fresh = compile();
  device.graphs.insert(key, fresh, static_cast<std::size_t>(fresh->compiled.plan.arena_bytes));
  return fresh;
}

}  // namespace

std::shared_ptr<CompiledGraph> compile_graph(DeviceState& device, const ir::Graph& graph,
                                             const GraphOptions& options, const Unlocked& unlocked) {
  if (!unlocked)
    return known_or(device, graph, options, [&] { return compiled_alone(device, graph, options); });
  const Hash128 key = options.key_with(ir::key_of(graph));
  for (auto other = device.underway.find(key); other != device.underway.end();
       other = device.underway.find(key)) {
    const std::shared_future<void> done = other->second;
    unlocked([&] { done.wait(); });
  }
  return known_or(device, graph, options,
                  [&] { return compiled_unlocked(device, graph, options, key, unlocked); });
}

std::shared_ptr<CompiledGraph> eager_graph(DeviceState& device, const ir::Graph& graph,
                                           const SizeFamily::Others& imagined) {
  return known_or(device, graph, {}, [&] {
    std::shared_ptr<CompiledGraph> shared =
        family_of(device, graph, {})->shared_eagerly(device, graph, imagined).graph;
    return shared ? shared : compiled_alone(device, graph, {});
  });
}

void run_graph_into(const std::shared_ptr<ContextState>& context, DeviceState& device, CompiledGraph& graph,
                    std::span<const std::shared_ptr<runtime::Buffer>> inputs,
                    std::span<const std::shared_ptr<runtime::Buffer>> outputs, const GraphOptions& options) {
  if (options.autotune && graph.tuning.empty()) {
    const auto trial = runtime::outputs_apart(inputs, outputs);
    if (!trial) raise(trial.error(), trial.error().message);
    auto tuned = runtime::tune(*graph.executable, device.store, &context->cache, graph.compiled.variants,
                               inputs, *trial, {.libraries = options.libraries});
    if (!tuned) throw Error(tuned.error().message);
    graph.tuning = std::move(*tuned);
    graph.compiled.plan = graph.executable->plan();  // with the tiles that won
  }
  Status done = options.replay ? graph.replay.run(*graph.executable, inputs, outputs)
                               : graph.executable->run(inputs, outputs);
  if (!done) raise(done.error(), done.error().message);
}

std::vector<Tensor> run_graph(const std::shared_ptr<ContextState>& context, DeviceState& device,
                              CompiledGraph& graph, const std::vector<Tensor>& inputs,
                              const GraphOptions& options,
                              std::vector<std::shared_ptr<runtime::Buffer>> given) {
  std::vector<std::shared_ptr<runtime::Buffer>> in, out = std::move(given);
  in.reserve(inputs.size());
  for (const Tensor& t : inputs) {
    // Whoever calls has asked; a function of the user's that ran since may have let another thread have it.
    if (!t.impl()->donated.empty()) throw Error("an operand " + donated_text(*t.impl()));
    in.push_back(t.impl()->buffer);
  }
  out.resize(graph.outputs.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    if (!out[i]) out[i] = allocate(device.device, graph.outputs[i]);
  run_graph_into(context, device, graph, in, out, options);
  std::vector<Tensor> tensors;
  tensors.reserve(out.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    tensors.push_back(make_tensor(context, graph.outputs[i], device.device, std::move(out[i])));
  return tensors;
}

}  // namespace detail

}  // namespace tilewright
