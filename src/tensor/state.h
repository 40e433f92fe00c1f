// What stands behind Tensor and Context: storage, traces, the per-device kernel stores and the eager
// executables.
#pragma once

#include "ir/graph.h"
#include "passes/pipeline.h"
#include "runtime/executable.h"
#include "runtime/recent.h"
#include "runtime/replay_choice.h"
#include "runtime/step_times.h"
#include "runtime/tuner.h"
#include "tensor/limits.h"
#include "tensor/open_mutex.h"

#include <tilewright/perf/hardware.h>
#include <tilewright/tensor/composed.h>
#include <tilewright/tensor/out_of_memory.h>
#include <tilewright/tensor/tensor.h>

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

namespace tilewright::detail {

struct CompiledGraph;
struct Trace;

struct TensorImpl {
  std::weak_ptr<ContextState> context;
  ir::Type type;
  std::shared_ptr<runtime::Device> device;
  std::shared_ptr<runtime::Buffer> buffer;  // null while the value is only recorded
  std::shared_ptr<Trace> trace;             // in which the value was recorded, until that has ended
  ir::NodeId node = -1;                     // in the trace's graph; of a value with memory where it was used
  // The line of the call that took its memory; empty while it has its value. Guarded by the Context's mutex,
  // as the buffer is.
  std::string donated;
};

// A tensor's shape for the library itself. Tensor::shape() is the user's way to ask, which a function that is
// being recorded is remembered for (Trace::reads_shapes).
inline const Shape& shape_of(const Tensor& tensor) { return tensor.impl()->type.shape; }

// How a graph is compiled and run.
struct GraphOptions {
  bool fuse = true;
  Recompute recompute = Recompute::by_cost;
  Precision precision = Precision::f32;
  bool deterministic = false;
  bool autotune = false;  // its kernels' schedules will be tuned: not shared with graphs whose are not
  tile::Libraries libraries = tile::Libraries::none;  // what part they take in that
  bool replay = false;                                // may be replayed
  Index memory_budget = 0;                            // bytes of a call; 0: any number
  std::vector<passes::Overwrite> over = {};           // outputs that are to lie in inputs' memory
  // The key of a program of a graph with this one that is compiled so.
  Hash128 key_with(const Hash128& graph) const {
    Hasher h;
    h.add(graph).add(fuse).add(recompute).add(precision).add(deterministic).add(autotune).add(memory_budget);
    if (autotune) h.add(static_cast<int>(libraries));
    for (const passes::Overwrite& o : over) {
      h.add(o.output).add(o.inputs.size());
      for (int i : o.inputs) h.add(i);
    }
    return h.digest();
  }
};

// A graph compiled for one device.
struct CompiledGraph {
  passes::Compiled compiled;
  std::unique_ptr<runtime::Executable> executable;
  std::vector<ir::Type> outputs;
  runtime::ReplayChoice replay;
  std::vector<runtime::KernelTuning> tuning;       // per kernel, with max_autotune after the first call
  std::shared_ptr<const perf::Hardware> ceilings;  // of the device, when they were measured
  std::optional<runtime::StepTimes> times;         // when it was measured
};

class SizeFamily;

struct DeviceState {
  DeviceState(const std::shared_ptr<runtime::Device>& d, runtime::BinaryCache* cache)
      : device(d), store(d, cache), target(d->target()) {}
  std::shared_ptr<runtime::Device> device;
  runtime::KernelStore store;
  std::shared_ptr<const perf::Hardware> ceilings;  // stored by tw devices --probe; null: never measured
  std::atomic<std::size_t> lowerings = 0;          // graphs that went through the passes
  tile::Target target;  // what graphs are compiled for: the device's, with the ceilings where they are known
  runtime::Recent<Hash128, std::shared_ptr<CompiledGraph>> graphs{
      kMostGraphs, kMostTemporaryBytes};                 // by structure and options
  std::map<Hash128, std::shared_future<void>> underway;  // such graphs that threads compile just now
  runtime::Recent<Hash128, std::shared_ptr<SizeFamily>> families{kMostGraphs};       // of eager ones, by form
  runtime::Recent<std::pair<DType, std::uint64_t>, Tensor> literals{kMostLiterals};  // by their bits
};

struct ContextState {
  explicit ContextState(ContextOptions o);
  ContextOptions options;
  runtime::BinaryCache cache;
  std::map<std::string, std::unique_ptr<DeviceState>> devices;  // opened when first named
  std::uint64_t random_calls = 0;
  std::map<std::thread::id, std::shared_ptr<Trace>> recordings;  // by thread, where there is one
  OpenMutex mutex;

