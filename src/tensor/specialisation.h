// Specialisation: what a compiled function became for arguments of certain types, or of a range of sizes.
#pragma once

#include "tensor/size_range.h"

#include <tilewright/tensor/compile.h>

#include <set>

namespace tilewright::detail {

// What a specialisation was made for.
struct Guard {
  ir::Type type;
  std::shared_ptr<runtime::Device> device;  // of one Context: another has its own, of the same name
  friend bool operator==(const Guard&, const Guard&) = default;
};

// The function's graph as it was compiled for a way of calling it.
struct Program {
  std::vector<passes::Overwrite> over;  // what it was to write over its inputs
  std::shared_ptr<CompiledGraph> graph;
};

struct Specialisation {
  std::weak_ptr<ContextState> context;  // what was compiled goes when it has gone
  std::vector<Guard> guards;            // of a range: those of the last call
  std::string reason;
  Structure structure;  // of the results
  std::optional<ir::Graph>
      recorded;  // nothing where the function reads values on the host: then it is traced at each call
  std::vector<Program> programs;     // of it, the one called last first
  std::vector<Tensor> captured;      // tensors with memory that the function used beside its arguments
  std::vector<std::size_t> draws;    // which of the graph's inputs are seeds, drawn at each call
  std::vector<PendingCheck> checks;  // what the last outputs of the graph tell
  std::vector<Break> breaks;
  std::vector<Piece> pieces;                 // of the last call, where there are breaks
  std::string dynamic;                       // what came of the dynamic dimensions
  std::optional<SizeRange> range;            // sizes that the first program serves beside those of the guards
  std::vector<Index> sizes;                  // those that it was called with last
  std::set<std::vector<Index>> recorded_at;  // those of which the function was recorded to be the program's
  std::vector<std::string> in_place;         // of the last into() that wrote its outputs over what it reads
  double compile_ms = 0;
  CompileTimes times;
  std::shared_ptr<CompiledGraph> graph() const { return programs.empty() ? nullptr : programs[0].graph; }
  // The program's outputs as recorded; where it serves a range, at the sizes of the last call.
  std::size_t outputs() const {
    return range ? programs[0].graph->outputs.size() : recorded->outputs().size();
  }
  const ir::Type& output(std::size_t i) const {
    return range ? programs[0].graph->outputs[i] : recorded->type(recorded->outputs()[i]);
  }
};

std::vector<Guard> guards_of(const std::vector<Tensor>& args);
// Whether a specialisation was made for arguments of these very types.
bool matches(const Specialisation& s, const std::vector<Tensor>& args);
// Why there is none among those that are known, the one called last first.
std::string recompile_reason(const std::vector<std::shared_ptr<Specialisation>>& known,
                             const std::vector<Guard>& guards, const GivenNames& names);

// Sizes that a function with dynamic dimensions was compiled for.
struct SizeHistory {
  std::vector<std::vector<ir::Type>> called;  // types of arguments, the newest first
  std::size_t attempts = 0;                   // since a range was opened
  bool opening = false;                       // on a thread, which records the function for it
};

// Lets the only program of `s`, which has just been made for its guards, serve other sizes, too, where sizes
// that came before tell which; s.dynamic says it, or why not. While the function is recorded for it, other
// threads may call what is there, and open no other range.
void open_range(Specialisation& s, SizeHistory& history, DeviceState& device, const TraceAt& trace_at,
                const std::vector<DynamicDim>& dynamic, const GraphOptions& options);
// Whether a specialisation's range holds these arguments, of the same devices.
bool serves(const Specialisation& s, const std::vector<Tensor>& args);
// Whether all that `other` does, which is for one size, is done by `s` as well.
bool replaces(const Specialisation& s, const Specialisation& other);
// Gives the program of a range the numbers of these arguments, which it serves. False where the function,
// whose recording for them `traced` makes, has another graph there: a function of no shapes may still follow
// what the host knows of them. While it is recorded, other threads may give the program other sizes.
bool take_sizes(Specialisation& s, const std::vector<Tensor>& args, const std::function<TracedAt()>& traced);

}  // namespace tilewright::detail
