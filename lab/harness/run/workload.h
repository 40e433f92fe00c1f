// The lab's vocabulary: a Pair is one workload with knobs; it makes PairInstances; an instance holds its
// inputs, its float64 reference and its contenders. A workload is defined once; a contender is the part that
// differs.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/run/ceiling.h"
#include "harness/run/clock.h"
#include "harness/run/knobs.h"
#include "harness/stats/tolerance.h"

namespace tilewright {
class Context;
}

namespace tilewright::lab {

class Peers;            // lab/peers/
struct CompiledAccess;  // lab/pairs/tensor_pair.h

// Takes one more sample of some figures and returns the ceilings with the best seen of each.
using CeilingSampler = std::function<Result<Ceilings>()>;

// What a pair runs on.
struct LabDevice {
  std::string name = "cpu";  // "cpu", "cuda:0"
  DeviceKind kind = DeviceKind::cpu;
  Context* context = nullptr;  // the tensor library's; null in tests of the harness
  std::shared_ptr<Timer> timer = std::make_shared<HostTimer>();  // of calls
  // The device's own work in these calls; null where the calls are the work, as on the CPU.
  std::shared_ptr<Timer> device_timer = {};
  Clocks clocks() const { return {*timer, device_timer.get()}; }
  Ceilings ceilings;  // of this machine, measured; raised by what is probed beside the work
  // Begins to probe figures again, named as beaten_figures() does; what it needs lives as long as the
  // sampler.
  std::function<CeilingSampler(const std::vector<std::string>& figures)> probe_again = {};
  // Whether the user wants an end: calls that take many steps fail between two of these. Null: never.
  std::function<bool()> stop = {};
  std::shared_ptr<Peers> peers = {};  // contenders in other processes; null: none are wanted
  bool autotune = false;              // a contender more: compiled, with its schedules measured
  bool libraries = false;  // a contender more: a vendor's library, where it has calls for all of the program
  bool launches = false;   // a contender without replayed graphs, too: each kernel launched by itself
};

struct MemoryRange {
  std::uintptr_t begin = 0;
  std::size_t size_bytes = 0;
};

// What an output is; the same for every contender.
struct OutputSpec {
  std::string name = "y";
  DType dtype = DType::f32;
  Shape shape;
  ToleranceRule rule;
};

// Some elements of an output, row-major, as they are stored: `count` from element `first` on. They need not
// be aligned.
struct StoredElements {
  const void* at = nullptr;
  DType dtype = DType::f32;
  std::int64_t first = 0, count = 0;
};
// Writes `count` of them, from the `begin`th of these on, in float64. A NaN stays one, whatever its payload.
void widen(const StoredElements& elements, std::int64_t begin, std::int64_t count, double* to);
using ElementsVisitor = std::function<void(const StoredElements& elements)>;

// Access to one contender's output. All three functions wait for the device by themselves.
struct OutputAccess {
  std::function<Status(std::uint8_t byte)>
      poison;  // fills, byte by byte, the memory that the next run is to write
  // After a run: shows all elements in pieces, the first ones first, each only for as long as `visit` takes.
  // Outputs may be larger than what the host has room for beside everything else.
  std::function<Status(const ElementsVisitor& visit)> read;
  std::function<MemoryRange()> memory = {};  // where it lies now, when the address is known
};

// The elements of an output in float64, all at once.
Result<std::vector<double>> read_doubles(const OutputAccess& output);

// What compiling took.
struct FirstCall {
  double compile_ms = 0;
  bool from_disk = false;  // kernels were compiled before, and read
  std::string note = {};   // for the row
};

// One way to do the workload.
struct Contender {
  std::string name;  // "eager", "compiled", "tile", "torch"
  // Does one iteration, or enqueues it. Iterations are numbered from 0; the inputs are copy `iteration %
  // input_copies`.
  std::function<Status(std::int64_t iteration)> run;
  std::function<Status()> finish = {};  // waits until all enqueued work is done; none: run() is synchronous
  // Instead of timing run(): does `count` iterations from `first`, waits for their end, and returns their
  // time in all, in microseconds. For contenders in another process, whose frame must not cross the pipe each
  // time.
  std::function<Result<double>(std::int64_t first, std::int64_t count)> batch_us = {};
  // Microseconds that the iterations since the last question spent waiting for something else than their own
  // work, such as data, in all; none: nothing is waited for.
  std::function<Result<double>()> waited_us = {};
  // Beside batch_us: the time that the device itself was at work in so many iterations, in all.
  std::function<Result<double>(std::int64_t first, std::int64_t count)> device_us = {};
  std::vector<OutputAccess> outputs;  // as PairInstance::outputs
  std::string unavailable = {};       // when not empty: why it cannot run here; its row says so
  std::string note = {};              // a condition of the figure that the reader must know
  // Contenders of one family are ways to run the same program, of which a user takes the quickest: a row
  // more,
  // "<family> best", has the figures of whichever that was.
  std::string family = {};

