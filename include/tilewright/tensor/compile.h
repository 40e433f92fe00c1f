// compile(): a function of tensors, specialised and fused at its first call for each combination of shapes,
// types and devices.
#pragma once

#include <tilewright/base/list.h>
#include <tilewright/passes/fuse/recompute.h>
#include <tilewright/passes/graph/precision.h>
#include <tilewright/perf/cost.h>
#include <tilewright/tensor/functions.h>
#include <tilewright/tensor/signature.h>
#include <tilewright/tile/libraries.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright {

// A dimension of an argument, a Tensor, whose size may change from call to call. Arguments are numbered from
// 0; of a function of one list of tensors, the list's elements are. A negative axis counts from the last. A
// call throws Error where its arguments have no such dimension.
struct DynamicDim {
  int argument = 0;
  int axis = 0;
  friend bool operator==(const DynamicDim&, const DynamicDim&) = default;
};

using tile::Libraries;
namespace tile {
enum class TargetKind;
}

struct CompileOptions {
  bool fullgraph = false;  // a host read inside the function, or another graph break, is an Error
  bool fuse = true;        // false: one kernel per op, for comparison
  Recompute recompute = Recompute::by_cost;  // of large values that several kernels read
  // Measure the schedules (and tiles of matmuls) that the model ranks first, on the first call's data.
  bool max_autotune = false;
  // With max_autotune: what a vendor's library has for a kernel that is a plain product (cuBLASLt, on a GPU
  // where it is installed) is measured as well, and takes the kernel's place where it is faster; explain()
  // says who won, and by how much. Libraries::none: all that runs is our own, as it is without max_autotune.
  Libraries libraries = Libraries::compared;
  // What products of f32 are computed in; inputs, results and everything else keep their types. bf16 and f16:
  // operands are rounded to that type and sums are f32, in gradients as well; a result that another product
  // is made of is rounded once. tf32: operands may lose all but 10 bits of their mantissa where the device
  // multiplies such at several times the rate (tensor cores); elsewhere products have all bits. f32: f32's
  // accuracy; large products may be made of products of bf16 parts that keep all 24 bits. explain() says for
  // each kernel which operation runs in which type. fp8 and fp8_block: products of weights are of 8-bit
  // floats with scales, and other products are as under bf16 (passes/graph/precision.h says which are which).
  // A compiled function that is called inside another has the precision of that one. Throws Error, at the
  // first call, on a value that is no Precision.
  Precision precision = Precision::f32;
  // The same bits at every call with the same arguments on a device. Without it that holds for all but sums
  // of floats by index (scatter_add, gradients of gathers and of embeddings), which are added by atomics:
  // with it they are reductions, which compare every index with every place, or, of large tables, sums of
  // runs of sorted indices. explain() names the kernels with atomics.
  bool deterministic = false;
  bool replay = true;  // CUDA: replay the launches as a graph where that measures faster
  // Kernels take these sizes as arguments: the second size costs some lowerings, those behind it a recording
  // of the function as long as they lie within the range that explain() names; others one lowering. While it
  // is recorded, the function may be called again, also with sizes that no call has: a function that asks a
  // tensor for its shape() or size() is called with those of calls alone, and each is lowered. Where sizes
  // cannot share kernels, explain() says why.
  std::vector<DynamicDim> dynamic = {};
  // Arguments, by their numbers (trees with all their tensors), that a call is given for good: their memory
  // becomes that of outputs of the same type and size, where all that reads them comes before, and is freed
  // behind the call where not; explain() says which, and why. Afterwards every handle of such a tensor is
  // spent: it still tells its shape and type, any use of its values is an Error that names the call. Where
  // tensors share the argument's memory a copy is written. Throws Error on a number that is no argument's,
  // and where a donated tensor is another argument, too, or captured: then nothing is spent. An index out of
  // range (ContextOptions::check) is an Error after they were spent. Has no effect where the call is part of
  // a function that is itself compiled or differentiated, on into(), whose outputs are the caller's, and
  // where there are graph breaks.
  std::vector<int> donate = {};
  // The most bytes of device memory that a call may hold: its arguments and what it captured, its results
  // (but those that lie in donated arguments) and its temporaries. Where temporaries would take more, they
  // are not kept but made again in front of what reads them: the launches that made them are repeated, those
  // first whose time is least for the bytes they save; results are the same. explain() says how many are, and
  // what they are predicted to take. 0: no limit. The first call throws Error where it is negative, and, with
  // the bytes that would do, where no plan is found. With graph breaks it holds for each piece between them.
  std::int64_t memory_budget = 0;
};

