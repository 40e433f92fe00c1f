// Trace: the recording of a function's operations, for compile() and value_and_grad(). Functions that are
// recorded may call one another and use each other's values: the traces nest as the calls do.
#pragma once

#include "tensor/state.h"

#include <tilewright/tensor/tile_function.h>
#include <tilewright/tensor/tree.h>

#include <atomic>

namespace tilewright::detail {

// What a traced function does that no program does: a host read, a hand-written kernel, an operation on
// another device. It happens as the function runs, so the function runs at every call.
struct Break {
  std::string what;  // "item() of f32[]"
  std::string location;
  double cost_ms = 0;  // running what was recorded so far; 0: nothing had to
};

// What ran before a graph break, or between two of them.
struct Piece {
  std::string traced;  // the graph as written
  std::shared_ptr<CompiledGraph> graph;
};

// A check of indices that the program makes: its last outputs are, for each, the place of the first index out
// of range and that index (tensor/index_check.h).
struct PendingCheck {
  std::string op, what;
  Shape shape;  // of the indices
  Index extent = 0;
  bool ascending = false;
  int axis = -1;  // that the index is of, where each axis has one
  std::string location;
};

// A call of a hand-written kernel that has a gradient (tensor/kernel_gradients.h).
struct KernelCall {
  std::string kernel;
  Location where;
  TileCall call;  // what it read and made, with memory
  std::shared_ptr<const TileGradient> gradient;
  std::vector<ir::NodeId> read = {};  // what it read, in the trace's graph
  std::size_t first_made = 0;         // the input that stands for the first tensor it made; the others follow
};

struct Trace {
  enum class Of : std::uint8_t { compile, value_and_grad, composite };
  Trace(Of of, std::string graph_name, const Location& at)
      : of(of), where(at), graph(std::move(graph_name)) {}
  Of of;
  Location where;                                       // of the call
  std::thread::id thread = std::this_thread::get_id();  // that runs the function: its values belong to it
  std::shared_ptr<runtime::Device> device;
  std::shared_ptr<Trace> enclosing;  // of the function that made the call: its values are inputs here
  ir::Graph graph;
  std::vector<Tensor> inputs;  // in the order of the graph's inputs: with memory, or values of `enclosing`
  std::size_t arguments = 0;   // how many of them are the function's own; the rest it captured
  std::vector<std::size_t> draws;  // which of them are seeds: random numbers are drawn from them
  int literals = 0;                // inputs that hold a number of the host language
  std::vector<std::weak_ptr<TensorImpl>> values;  // what was recorded and may still be wanted
  std::vector<PendingCheck> checks;
  std::vector<ir::NodeId> checked;  // two for each check, not yet looked at
  std::string no_breaks;            // where a graph break is an error: of what
  GraphOptions options;             // of what runs before the end of the function
  std::vector<Break> breaks;
  std::vector<Piece> pieces;  // what was run already
  // The function asked a recorded value for its shape or size: on any thread, and without a lock.
  std::atomic<bool> reads_shapes = false;
  bool ended = false;               // the function has returned
  bool in_checkpoint = false;       // the function is inside one that is checkpointed
  std::vector<KernelCall> kernels;  // of value_and_grad(), in the order of their calls
};

// While it lives, `trace` is the innermost recording of this thread in its context; after it, the trace has
// ended.
class Recording {
 public:
  Recording(ContextState& context, const std::shared_ptr<Trace>& trace) : context_(context), trace_(trace) {
    trace->enclosing = context.exchange_recording(trace);
  }
  ~Recording() {
    context_.exchange_recording(trace_->enclosing);
    trace_->ended = true;
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  ContextState& context_;
  std::shared_ptr<Trace> trace_;
};

// Runs `function` on stand-ins of `arguments`, of the types given, and records what it does. The function
// opens the mutexes that its caller holds before it calls the user's.
struct Recorded {
  std::shared_ptr<Trace> trace;
  std::vector<Tensor> results;
  Structure structure;  // of the results
};
using RecordedFunction = std::function<Leaves(const std::vector<Tensor>&)>;
Recorded record_function(const RecordedFunction& function, const std::vector<Tensor>& arguments,
                         const std::vector<ir::Type>& types, std::shared_ptr<Trace> trace,
                         const std::shared_ptr<ContextState>& context);

// Makes the results the outputs of the recorded graph, and what its checks found.
void finish(Recorded& recorded);

// Throws Error: a value of a function that has returned.
[[noreturn]] void escaped(const Trace& from);

// Throws Error for a value of a function that another thread is running.
void check_thread(const TensorImpl& t);

// Whether a running function recorded it: operations on it are recorded, too.
bool is_recorded(const Tensor& t);

// The trace that an operation on these belongs to: the innermost of theirs; null when all have memory and
// are of no trace. Throws Error where one was recorded in a function that does not enclose the others'.
std::shared_ptr<Trace> trace_of(const std::vector<Tensor>& operands);

// The trace that records an operation on these: trace_of(), and inside compile() its trace also where all of
// them have memory: they are inputs of the program, which reads them at each call. Null where it runs now.
std::shared_ptr<Trace> recording_trace(const ContextState& context, const std::vector<Tensor>& operands);

// The trace of the outermost compile() whose function is running, if it is of this device: what is made there
// of no operands belongs to it.
std::shared_ptr<Trace> creation_trace(const ContextState& context, const runtime::Device& device);

// A tensor's node in a trace's graph; tensors with memory and values of the enclosing functions become
// inputs. Throws Error for what was recorded anywhere else.
ir::NodeId node_in(Trace& trace, const Tensor& t);

std::vector<Tensor> record(const std::shared_ptr<ContextState>& context, const std::shared_ptr<Trace>& trace,
                           const std::vector<Tensor>& operands, const GraphFunction& write,
                           const Location& where);

// An input of the trace that only it has: recorded, of the memory of `concrete`.
Tensor add_input(const std::shared_ptr<Trace>& trace, const Tensor& concrete, const std::string& name);

// Whether values of enclosing functions are among the inputs: then the graph is part of theirs.
bool captures_recorded(const Trace& trace);
// What was recorded, written into the enclosing functions' graphs instead of being compiled by itself.
std::vector<Tensor> inlined(const Recorded& recorded, const Location& where);

// The trace of the outermost compile() whose function is running: what is recorded now will run again. Null
// outside.
std::shared_ptr<Trace> outermost_compile(const ContextState& context);

// Throws Error where there are no arguments, or one has no value.
void check_arguments(const char* name, const std::vector<Tensor>& args, const GivenNames& names,
                     const Location& where);
std::vector<ir::Type> types_of(const std::vector<Tensor>& tensors);

// A new i64[] with memory for each call, drawn from the context's seed: Philox's key.
Tensor draw_seed(const std::shared_ptr<ContextState>& context,
                 const std::shared_ptr<runtime::Device>& device);
// The same, but inside compile() an input of the call, drawn again at each.
Tensor recorded_seed(const std::shared_ptr<ContextState>& context,
                     const std::shared_ptr<runtime::Device>& device);

// The tensor with memory that a recorded value stands for; null when it is computed.
const Tensor* concrete(const Tensor& t);

// Gives a recorded value memory for a use that no program has (`what`, "item() of f32[]"): runs what its
// trace has recorded so far; what follows is recorded in a graph that takes these values as inputs. Throws
// Error where graph breaks are none of the function's business, and after the function has returned.
void give_memory(const TensorImpl& value, const std::shared_ptr<ContextState>& context,
                 const std::string& what, const Location& where);
// Such a use is a graph break of this recording. Throws Error where it must be one program.
void note_break(Trace& trace, const std::string& what, const Location& where);
// Something of tensors with memory happens now, though a compiled function is being recorded: captured
// tensors are its inputs, so this must happen at every call: a graph break. Values of the recording `of` had
// theirs when they got memory.
void happens_now(ContextState& context, const std::string& what, const Location& where,
                 const Trace* of = nullptr);

// While it lives, nothing is recorded: what runs beside a recording (a hand-written kernel, a compiled
// function on another device, `into`) is a graph break of it. Values that are read get memory first, and what
// was recorded of tensors that are written has run by then.
class Aside {
 public:
  Aside(const std::shared_ptr<ContextState>& context, const std::string& what,
        const std::vector<Tensor>& read, const std::vector<Tensor>& written, const Location& where);
  ~Aside() {
    if (recording_) context_->exchange_recording(recording_);
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

 private:
  std::shared_ptr<ContextState> context_;
  std::shared_ptr<Trace> recording_;
};
// The same memory as tensors of no recording.
std::vector<Tensor> apart_from_recordings(const std::vector<Tensor>& tensors);

// The function has returned: its values with memory are tensors like any other.
void end(Trace& trace);

}  // namespace tilewright::detail