  // After run() was called: what the first call took beside its work. None: the contender compiles nothing.
  std::function<FirstCall()> first_call = {};

  // Whether calls return before their work is done, so that many of them hide what each costs the host.
  bool queues_work() const { return finish != nullptr || device_us != nullptr; }
  bool is_foreign() const { return batch_us != nullptr; }  // another process, other people's program
};

// The parts of an output that a reference knows, if all of it would take minutes: rows of `length` elements,
// drawn at random from the data of the round, so that no program knows them either.
struct KnownRows {
  std::int64_t length = 1;
  std::vector<bool> rows = {};  // empty: all are known

  bool at(std::int64_t element) const {
    return rows.empty() || rows[static_cast<std::size_t>(element / length)];
  }
  bool none() const { return !rows.empty() && std::find(rows.begin(), rows.end(), true) == rows.end(); }
};

// The float64 truth of one output, row-major.
struct Reference {
  std::vector<double> values;  // may be empty where no row is known
  // What the error of each element is relative to where it is larger than the value itself: for a sum Σ|xᵢ|,
  // for a difference |a| + |b|: the scale that cancellation loses. One element: the same for all. Empty: the
  // value alone.
  std::vector<double> magnitude = {};
  // Elements outside hold nothing: of them only that they are written and finite is asked.
  KnownRows known = {};
};

// The place of an instance in a sweep: the page draws rate against it.
struct SweepPoint {
  std::string axis;    // what grows: "sequence length"
  double value = 0;    // how far it has
  std::string series;  // what stays the same: "B1 H48 D64 causal"
  friend bool operator==(const SweepPoint&, const SweepPoint&) = default;
};

struct PairInstance {
  std::string target, device, shape, dtype;  // names for the record: "softmax", "cpu", "8192x1024", "bf16"
  std::optional<SweepPoint> sweep = {};      // none: a shape of numbers alone says it by its elements
  // An iteration is so many steps, one after another, where one alone would show little of what is measured:
  // times and work are of a step, outputs of the whole iteration.
  std::int64_t steps = 1;
  Work work;              // of a step
  std::string unit = {};  // "GB/s" or "GFLOP/s"; empty: whichever bounds the work
  std::vector<OutputSpec> outputs;
  // One Reference per output, for the present data of input copy `iteration % input_copies`. Computed when
  // asked for.
  std::function<std::vector<Reference>(std::int64_t iteration)> reference;
  std::function<Status(std::uint64_t seed)> refresh_inputs;  // new random data in every input copy
  std::function<Result<std::uint64_t>()> input_digest;       // hash of the bytes of every input copy
  std::function<std::vector<MemoryRange>()> input_memory =
      {};                                         // where the inputs lie, when addresses are known
  std::int64_t input_copies = 1;                  // rotated so that inputs are not found in a cache
  std::vector<Contender> contenders;              // the first is the baseline: what people really write
  std::shared_ptr<CompiledAccess> compiled = {};  // the compiled contender's function, where there is one
};

struct Pair {
  std::string name, doc;
  std::vector<Knob> knobs;
  // A Failure says why this device cannot run it (out of memory, an unsupported type); a wrong knob throws
  // Error.
  std::function<Result<PairInstance>(const Knobs& knobs, LabDevice& device)> make;
  // What a test can afford to verify in full, each as after --set: sizes that are no multiple of a block or a
  // vector, and one longer than a block.
  std::vector<std::vector<std::string>> tiny = {};
  // The suites that it is a part of, and at which sizes.
  struct InSuite {
    std::string suite;
    std::vector<std::string> settings = {};  // as after --set
  };
  std::vector<InSuite> suites = {};
  // Whether its instances have a compiled program, PairInstance::compiled, for who wants to look inside.
  bool is_program = true;
};

// Every pair that a program has.
using PairList = std::span<const Pair>;

// A named list of pairs with settings, for `tw bench run quick`.
struct Suite {
  std::string name, doc;
  struct Entry {
    std::string pair;
    std::vector<std::string> settings = {};  // as after --set
  };
  std::vector<Entry> entries;
};

// One instance to make.
struct Job {
  const Pair* pair = nullptr;
  Knobs knobs;
};

// What `names` ask for, in their order: pairs, suites, or patterns with `*`; none: every pair. `settings` are
// the user's --set arguments and stand above a suite's. Throws Error for a name or key that nothing has,
// listing what is.
std::vector<Job> select_jobs(PairList pairs, std::span<const Suite> suites,
                             std::span<const std::string> names, std::span<const std::string> settings,
                             DeviceKind kind);

// FNV-1a over bytes, for input_digest; `seed` chains several buffers.
std::uint64_t digest(const void* data, std::size_t size_bytes, std::uint64_t seed = 14695981039346656037ull);

}  // namespace tilewright::lab
