// Instances of procedures.
#include "pairs/procedure_pair.h"

#include <tilewright/base/error.h>

#include "pairs/result_tensors.h"

namespace tilewright::lab {

namespace {

// What the functions of one instance share.
struct State {
  ProcedureWorkload workload;
  std::vector<std::function<Status()>> listeners;  // of peers, which keep copies of their own
};
using StatePtr = std::shared_ptr<State>;

Status refresh(State& state, std::uint64_t seed) {
  if (Status made = state.workload.refresh(seed); !made) return made;
  for (const auto& listener : state.listeners) {
    if (Status heard = listener(); !heard) return heard;
  }
  return Unit{};
}

Contender contender_of(const StatePtr& state, const Procedure& procedure, Context& context) {
  const ResultTensors results = placed_results(context, state->workload.outputs);
  Contender contender{.name = procedure.name};
  contender.note = procedure.note;
  contender.run = [state, results, run = procedure.run](std::int64_t iteration) {
    return guarded([&] { run(iteration, *results); });
  };
  if (procedure.waited_us)
    contender.waited_us = [tell = procedure.waited_us]() -> Result<double> { return tell(); };
  add_outputs(contender, results, results->size());
  return contender;
}

Status read_derived(const State& state, const std::vector<OutputAccess>& outputs, std::size_t d,
                    const ElementsVisitor& visit) {
  std::vector<std::vector<double>> given;
  given.reserve(state.workload.outputs.size());
  for (std::size_t o = 0; o < state.workload.outputs.size(); ++o) {
    auto values = read_doubles(outputs[o]);
    if (!values) return values.error();
    given.push_back(std::move(*values));
  }
  const std::vector<double> made = state.workload.derived[d].make(given);
  visit({made.data(), DType::f64, 0, std::ssize(made)});
  return Unit{};
}

// What is derived holds no memory: there is nothing to poison but what it is made of.
void add_derived(const StatePtr& state, Contender& contender) {
  const std::vector<OutputAccess> outputs = contender.outputs;
  for (std::size_t d = 0; d < state->workload.derived.size(); ++d)
    contender.outputs.push_back(
        {.poison = [](std::uint8_t) -> Status { return Unit{}; },
         .read = [state, outputs,
                  d](const ElementsVisitor& visit) { return read_derived(*state, outputs, d, visit); }});
}

std::vector<Contender> peers_of(const StatePtr& state, Peers& peers) {
  if (!state->workload.peers) return {};
  PeerWorkload workload = *state->workload.peers;
  workload.outputs = state->workload.outputs;
  workload.on_refresh = [known = std::weak_ptr(state)](std::function<Status()> listener) {
    if (const StatePtr alive = known.lock()) alive->listeners.push_back(std::move(listener));
  };
  return peers.contenders(workload);
}

PairInstance assemble_procedures(const StatePtr& state, LabDevice& device) {
  const ProcedureWorkload& w = state->workload;
  PairInstance instance{.target = w.target, .device = device.name, .shape = w.shape, .dtype = w.dtype};
  instance.steps = w.steps;
  instance.work.cost = w.cost;
  instance.work.working_set_bytes = w.cost.bytes() * static_cast<double>(w.steps);
  instance.unit = w.unit;
  instance.outputs = w.outputs;
  for (const DerivedOutput& derived : w.derived) instance.outputs.push_back(derived.spec);
  instance.reference = [state](std::int64_t) { return state->workload.reference(); };
  instance.refresh_inputs = [state](std::uint64_t seed) { return refresh(*state, seed); };
  instance.input_digest = [state] { return state->workload.digest(); };
  for (const Procedure& procedure : w.procedures)
    instance.contenders.push_back(contender_of(state, procedure, *device.context));
  if (device.peers)
    for (Contender& peer : peers_of(state, *device.peers)) instance.contenders.push_back(std::move(peer));
  for (Contender& contender : instance.contenders)
    if (contender.unavailable.empty()) add_derived(state, contender);
  return instance;
}

}  // namespace

Result<PairInstance> make_instance(ProcedureWorkload workload, LabDevice& device) {
  TW_CHECK(!workload.procedures.empty(), "a workload of procedures has one");
  const auto state = std::make_shared<State>(State{std::move(workload), {}});
  if (Status made = state->workload.refresh(0); !made) return made.error();
  std::optional<PairInstance> instance;
  if (Status done = guarded([&] { instance = assemble_procedures(state, device); }); !done)
    return done.error();
  return std::move(*instance);
}

}  // namespace tilewright::lab