  DeviceState& device(const std::string& name);  // throws Error when it cannot be opened
  // The recording of the innermost function that this thread runs to be recorded.
  std::shared_ptr<Trace> recording() const;
  std::shared_ptr<Trace> exchange_recording(std::shared_ptr<Trace> next);
  // Takes back `count` seeds, the last since `before`, that nobody used; but not where other threads have
  // drawn since: theirs stay the only ones of their number.
  void undraw(std::uint64_t before, std::size_t count);
};

// The context of a tensor; throws Error when it is gone.
std::shared_ptr<ContextState> context_of(const Tensor& t, const char* what, const Location& where);

// The devices of two tensors that do not meet, for errors: "on cpu and cuda:0".
std::string apart(const runtime::Device& a, const runtime::Device& b);

Tensor make_tensor(const std::shared_ptr<ContextState>& context, ir::Type type,
                   std::shared_ptr<runtime::Device> device, std::shared_ptr<runtime::Buffer> buffer);

// Memory for a tensor of `type`; throws Error naming what was asked for when there is none.
std::shared_ptr<runtime::Buffer> allocate(const std::shared_ptr<runtime::Device>& device,
                                          const ir::Type& type);

// What errors call the tensors given to a function: "operand 1", or their names where they have some.
struct GivenNames {
  std::string_view role;  // what the tensors are to the function, in the singular
  std::function<std::string(std::size_t)> name = {};
  std::string of(std::size_t i) const;
};
// Throws Error where a tensor is none: "add: operand 1 was never given a value, or was moved from".
void check_given(std::string_view name, const GivenNames& names, std::span<const Tensor> tensors,
                 const Location& where);
// Throws Error where a tensor's memory was given away: "add: operand 1 was donated to the compiled function
// called at model.cpp:41". The caller holds the mutex of their Context until it has used them.
void check_kept(std::string_view name, const GivenNames& names, std::span<const Tensor> tensors,
                const Location& where);
// Throws Error where one is none, or they are on different devices.
void check_operands(std::string_view name, const std::vector<Tensor>& operands, const Location& where);

using GraphFunction = std::function<std::vector<ir::Value>(ir::Graph&, const std::vector<ir::Value>&)>;

// Runs (outside a trace) or records (inside) what `write` adds to a graph whose inputs stand for the
// operands.
std::vector<Tensor> apply(const char* name, const std::vector<Tensor>& operands, const GraphFunction& write,
                          const Location& where);

// What is said of a tensor whose memory was given away.
std::string donated_text(const TensorImpl& tensor);

// What lowering is told of the device, and may do there.
tile::Target with_policy(tile::Target target, const GraphOptions& options);
passes::PipelineOptions pipeline_options(const GraphOptions& options);
std::vector<ir::Type> output_types(const ir::Graph& graph);
// passes::run_pipeline(), counted; an Error of it names no place in the compiler.
passes::Compiled lowered(DeviceState& device, const ir::Graph& graph, const tile::Target& target,
                         const passes::PipelineOptions& options);
// Grants what it can of `over`, and notes it.
void overwrite_inputs(passes::Compiled& compiled, const std::vector<passes::Overwrite>& over);
// Loads the kernels of a compiled graph with these outputs, or takes those that are given.
std::shared_ptr<CompiledGraph> load_graph(DeviceState& device, passes::Compiled compiled,
                                          std::vector<ir::Type> outputs,
                                          std::optional<runtime::BuiltKernels> kernels = {});
// Does work for which the caller's mutexes need not be locked while they are not.
using Unlocked = std::function<void(const std::function<void()>& work)>;
// Compiles a graph, or finds it compiled; and runs it. With `unlocked` others may use the Context while
// passes and compilers run, and a graph that another thread compiles just now is waited for.
std::shared_ptr<CompiledGraph> compile_graph(DeviceState& device, const ir::Graph& graph,
                                             const GraphOptions& options = {}, const Unlocked& unlocked = {});
// The same of an eager operation, whose kernels serve other sizes (size_family.h). `imagined`: its graph at
// some.
std::shared_ptr<CompiledGraph> eager_graph(
    DeviceState& device, const ir::Graph& graph,
    const std::function<std::optional<ir::Graph>(std::size_t)>& imagined);
// Outputs whose place in `given` is empty, or that it lacks, get new memory.
std::vector<Tensor> run_graph(const std::shared_ptr<ContextState>& context, DeviceState& device,
                              CompiledGraph& graph, const std::vector<Tensor>& inputs,
                              const GraphOptions& options = {},
                              std::vector<std::shared_ptr<runtime::Buffer>> given = {});
// The same into buffers that are there. With `autotune` the first run tunes.
void run_graph_into(const std::shared_ptr<ContextState>& context, DeviceState& device, CompiledGraph& graph,
                    std::span<const std::shared_ptr<runtime::Buffer>> inputs,
                    std::span<const std::shared_ptr<runtime::Buffer>> outputs, const GraphOptions& options);

std::string location_text(const Location& where);  // "model.cpp:41"

// Throws another text as what the error is: OutOfMemory, Unavailable, or a mistake.
template <class... Place>
[[noreturn]] void throw_like(const Error& error, const std::string& text, const Place&... where) {
  if (dynamic_cast<const OutOfMemory*>(&error)) throw OutOfMemory(text, where...);
  if (dynamic_cast<const Unavailable*>(&error)) throw Unavailable(text, where...);
  throw Error(text, where...);
}

// What `body` gives; an Error that names no place gets this one.
template <class Body>
decltype(auto) at_place(const Location& where, Body body) {
  try {
    return body();
  } catch (const Error& e) {
    const std::string text = e.what();
    if (text.find(" (at ") != std::string::npos) throw;
    throw_like(e, text, where);
  }
}

// What `body`, the work of the user's function `name`, gives; an Error of it begins with this name and has a
// place.
template <class Body>
decltype(auto) in_function(std::string_view name, const Location& where, Body body) {
  return at_place(where, [&]() -> decltype(auto) {
    try {
      return body();
    } catch (const Error& e) {
      rename_error(name, e);
    }
  });
}

// Throws OutOfMemory where that is why, Error where it was asked for wrongly, Unavailable otherwise.
[[noreturn]] void raise(const Failure& failure, const std::string& message);

}  // namespace tilewright::detail
