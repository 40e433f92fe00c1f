// Peers: other people's programs as contenders, in a process of their own: PyTorch, torch.compile, Triton.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/run/workload.h"

namespace tilewright::lab {

// A workload as another process can know it: raw elements instead of tensors.
struct PeerWorkload {
  std::string target;
  std::vector<std::pair<std::string, std::string>> parameters = {};  // beside what shapes say
  // A program as Python text, instead of the one that the script has by the target's name: it defines
  // `program(...)` over the inputs, with `torch`, `math` and `F` (torch.nn.functional) known, and returns the
  // output or a tuple of them. Where it also says `gradients_of = [i, j]`, the program's single output is a
  // loss, and the outputs are that and the gradients of these inputs.
  std::string source = {};
  struct Input {
    DType dtype = DType::f32;
    Shape shape;
    std::int64_t copies = 1;  // 1: shared by all copies
  };
  std::vector<Input> inputs;
  std::int64_t copies = 1;
  // The raw elements of one copy of an input, now.
  std::function<Status(std::size_t input, std::int64_t copy, void* to)> read_input;
  std::function<void(std::function<Status()> listener)> on_refresh;  // called after each change of the inputs
  std::vector<OutputSpec> outputs;
  // The names of ways to do it, which the script knows by the target, where it is no program that is called
  // as it is or compiled; none: it is one.
  std::vector<std::string> ways = {};
  bool waits = false;            // the ways say what they waited for data, Contender::waited_us
  std::string unavailable = {};  // why no peer can do it
};

class Peers {
 public:
  virtual ~Peers() = default;
  // One Contender for each peer that could do the work; where it cannot, `unavailable` says why. The inputs
  // must have been made.
  virtual std::vector<Contender> contenders(const PeerWorkload& workload) = 0;
  // What is right, by a peer: the workload's text in float64, on its device. Asked for an iteration it gives
  // the outputs, and then as many arrays that say how far rounding at random, as programs of the type
  // `storage` do, took each element. A Failure where there is no peer, or no text.
  using Truth = std::function<Result<std::vector<std::vector<double>>>(std::int64_t iteration)>;
  virtual Result<Truth> truth(const PeerWorkload& workload, DType storage) = 0;
  virtual std::string describe() const = 0;  // "PyTorch 1.13.0"
};

struct PeerOptions {
  // Interpreter; empty: the first of .cache/peers (scripts/setup.sh peers), python3 and /usr/bin/python3 that
  // has PyTorch.
  std::string python = {};
  std::string device = "cpu";
  int threads = 1;
  DeviceTime device_time = DeviceTime::off;  // as ours is taken, or they could not be compared
  std::vector<std::string> without = {};     // contenders that are not wanted: "torch max-autotune"
};
// Never fails: without PyTorch every contender is unavailable, with the reason.
std::shared_ptr<Peers> open_peers(const PeerOptions& options);

}  // namespace tilewright::lab
