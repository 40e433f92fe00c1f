// A random graph, compiled for a device, against the float64 oracle: what graph_fuzz and the properties ask.
#pragma once

#include "support/run_graph.h"
#include "support/shrink.h"

namespace tilewright::test {

// What a seed stands for, beside its numbers: every fourth graph has matmuls.
RandomGraphOptions graph_of_seed(std::uint64_t seed, GraphFamily family);
RandomGraphOptions graph_of_seed(std::uint64_t seed);  // of the family `mixed`

struct GraphCheckOptions {
  std::string device = "cpu", isa;
  bool fuse = true;
  int runs = 1;  // of the same inputs: more than one are deterministic and must give the same bits
};

class GraphCheck {
 public:
  explicit GraphCheck(GraphCheckOptions options);
  // Empty when the device agrees, and what is printed reads back as it was, in both languages. Every eighth
  // seed's graph computes again whatever can be, and two of eight take the least memory, with launches
  // repeated for that. The inputs are the seed's, too.
  std::string problem_with(const ir::Graph& graph, std::uint64_t seed);
  // How many graphs so far were decided by intervals alone.
  int decided() const { return decided_; }

 private:
  std::string judged(const ir::Graph& oracle, const GraphRunner::Tensors& inputs,
                     const GraphRunner::Tensors& got, std::uint64_t seed);
  GraphCheckOptions options_;
  GraphRunner runner_;
  int decided_ = 0;
};

}  // namespace tilewright::test
