// CompiledCore::State: what a compiled function has become, and the way to the program of a call.
#pragma once

#include "tensor/specialisation.h"

#include <list>
#include <thread>

namespace tilewright::detail {

GraphOptions graph_options(const CompileOptions& options);

// Runs what was recorded since the last graph break, or writes it into the function that encloses this one.
// Results on other devices were made at once: they are the caller's as they are.
std::vector<Tensor> run_rest(Recorded& recorded, const std::shared_ptr<ContextState>& context,
                             DeviceState& device);

struct CompiledCore::State {
  struct Running {
    std::thread::id thread;
    std::vector<Guard> guards;  // of the arguments
  };
  LeavesFunction function;
  Structure structure;                  // of the arguments
  std::vector<std::string> names = {};  // of their tensors in errors, where these are parts of arguments
  GivenNames arguments() const {
    if (names.empty()) return {"argument"};
    return {"argument", [this](std::size_t i) { return names.at(i); }};
  }
  CompileOptions options;
  std::vector<std::shared_ptr<Specialisation>> specialisations;  // most recently used first
  std::list<Running> running;  // the calls of the function that are being recorded
  // Guards all of these: calls with tensors of several Contexts do not share a Context's mutex. Both are
  // taken together, so that no thread holds one of them while it waits for the other. Neither is held while
  // the function runs, nor while what it recorded is compiled: after that, other threads may have made
  // specialisations and dropped some.
  OpenMutex mutex;
  std::size_t opened = 0;  // how often neither was held on the way: what was looked up before may be gone

  SizeHistory history;
  bool reads_shapes = false;  // it did at least once: then it is called with sizes of arguments only
  // Specialisations that will do: those for a range, too, or only those for the arguments' sizes alone, for
  // which it was proved that a program may write over its inputs.
  enum class Sizes : std::uint8_t { of_a_range, alone };
  // What a call runs, with the sizes of its arguments, as long as both are held.
  struct Ready {
    std::shared_ptr<Specialisation> s;
    std::shared_ptr<CompiledGraph> graph;  // null: the function has graph breaks, and runs at each call
    std::optional<Leaves> ran;             // then: what it returned, where this was seen by running it
  };

  // `wanted` says what the program of a specialisation is to write over its inputs.
  template <class Wanted>
  Ready ready(const std::vector<Tensor>& args, const std::shared_ptr<ContextState>& context,
              const Location& where, const Wanted& wanted);
  template <class Wanted>
  Ready as_one_program(const std::vector<Tensor>& args, const std::shared_ptr<ContextState>& context,
                       const Location& where, const Wanted& wanted);
  Ready prepared(const std::vector<Tensor>& args, const std::shared_ptr<ContextState>& context,
                 const Location& where);
  void use(const std::shared_ptr<Specialisation>& s);
  std::shared_ptr<Specialisation> find_alone(const std::vector<Tensor>& args);
  template <class Traced>
  std::shared_ptr<Specialisation> find(const std::vector<Tensor>& args, Sizes sizes, const Traced& traced);
  TracedAt traced_at(const std::vector<Tensor>& args, const std::vector<ir::Type>& types,
                     const std::shared_ptr<ContextState>& context, const Location& where);
  std::shared_ptr<Specialisation> specialise(const std::vector<Tensor>& args,
                                             const std::shared_ptr<ContextState>& context, Sizes sizes,
                                             std::optional<Leaves>& ran, const Location& where);
  std::shared_ptr<CompiledGraph> program(Specialisation& s, const std::vector<passes::Overwrite>& over,
                                         const std::vector<Tensor>& args,
                                         const std::shared_ptr<ContextState>& context, const Location& where);
  Leaves run_function(const std::vector<Tensor>& args, const std::shared_ptr<ContextState>& context);
  Recorded record(const std::vector<Tensor>& args, const std::vector<ir::Type>& types,
                  const std::shared_ptr<ContextState>& context, const Location& where,
                  const std::string& no_breaks = "");
  SizeFamily::Others recorded_sizes(const Specialisation& s, const std::vector<DynamicDim>& dynamic) const;
};

// The specialisation for these arguments, with their sizes; null where there is none. `traced` gives the
// function's recording for them, where a range asks for it.
template <class Traced>
std::shared_ptr<Specialisation> CompiledCore::State::find(const std::vector<Tensor>& args, Sizes sizes,
                                                          const Traced& traced) {
  if (std::shared_ptr<Specialisation> s = find_alone(args); s || sizes == Sizes::alone) return s;
  const std::vector<std::shared_ptr<Specialisation>> known = specialisations;  // others may change them
  for (const std::shared_ptr<Specialisation>& s : known) {
    if (!serves(*s, args) || !take_sizes(*s, args, traced)) continue;
    use(s);
    return s;
  }
  return nullptr;
}

// Other threads may do whatever they like with specialisations while the function runs and is compiled: where
// it was on the way to a program, the way is gone again, over what is there by then.
template <class Wanted>
CompiledCore::State::Ready CompiledCore::State::ready(const std::vector<Tensor>& args,
                                                      const std::shared_ptr<ContextState>& context,
                                                      const Location& where, const Wanted& wanted) {
  const auto traced = [&] { return traced_at(args, types_of(args), context, where); };
  for (Sizes sizes = Sizes::of_a_range;;) {
    Ready out;
    out.s = find(args, sizes, traced);
    if (!out.s) out.s = specialise(args, context, sizes, out.ran, where);
    if (!out.s->recorded) return out;
    const std::vector<passes::Overwrite> over = wanted(*out.s);
    if (out.s->range && !over.empty()) {
      sizes = Sizes::alone;
      continue;
    }
    const std::size_t before = opened;
    out.graph = program(*out.s, over, args, context, where);
    if (opened == before) return out;
  }
}

}  // namespace tilewright::detail
