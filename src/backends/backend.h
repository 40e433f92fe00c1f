// Backend: one device that runs tile kernels. desc → schedule → source → binary → program, each a value one
// can print. An implementation is a shared library that exports the two functions at the end.
#pragma once

#include "backends/fill_pattern.h"

#include <tilewright/base/error.h>
#include <tilewright/tile/kernel.h>
#include <tilewright/tile/schedule.h>
#include <tilewright/tile/target.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::backends {

struct Candidate {
  tile::Schedule schedule;
  double predicted_us = 0;
  std::string refusal;  // not empty: this schedule is illegal here, and why
};

// How a program is started; part of the printed source so that an edited text keeps it.
struct LaunchShape {
  int threads = 1;
  int cluster = 1;
  Index shared_bytes = 0;
  Index programs_per_block = 1;  // grid cells one block (CUDA) or task (CPU) walks over, at least
  int together = 1;              // launches that it is given arguments for at once
  friend bool operator==(const LaunchShape&, const LaunchShape&) = default;
};

struct Source {
  std::string text;   // readable C++ or CUDA C++
  std::string entry;  // symbol
  LaunchShape launch;
  tile::Schedule schedule;
};

struct Binary {
  std::string bytes;
  std::string log;  // compiler's, warnings included
  double compile_ms = 0;
};

// Views in kernel order (address of each view's coordinate 0), scalars in kernel order (floats as the bits of
// a double in f64 and of a float, zero-extended, in f32). `count` launches over one grid at once have their
// views and scalars one behind another.
struct LaunchArgs {
  void* const* views = nullptr;
  const std::int64_t* scalars = nullptr;
  Index grid[tile::kMaxGridAxes] = {1, 1, 1};
  int count = 1;  // at most Program::most_together()
};

// A loaded kernel. Launches are ordered as they are made on one device; `launch` may return before the work
// is done.
class Program {
 public:
  virtual ~Program() = default;
  virtual Status launch(const LaunchArgs& args) = 0;
  virtual int most_together() const { return 1; }      // launches that `launch` takes at once
  virtual std::string describe() const { return ""; }  // registers, shared memory, spills …
};

// A recorded sequence of launches that can be repeated with one call (CUDA graphs).
class Replay {
 public:
  virtual ~Replay() = default;
  virtual Status run() = 0;
};

struct RecordedLaunch {
  Program* program = nullptr;
  std::vector<void*> views;
  std::vector<std::int64_t> scalars;
  Index grid[tile::kMaxGridAxes] = {1, 1, 1};
  int count = 1;  // as of LaunchArgs
};

// A stream of the device's own interface: a CUstream, of which 0 and 1 are the legacy default stream and 2 is
// the calling thread's. Host devices have none but 0.
using StreamHandle = std::uintptr_t;

enum class CopyKind : unsigned char { host_to_device, device_to_host, device_to_device };

// A limit of a device as the system tells it, for people (text) and programs (value). Keys that the probes
// read: l1_bytes, l2_bytes, l3_bytes of one instance, l1_instances …, memory_bytes,
// shared_bytes_per_multiprocessor.
struct DeviceFact {
  std::string key;
  double value = 0;  // 0 where only the text says it
  std::string text;  // "1 MiB", "avx512", "13.0"
};
inline double fact_value(const std::vector<DeviceFact>& facts, const std::string& key) {
  for (const DeviceFact& fact : facts)
    if (fact.key == key) return fact.value;
  return 0;
}

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const tile::Target& target() const = 0;
  // Everything about device and compiler that can change a binary; part of the cache key.
  virtual std::string binary_key() const = 0;
  // What the device is made of and which versions drive it.
  virtual std::vector<DeviceFact> facts() const { return {}; }

  // --- kernels
  virtual std::vector<Candidate> candidates(const tile::Kernel& kernel) const = 0;  // best predicted first
  // Calls of vendors' libraries that do what the kernel does, without predicted times. The tuner alone asks
  // for them: what runs untuned is the first of candidates(), which has none.
  virtual std::vector<Candidate> library_candidates(const tile::Kernel&) { return {}; }
  virtual Result<Source> print(const tile::Kernel& kernel, const tile::Schedule& schedule) const = 0;
  virtual Result<Binary> compile(const tile::Kernel& kernel, const Source& source) const = 0;
  virtual Result<std::unique_ptr<Program>> load(const tile::Kernel& kernel, const Source& source,
                                                const Binary& binary) = 0;

  // --- memory; addresses are the device's, at least 256-byte aligned
  virtual Result<void*> allocate(std::size_t bytes) = 0;
  virtual void release(void* address, std::size_t bytes) = 0;  // after the work already launched
  virtual Status copy(void* to, const void* from, std::size_t bytes,
                      CopyKind kind) = 0;  // host side done on return
  // `bytes` are whole patterns, and `to` is aligned for one.
  virtual Status fill(void* to, FillPattern pattern, std::size_t bytes) = 0;
  virtual Status synchronize() = 0;

  // --- memory and streams of others; a host device has no streams, and its work is done when a call returns
  // A Failure where [address, address + bytes) is known not to be memory of this device.
  virtual Status check_foreign(const void*, std::size_t) { return Unit{}; }
  // Lets go of `owner` once the work launched so far is done; it may be gone on return. Does not wait.
  virtual void let_go(std::shared_ptr<void> owner) { owner.reset(); }
  // Work launched here from now on waits for what was launched on `stream` so far, and the reverse: work that
  // is launched on `stream` from now on waits for what was launched here. Neither waits on the host.
  virtual Status wait_for(StreamHandle) { return Unit{}; }
  virtual Status make_wait(StreamHandle) { return Unit{}; }
  // The stream on which everything is launched.
  virtual StreamHandle stream_handle() const { return 0; }

  // --- time: device clock around what is launched between the two calls, in µs
  virtual Status timer_start() = 0;
  virtual Result<double> timer_stop_us() = 0;

  // --- replay; a null pointer when the device gains nothing from it
  virtual Result<std::unique_ptr<Replay>> record(const std::vector<RecordedLaunch>& launches) = 0;
};

// What the caller chooses for a backend; parsed from flags only in tools/.
struct BackendOptions {
  int ordinal = 0;
  int threads = 0;                         // CPU: 0 takes every allowed core
  std::string isa;                         // CPU: "" for the host's best, else amx | avx512 | avx2 | baseline
  std::vector<std::string> library_paths;  // where to look for NVRTC and cuBLASLt beside the usual places
  std::optional<StreamHandle> stream;  // CUDA: the caller's, who keeps it for as long; none: one of its own
  // CUDA: "sm_80", "sm_90a", "sm_120": no device; kernels are printed and compiled for it, everything else
  // fails
  std::string compile_only;
};

// The two functions that a backend's library shows (its backend_entry.cpp), and nothing else.
// tilewright_open_backend opens the device; the versions of the two libraries must be equal: what passes
// between them are C++ objects.
using BackendEntry = Result<std::unique_ptr<Backend>> (*)(const BackendOptions&);
using BackendVersion = const char* (*)();
#define TW_BACKEND_ENTRY extern "C" __attribute__((visibility("default")))

}  // namespace tilewright::backends
