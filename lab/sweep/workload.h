// Programs drawn from seeds within limits, and instances of the lab's harness made of them.
#pragma once

#include <tilewright/perf/cost.h>

#include <optional>

#include "ir/graph.h"
#include "pairs/tensor_pair.h"
#include "sweep/families.h"

namespace tilewright::sweep {

struct Limits {
  double least_bytes = 1024, most_bytes = 64 << 20;  // of traffic: each input and each result once
  double most_flops = 4e9;                           // of products
  std::vector<DType> dtypes = {DType::f32, DType::bf16};
  std::string arguments = {};  // of the command that draws within these
};

// A drawn program as the graph that our functions record, with what it must do at least.
struct Traced {
  ir::Graph graph{"main"};  // gradients included
  std::vector<ir::Type> outputs;
  perf::Cost cost;             // products and traffic; what is cheap beside them is left out
  std::int64_t reduction = 1;  // terms of the longest sum
};

struct DrawnWork {
  Drawn drawn;
  Traced traced;
};

// The program of a seed: of `family`, or of one that the seed draws. `context` only records it.
DrawnWork draw_work(std::uint64_t seed, const std::string& family, const Limits& limits, Context& context);

// Who said what is right.
struct Judgement {
  std::string by = "nobody";  // "torch in float64", "oracle", "nobody"
  std::string why_not;        // where a peer should have and could not
};

struct SweepInstance {
  lab::PairInstance instance;
  std::shared_ptr<Judgement> judgement;  // known once it was verified
};
// Its references are a peer's where there is one, else the oracle's where that can (pairs/truth.h), else
// nobody's.
Result<SweepInstance> make_instance(const DrawnWork& work, lab::LabDevice& device);

}  // namespace tilewright::sweep