// Where the time of a first call went, in ms of the wall clock. What a call finds done, by this or another
// function of the Context, takes none.
struct CompileTimes {
  double trace_ms = 0;     // the function itself, recorded
  double passes_ms = 0;    // from the graph to kernels
  double print_ms = 0;     // schedules considered, texts written
  double compiler_ms = 0;  // Clang or NVRTC, several side by side; kernels on disk: reading them
  double load_ms = 0;      // handed to the device
};

// What one specialisation became. Copies are made and dropped by functions of the library: a user's source is
// compiled sooner.
struct KernelReport {
  KernelReport();
  KernelReport(const KernelReport&);
  KernelReport(KernelReport&&) noexcept;
  // Every member takes the other's value.
  KernelReport& operator=(const KernelReport&);
  KernelReport& operator=(KernelReport&&) noexcept;
  ~KernelReport();

  std::string name;
  std::string ops;  // the graph ops it computes
  double flops = 0;
  double bytes = 0;
  perf::Cost cost;         // the same by unit and element type, reads and writes apart
  double floor_us = 0;     // the least time by the roofline: see SpecialisationReport::floor_source
  std::string bound;       // what the floor is of: "compute", "memory", "L3", …
  double measured_us = 0;  // after measure(); 0: not measured
  double predicted_us = 0;
  double build_ms = 0;
  std::string origin;  // "compiled", "disk"
  std::string schedule;
  std::string called;  // the vendor's library whose call this is, "cublaslt"; empty: a kernel of ours
  std::string tiles;   // its constants: "BM=128 BN=256 BK=64"
  int schedules = 0;   // that the model ranked by predicted time; the first is taken unless they are measured
  std::string note;    // what was found out about it: the share of its blocks that masks leave
  // Under a precision other than f32: which operations run in which type, "matmul bf16, sums f32; add mul
  // f32".
  std::string types;
  std::vector<std::string> tuning;  // max_autotune: the schedules measured, fastest first
  // Where a vendor's library was measured, too: "cublaslt won: 98.10 us, the best of ours 104.32 us, …".
  std::string library;
  // Schedules that the backend considered and cannot print or will not run: "wgmma_dot threads=256
  // group_m=32: why".
  std::vector<std::string> refused;
  std::string source;         // what was compiled
  tile::TargetKind target{};  // whose language the source is in
  std::string key;   // hash of source, launch, compiler and device; launches of one program have the same
  std::string tile;  // tile IR
};
struct SpecialisationReport {
  SpecialisationReport();
  SpecialisationReport(const SpecialisationReport&);
  SpecialisationReport(SpecialisationReport&&) noexcept;
  // Every member takes the other's value.
  SpecialisationReport& operator=(const SpecialisationReport&);
  SpecialisationReport& operator=(SpecialisationReport&&) noexcept;
  ~SpecialisationReport();

  std::string key;        // the guards: types and devices of the arguments; of a range those of the last call
  std::string arguments;  // the key as explain() shows it: of many arguments the first and the last ones
  std::string reason;     // why it was compiled
  // With dynamic dimensions: what the kernels take as arguments, or why they cannot; and the sizes that are
  // served, with n0, n1 … for each. Graphs, floors and predictions are of the size at which they were found.
  std::string dynamic;
  int draws = 0;     // random tensors that each call draws
  int captured = 0;  // tensors that the function captured: inputs of the graph behind its arguments
  double compile_ms = 0;
  CompileTimes times;  // of compile_ms; nothing where the function has graph breaks
  std::vector<KernelReport> kernels;
  std::vector<std::string> not_fused;  // "exp -> sum: …"
  std::string recomputing;             // large values: stored, or computed again; with the predicted times
  std::string precision;               // other than f32: its name, and how many products run in which type
  std::string memory;  // with a memory_budget, or checkpoint(): what temporaries take, and what is repeated
  std::vector<std::string> breaks;  // host reads and what else ran at once, with their lines
  // What became of outputs of into() that are read as well, and of donated arguments: "into: output 0 is
  // argument 0: written in place".
  std::vector<std::string> in_place;
  std::string graph, fused;  // stage dumps: as traced, and after the passes with its kernels
  std::string floor_source;  // which figures the floors are made of
  double floor_us = 0;       // of all kernels, one after another
  double measured_us = 0;    // of a whole call, after measure(); 0: not measured
  Index arena_bytes = 0;
  // Read and written by copies from buffer to buffer beside the kernels: of a result that is asked for twice,
  // and around the block of update_slice() where its operand is still needed. The floors count them.
  double copied_bytes = 0;
  bool replayed = false;                // calls replay a recorded CUDA graph
  double direct_us = 0, replay_us = 0;  // what decided replay; 0 where they were not taken
};

