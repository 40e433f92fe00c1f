// The programs that replay compiles: always the same ones, so that two states of the compiler can be
// compared by what they make of them.
#pragma once

#include "ir/graph.h"

#include "replay/machine.h"
#include "replay/program_record.h"

#include <functional>
#include <string>
#include <vector>

namespace tilewright::replay {

struct CorpusEntry {
  std::string name;  // "pair/softmax rows=8192 columns=1024 dtype=f32"
  // One program, or several that share a context: a pair's inputs and its contenders.
  std::function<std::vector<ProgramRecord>(const Machine& machine)> record;
  bool in_short = false;  // of the shortened form, too
};

// All of it, in a fixed order. Pairs have sizes of their own for each kind of device.
std::vector<CorpusEntry> corpus(const Machine& machine);

// Its parts.
std::vector<CorpusEntry> pair_entries(const Machine& machine);  // the lab's, at its sizes and in every type
std::vector<CorpusEntry> stage_entries();                       // small programs whose stages are goldens
std::vector<CorpusEntry> random_graph_entries();
std::vector<CorpusEntry> product_entries();          // random matmuls and large ones
std::vector<CorpusEntry> product_program_entries();  // random programs around products, and their gradients
std::vector<CorpusEntry> network_entries();          // repeated layers with gradients, a training step
std::vector<CorpusEntry> nn_entries();               // training steps of nn's models
std::vector<CorpusEntry> user_program_entries();     // programs in no pair, as users write them

// An entry that compiles one graph.
struct GraphEntryOptions {
  bool recompute = false;  // whatever can be computed again is
  bool tf32 = false;
  bool in_short = false;
};
CorpusEntry graph_entry(std::string name, std::function<ir::Graph()> graph,
                        const GraphEntryOptions& options = {});

}  // namespace tilewright::replay
