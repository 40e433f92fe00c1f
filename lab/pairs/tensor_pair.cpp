// Instances from descriptions.
#include "pairs/tensor_pair.h"

#include <numeric>

#include "pairs/lab_device.h"
#include "pairs/result_tensors.h"
#include "pairs/truth.h"
#include "tensor/storage.h"

namespace tilewright::lab {

namespace {

// What the functions of one instance share.
struct Shared {
  Shared(TensorWorkload w, std::int64_t copies, LabDevice& device)
      : workload(std::move(w)),
        context(device.context),
        queues(device.kind == DeviceKind::cuda),
        inputs(workload.inputs, copies, *context) {}
  TensorWorkload workload;
  Context* context;
  bool queues;  // whether calls return before their work is done
  TensorInputs inputs;
  ThreadPool pool{0, {.spin_us = 0, .pin = false}};  // sleeps while contenders are timed
};
using SharedPtr = std::shared_ptr<Shared>;

void finish_contender(Contender& contender, const SharedPtr& shared, const ResultTensors& results,
                      const std::function<void()>& ensure) {
  if (shared->queues)
    contender.finish = [context = shared->context] { return guarded([&] { context->synchronize(); }); };
  add_outputs(contender, results, shared->workload.outputs.size(), ensure);
}

// A contender whose calls make new results, as users' code does. The old ones are dropped first: their
// memory, poisoned, is what the allocator hands out again.
Contender eager(const SharedPtr& shared, const std::string& name, const TensorFunction& f) {
  auto results = std::make_shared<std::vector<Tensor>>();
  const auto run = [shared, results, f](std::int64_t iteration) {
    results->clear();
    *results = f(shared->inputs.copy(iteration));
  };
  Contender contender{.name = name};
  contender.run = [run](std::int64_t iteration) { return guarded([&] { run(iteration); }); };
  finish_contender(contender, shared, results, [run, results] {
    if (results->empty()) run(0);
  });
  return contender;
}

ResultTensors placed_outputs(const Shared& shared) {
  return placed_results(*shared.context, shared.workload.outputs);
}

// "cublaslt": of a program that is nothing but its calls; empty for another.
std::string library_of(const SpecialisationReport& report) {
  const std::vector<KernelReport>& kernels = report.kernels;
  const auto alike = [&](const KernelReport& k) { return k.called == kernels[0].called; };
  return !kernels.empty() && std::all_of(kernels.begin(), kernels.end(), alike) ? kernels[0].called : "";
}

Contender compiled(const SharedPtr& shared, const std::string& name, const CompiledList& function) {
  auto results = placed_outputs(*shared);
  Contender contender{.name = name};
  contender.run = [shared, results, function](std::int64_t iteration) {
    return guarded([&] { function.into(*results, shared->inputs.copy(iteration)); });
  };
  contender.first_call = [function, tells_memory = shared->workload.tells_memory] {
    const SpecialisationReport report = function.report().front();
    const bool from_disk = std::any_of(report.kernels.begin(), report.kernels.end(),
                                       [](const KernelReport& k) { return k.origin == "disk"; });
    return FirstCall{
        report.compile_ms, from_disk,
        tells_memory
            ? "temporaries of a call: " + perf::with_prefix(static_cast<double>(report.arena_bytes)) + "B"
            : std::string()};
  };
  finish_contender(contender, shared, results, {});
  return contender;
}

// What eager is where no composite is one kernel: the program's primitive operations, each a kernel, launched
// one after another. Its memory is planned ahead, and the host has less to do than for a call each: it is at
// least as fast as the same by hand.
Contender decomposed(const SharedPtr& shared) {
  CompileOptions options = shared->workload.options;
  options.fuse = false;
  options.replay = false;
  const TensorFunction& f = shared->workload.eager ? shared->workload.eager : shared->workload.function;
  return compiled(shared, "decomposed", compile(f, options));
}

// A vendor's library that has a call for every kernel of the program, under its own name: our kernels are not
// compared with it, but left out. Which one that is is seen when it has run.
std::optional<Contender> library(const SharedPtr& shared) {
  CompileOptions options = shared->workload.options;
  options.max_autotune = true;
  options.libraries = Libraries::alone;
  const CompiledList function = compile(shared->workload.function, options);
  std::string name;
  const Status ran = guarded([&] {
    function.into(*placed_outputs(*shared), shared->inputs.copy(0));
    name = library_of(function.report().front());
  });
  if (!ran || name.empty()) return std::nullopt;
  return compiled(shared, name, function);
}

void add_ways(const SharedPtr& shared, const std::vector<OtherWay>& ways, std::vector<Contender>& to) {
  for (const OtherWay& way : ways)
    to.push_back(way.options ? compiled(shared, way.name, compile(way.function, *way.options))
                             : eager(shared, way.name, way.function));
}

Contender by_hand(const SharedPtr& shared, const LabDevice& device) {
  auto results = placed_outputs(*shared);
  Contender contender{.name = "tile"};
  contender.run = [shared, results, launch = shared->workload.tile(device)](std::int64_t iteration) {
    return guarded([&] { launch(*results, shared->inputs.copy(iteration)); });
  };
  finish_contender(contender, shared, results, {});
  return contender;
}

// The workload for contenders in other processes. They are kept by what the instance owns, so they must not
// own it.
PeerWorkload for_peers(const SharedPtr& shared) {
  const TensorWorkload& w = shared->workload;
  PeerWorkload peer{.target = w.target, .parameters = w.peer_parameters};
  peer.copies = shared->inputs.copies();
  for (const InputSpec& input : w.inputs)
    peer.inputs.push_back({input.dtype, input.shape, input.rotated ? peer.copies : 1});
  const std::weak_ptr<Shared> owner = shared;
  peer.read_input = [owner](std::size_t input, std::int64_t copy, void* to) -> Status {
    const SharedPtr alive = owner.lock();
    TW_CHECK(alive != nullptr, "peers read inputs only while their instance lives");
    return detail::read_storage(alive->inputs.copy(copy)[input], to);
  };
  peer.on_refresh = [owner](std::function<Status()> listener) {
    if (const SharedPtr alive = owner.lock()) alive->inputs.on_refresh(std::move(listener));
  };
  peer.outputs = w.outputs;
  peer.source = w.peer_source;
  peer.unavailable = w.no_peers;
  return peer;
}

double output_bytes(const std::vector<OutputSpec>& outputs) {
  return std::accumulate(outputs.begin(), outputs.end(), 0.0, [](double sum, const OutputSpec& o) {
    return sum + static_cast<double>(o.shape.size()) * static_cast<double>(size_bytes(o.dtype));
  });
}

PairInstance assemble(const SharedPtr& shared, LabDevice& device) {
  const TensorWorkload& w = shared->workload;
  PairInstance instance{
      .target = w.target, .device = device.name, .shape = w.shape, .dtype = w.dtype, .sweep = w.sweep};
  instance.work.cost = w.cost;
  instance.work.working_set_bytes = shared->inputs.working_bytes() + output_bytes(w.outputs);
  instance.unit = w.unit;
  instance.outputs = w.outputs;
  instance.reference = [shared](std::int64_t iteration) {
    const TensorWorkload& work = shared->workload;
    return work.reference ? work.reference(shared->inputs.host(iteration, shared->pool), shared->pool)
                          : unknown(work.outputs);
  };
  if (w.peer_truth && device.peers) {
    auto truth = device.peers->truth(for_peers(shared), w.truth_storage);
    instance.reference = [shared, truth](std::int64_t iteration) {
      return shared->workload.peer_truth(truth ? (*truth)(iteration)
                                               : Result<std::vector<std::vector<double>>>(truth.error()));
    };
  }
  instance.refresh_inputs = [shared](std::uint64_t seed) { return shared->inputs.refresh(seed); };
  instance.input_digest = [shared] { return shared->inputs.digest(shared->pool); };
  instance.input_memory = [shared] { return shared->inputs.memory(); };
  instance.input_copies = shared->inputs.copies();
  if (w.op_by_op) instance.contenders.push_back(eager(shared, "eager", w.eager ? w.eager : w.function));
  if (w.composites) instance.contenders.push_back(decomposed(shared));
  add_ways(shared, w.before, instance.contenders);
  const CompiledList function = compile(w.function, w.options);
  CompileOptions measured = w.options;
  measured.max_autotune = true;
  instance.compiled = std::make_shared<CompiledAccess>(
      CompiledAccess{function, compile(w.function, measured), shared->inputs.copy(0)});
  measured.libraries = Libraries::none;  // what is called ours is our own
  const CompiledList tuned = compile(w.function, measured);
  instance.contenders.push_back(compiled(shared, "compiled", function));
  if (device.autotune) instance.contenders.push_back(compiled(shared, "tuned", tuned));
  if (device.libraries)
    if (std::optional<Contender> call = library(shared)) instance.contenders.push_back(std::move(*call));
  if (device.launches) {
    CompileOptions launched = w.options;
    launched.replay = false;
    instance.contenders.push_back(compiled(shared, "launched", compile(w.function, launched)));
  }
  add_ways(shared, w.behind, instance.contenders);
  if (w.tile) instance.contenders.push_back(by_hand(shared, device));
  if (device.peers) {
    for (Contender& peer : device.peers->contenders(for_peers(shared)))
      instance.contenders.push_back(std::move(peer));
  }
  return instance;
}

}  // namespace

Result<PairInstance> make_instance(TensorWorkload workload, LabDevice& device) {
  TW_CHECK(device.context != nullptr, "a pair on tensors needs a context");
  const std::int64_t copies =
      copies_for(workload.inputs, output_bytes(workload.outputs), cache_bytes(device));
  std::optional<Result<PairInstance>> made;
  const Status done = guarded([&] {
    auto shared = std::make_shared<Shared>(std::move(workload), copies, device);
    const Status filled = shared->inputs.refresh(0);
    made = filled ? Result(assemble(shared, device)) : Result<PairInstance>(filled.error());
  });
  if (!done) return done.error();
  return std::move(*made);
}

std::vector<KnobValue> plain_floats() { return {DType::f32, DType::f64, DType::f16, DType::bf16}; }

Knob dtype_knob() {
  return {.name = "dtype",
          .values = {DType::f32},
          .doc = "element type",
          .cuda_values = {DType::bf16},
          .choices = plain_floats()};
}

perf::Cost cost_of(const std::vector<InputSpec>& inputs, const std::vector<OutputSpec>& outputs, double flops,
                   DType compute) {
  perf::Cost cost;
  cost.vector[compute] = flops;
  for (const InputSpec& input : inputs) cost.bytes_read += input_bytes(input);
  cost.bytes_written = output_bytes(outputs);
  return cost;
}

}  // namespace tilewright::lab