// The stages of a compilation, in their order: the graph as traced, after the passes, each kernel's tile IR,
// each kernel's C++ or CUDA C++.
enum class Stage { graph, fused, tile, source };
inline constexpr Stage kAllStages[] = {Stage::graph, Stage::fused, Stage::tile, Stage::source};
std::string_view name(Stage stage);  // "graph", …
// A stage as text; of several kernels one behind another.
std::string stage_text(const SpecialisationReport& report, Stage stage);
// Writes every stage of every kernel below `folder`, which is made: graph.tw, fused.tw, <kernel>.tile,
// <kernel>.cpp or .cu. Returns the paths. Throws Error when a file cannot be written: it is then not there,
// or as it was; those before it are.
std::vector<std::string> dump_stages(const SpecialisationReport& report, const std::string& folder,
                                     const Location& where = Location::current());
// Guards, kernels with their floors and times, fusions refused and why: what explain() returns.
std::string explain(const std::vector<SpecialisationReport>& reports);

namespace detail {

struct CompiledGraph;
// What a call with certain arguments runs: a graph compiled for them, and its inputs (the arguments, then
// what the function captured, with the seeds of the next call).
struct CompiledCall {
  std::shared_ptr<CompiledGraph> graph;
  std::vector<Tensor> inputs;
  std::size_t draws = 0;    // how many of the inputs are seeds; the random state is as if they were not drawn
  std::size_t checked = 0;  // how many of the graph's outputs, the last, are checks of indices
};

// A compiled function of trees of one structure, given and called as their tensors.
class CompiledCore {
 public:
  // `names`: what errors call the tensors; none: "argument 0", "argument 1", …
  CompiledCore(LeavesFunction function, Structure structure, CompileOptions options,
               std::vector<std::string> names = {});
  ~CompiledCore();
  Leaves call(const std::vector<Tensor>& args, const Location& where);
  // `structure`: of the outputs, where they are more than a list.
  void call_into(const std::vector<Tensor>& outputs, const Structure* structure,
                 const std::vector<Tensor>& args, const Location& where);
  List<SpecialisationReport> report() const;
  // Compiles for these arguments if that was not done; throws Error for a function with graph breaks.
  CompiledCall prepare(const std::vector<Tensor>& args, const Location& where);
  void measure(const std::vector<Tensor>& args, const Location& where);
  void edit(std::size_t kernel, const std::string& source, const std::vector<Tensor>& args,
            const Location& where);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A compiled function of trees: one of their tensors for each structure.
class CompiledCores {
 public:
  // `of_list`: the function takes one list of tensors, and options number its elements as arguments.
  CompiledCores(LeavesFunction function, CompileOptions options, ArgumentNames names, bool of_list);
  ~CompiledCores();
  // `ends`: behind which tensor each argument ends.
  std::shared_ptr<CompiledCore> of(const Structure& structure, std::span<const std::size_t> ends,
                                   const Location& where);
  List<SpecialisationReport> report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What is the same for every function is one of the library: a user's source is compiled sooner.
std::shared_ptr<CompiledCores> make_cores(LeavesFunction function, CompileOptions options,
                                          ArgumentNames names, bool of_list);
[[noreturn]] void throw_moved_from(const Location& where);
[[noreturn]] void throw_wrong_count(std::size_t taken, std::size_t given, const Location& where);

}  // namespace detail

// A compiled function: call it like the original. Several threads may call it at once, also with tensors of
// several Contexts: its programs run one after another, as those of one Context do. The function it was made
// of runs without any lock, and at once in several threads where these call it for the first time: there and
// in value_and_grad() what is recorded belongs to the thread that runs the function, and using it on another
// is an Error. What other threads do meanwhile, with tensors that have memory, is no part of the recording.
template <class Function>
class Compiled;
template <class R, class... A>
class Compiled<R(A...)> {
  static constexpr bool kOfTensors = (std::is_same_v<A, Tensor> && ...);
  static constexpr bool kOfList = std::is_same_v<std::tuple<A...>, std::tuple<std::vector<Tensor>>>;
  using Tensors = std::vector<Tensor>;

