// Instances of the harness made of short descriptions of workloads on tensors: inputs, a reference,
// and the contenders eager, decomposed, compiled and tile.
#pragma once

#include <tilewright/tensor/compile.h>
#include <tilewright/tensor/tile_function.h>

#include <functional>
#include <string>
#include <vector>

#include "harness/run/workload.h"
#include "pairs/tensor_inputs.h"
#include "peers/peers.h"

namespace tilewright::lab {

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;
using TileLaunch = std::function<void(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs)>;

// Another program for the same results, under a name of its own.
struct OtherWay {
  std::string name;
  TensorFunction function;
  std::optional<CompileOptions> options = CompileOptions{};  // none: it is called as it stands
};

struct TensorWorkload {
  std::string target, shape, dtype;      // names for the record
  std::optional<SweepPoint> sweep = {};  // as PairInstance::sweep
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  perf::Cost cost;        // of one iteration: arithmetic and compulsory traffic
  std::string unit = {};  // as PairInstance::unit
  // The program. Called as it stands it is the eager contender, op by op; through compile() the compiled one.
  TensorFunction function;
  CompileOptions options = {};  // of the compiled contenders
  // What people write without the compiler, where `function` is not made of calls that run one by one (a
  // gradient); none: `function`.
  TensorFunction eager = {};
  // Whether a pair calls composites (softmax, a norm, gelu), which we run as one kernel and people without
  // our library write as several: then "decomposed" is a contender, each primitive operation a kernel of its
  // own.
  bool composites = false;
  bool op_by_op = true;  // false: no eager contender; the first of the others is the baseline
  std::vector<OtherWay> before = {}, behind = {};  // the compiled contender
  bool tells_memory = false;  // rows of compiled contenders say what temporaries a call has
  // Builds the kernels written by hand for a device; none: no such contender.
  std::function<TileLaunch(const LabDevice& device)> tile = {};
  std::vector<std::pair<std::string, std::string>> peer_parameters = {};  // as PeerWorkload::parameters
  std::string peer_source = {};                                           // as PeerWorkload::source
  std::string no_peers = {};                                              // why peers cannot do it
  // One Reference per output, in float64, by plain loops; or `peer_truth`. None: nothing is known of the
  // outputs, which must be written and finite.
  std::function<std::vector<Reference>(const HostArrays& inputs, ThreadPool& pool)> reference;
  // Instead, where peers are wanted and have a program: what Peers::truth() of this type gives becomes the
  // references.
  std::function<std::vector<Reference>(Result<std::vector<std::vector<double>>> truth)> peer_truth = {};
  DType truth_storage = DType::f32;
};

// The function that the compiled contender calls, the same with measured schedules (and vendors' libraries,
// which the contender "tuned" does without), and inputs to call them with: for who wants to look inside.
struct CompiledAccess {
  CompiledList function, tuned;
  std::vector<Tensor> inputs;
};

Knob dtype_knob();
std::vector<KnobValue>
plain_floats();  // what a pair takes that is not particular about its type  // f32 on the CPU, bf16 on a GPU

// A Failure when the device cannot hold it.
Result<PairInstance> make_instance(TensorWorkload workload, LabDevice& device);

// A description's cost from what is read and written and FLOPs in the type it is computed in.
perf::Cost cost_of(const std::vector<InputSpec>& inputs, const std::vector<OutputSpec>& outputs, double flops,
                   DType compute = DType::f32);

}  // namespace tilewright::lab