 public:
  using Signature = R(A...);

  // Throws Error where f is empty: a null pointer, a std::function of nothing.
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, Compiled>)
  explicit Compiled(F f, const Location& where = Location::current())
      : Compiled(std::move(f), CompileOptions(), where) {}
  template <class F>
  Compiled(F f, CompileOptions options, const Location& where = Location::current())
      : cores_(detail::make_cores(
            detail::as_leaves_function(std::type_identity<R(A...)>(), std::move(f), "compile", where),
            std::move(options), detail::names_of_arguments(std::type_identity<R(A...)>()), kOfList)) {}

  R operator()(const A&... args, const Location& where = Location::current()) const {
    const Call call(*this, where, args...);
    return detail::read_tree<R>(call.core->call(call.leaves.tensors, where));
  }
  // The same, of a function of Tensors, with its arguments as a list.
  R operator()(const Tensors& args, const Location& where = Location::current()) const
    requires kOfTensors
  {
    return detail::read_tree<R>(core_of(args, where)->call(args, where));
  }

  // Writes the results into tensors the caller has, of the right types; other handles of them see it. An
  // output may be an argument or a tensor that the function captures (w.into an update of w): everything is
  // read as it was before the call. Such an output is written in place where all that reads the tensor comes
  // before (kernels that read other elements of it than they write run first, or are the reason why not).
  // Otherwise kernels write new memory, which becomes the tensor's; where others share the tensor's own, it
  // is copied there. explain() says which, and why. Throws Error where the outputs are not as many tensors,
  // of the same types, in lists of the same lengths and with the same numbers, as the results. Not for
  // functions with graph breaks. An index out of range (ContextOptions::check) is an Error after the outputs
  // were written.
  void into(const R& outputs, const A&... args, const Location& where = Location::current()) const {
    const Call call(*this, where, args...);
    const detail::Leaves given = detail::leaves_of(outputs);
    call.core->call_into(given.tensors, &given.structure, call.leaves.tensors, where);
  }
  // The same with the outputs, and the arguments of a function of Tensors, as lists.
  void into(const Tensors& outputs, const Tensors& args, const Location& where = Location::current()) const
    requires(kOfTensors || (kOfList && !std::is_same_v<R, Tensors>))
  {
    core_of(args, where)->call_into(outputs, nullptr, args, where);
  }

  // Guards, kernels, floors, fusions refused and why, and the times of what was measured; for each
  // specialisation, the one called last first.
  std::string explain(const Location& where = Location::current()) const {
    return tilewright::explain(report(where));
  }
  // The same as data.
  List<SpecialisationReport> report(const Location& where = Location::current()) const {
    return known(where).report();
  }

  // Times each kernel and the whole call on these arguments (about half a second): explain() and report()
  // then show them beside their floors. Arguments that fit a cache are found there, as by a loop that calls
  // the function.
  void measure(const A&... args, const Location& where = Location::current()) const {
    const Call call(*this, where, args...);
    call.core->measure(call.leaves.tensors, where);
  }
  void measure(const Tensors& args, const Location& where = Location::current()) const
    requires kOfTensors
  {
    core_of(args, where)->measure(args, where);
  }

  // Puts an edited text of kernel `kernel` (its place in report().kernels) in the place of the printed one,
  // for these arguments. Throws Error with the compiler's message and the text's line when it does not
  // compile.
  void edit(std::size_t kernel, const std::string& source, const A&... args,
            const Location& where = Location::current()) const {
    const Call call(*this, where, args...);
    call.core->edit(kernel, source, call.leaves.tensors, where);
  }
  void edit(std::size_t kernel, const std::string& source, const Tensors& args,
            const Location& where = Location::current()) const
    requires kOfTensors
  {
    core_of(args, where)->edit(kernel, source, args, where);
  }

  // The program of such arguments, with its inputs: what the project's own tools measure.
  detail::CompiledCall prepare(const A&... args, const Location& where = Location::current()) const {
    const Call call(*this, where, args...);
    return call.core->prepare(call.leaves.tensors, where);
  }

 private:
  // The arguments taken apart, and what serves their structure.
  struct Call {
    detail::Leaves leaves;
    std::array<std::size_t, sizeof...(A)> ends;
    std::shared_ptr<detail::CompiledCore> core;
    Call(const Compiled& compiled, const Location& where, const A&... args)
        : ends(take(leaves, args...)), core(compiled.known(where).of(leaves.structure, ends, where)) {}
    static std::array<std::size_t, sizeof...(A)> take(detail::Leaves& leaves, const A&... args) {
      return {(detail::Tree<A>::write(args, leaves), leaves.tensors.size())...};
    }
  };
  detail::CompiledCores& known(const Location& where) const {
    if (!cores_) detail::throw_moved_from(where);
    return *cores_;
  }
  std::shared_ptr<detail::CompiledCore> core_of(const Tensors& args, const Location& where) const {
    if constexpr (kOfList) return Call(*this, where, args).core;
    if (args.size() != sizeof...(A)) detail::throw_wrong_count(sizeof...(A), args.size(), where);
    std::array<std::size_t, sizeof...(A)> ends{};
    for (std::size_t i = 0; i < ends.size(); ++i) ends[i] = i + 1;
    return known(where).of({}, ends, where);
  }
  std::shared_ptr<detail::CompiledCores> cores_;
};

// A compiled function of a list of tensors that gives one.
using CompiledList = Compiled<std::vector<Tensor>(std::vector<Tensor>)>;

// f takes and gives Tensors, or trees of them (tree.h): lists, and structs that name their members. Numbers
// in these are constants of the program: another number compiles anew. It may be any function whose
// parameters can be told: a lambda (of `auto` parameters: called with Tensors), a function, a member
// function, whose object comes first, or what compile() and value_and_grad() give. There is at least one
// tensor among its arguments.
//
// It must be a pure function of its arguments and of the tensors it captures. Those are inputs of the
// program: which tensors they are is found when f is traced, once per specialisation; a variable that holds
// another tensor later is not looked at again. What no program does (a read on the host, a TileFunction,
// into(), to() another device, operations on tensors of another device than the arguments') is a graph break,
// of arguments and of captured tensors: what was recorded before runs first, and f runs at every call.
// (Tensors of another Context are not seen: what f reads of them is a constant of the program.) Inside a
// function that is itself compiled or differentiated, what is captured may be a value of that one, at any
// nesting; what f recorded and did not return has no value outside. Random tensors that f draws from the
// Context of its arguments (randn, rand, randint) are drawn anew at each call, the same as f would draw when
// run by itself. A function that calls itself with arguments of the same types is an Error.
template <class F>
  requires(!std::is_function_v<F>)
auto compile(F f, CompileOptions options = {}, const Location& where = Location::current()) {
  using S = typename detail::SignatureOf<F>::Type;
  static_assert(detail::check_signature(std::type_identity<S>()));
  return Compiled<S>(std::move(f), std::move(options), where);
}
// A name with overloads, or a template's, is refused by a sentence.
template <class Nothing = void, class F = typename detail::RefusedName<Nothing>::Type>
  requires std::same_as<F, detail::SeveralFunctions>
void compile(F f, CompileOptions options = {}, const Location& where = Location::current());
// The same of what its type does not tell: compile<Tensor(Tensor, Tensor)>(f).
template <class Function, class F>
  requires std::is_function_v<Function>
auto compile(F f, CompileOptions options = {}, const Location& where = Location::current()) {
  using S = typename detail::SignatureOf<Function*>::Type;
  static_assert(detail::check_signature(std::type_identity<S>()));
  return Compiled<S>(std::move(f), std::move(options), where);
}

}  // namespace tilewright
#pragma GCC visibility pop
