// Hardware: what a machine can do at best, figure by figure with its source. Published figures stand in a
// table, the figures of the machine at hand come from measurements.
#pragma once

#include <tilewright/base/dtype.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::perf {

// A number and where it is from: a data sheet, or the command that measured it.
struct Figure {
  double value = 0;
  std::string source;
  friend bool operator==(const Figure&, const Figure&) = default;
};

struct MathRate {
  DType dtype;
  Figure flops_per_s;  // dense; a multiply-add is two
  friend bool operator==(const MathRate&, const MathRate&) = default;
};

// Rates by what is done to the bytes; a copy counts what it reads and what it writes.
struct Traffic {
  std::optional<Figure> read, write, copy;  // bytes per second
  double best() const;                      // 0 when none is known
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

struct MemoryLevel {
  std::string name;                   // "L2", "shared memory"
  Figure bytes;                       // of one instance
  int instances = 1;                  // on the device
  std::optional<Figure> bytes_per_s;  // of all instances together
  Traffic traffic;                    // the same by kind, where it was measured
  friend bool operator==(const MemoryLevel&, const MemoryLevel&) = default;
};

struct Hardware {
  std::string name;   // as typed: "h100"
  std::string title;  // "NVIDIA H100 SXM5 80 GB"
  Figure memory_bytes;
  Figure memory_bytes_per_s;
  std::vector<MathRate> matrix;             // dense matrix units, by operand type
  std::vector<MathRate> vector;             // everything else
  std::optional<Figure> special_ops_per_s;  // exp and its like, when they have a unit of their own
  std::vector<MemoryLevel> levels;          // on chip, nearest to the math first
  std::optional<Figure> link_bytes_per_s;   // to other devices, one direction
  std::optional<Figure> launch_s;           // between two dependent kernels
  std::optional<Figure> graph_launch_s;     // the same inside a recorded graph
  Traffic memory_traffic;                   // memory_bytes_per_s by kind, where it was measured
  // Matrix and vector units work at the same time; on a CPU they are the same instructions' ports.
  bool matrix_beside_vector = true;
  friend bool operator==(const Hardware&, const Hardware&) = default;
};

// The published figures: h100, h200, a100, b200, tpu-v5e, tpu-v5p, tpu-v6e.
std::span<const Hardware> known_hardware();
// Throws Error that lists the known names.
const Hardware& find_hardware(std::string_view name);

enum class MathUnit { matrix, vector };

struct Rate {
  double flops_per_s = 0;
  std::string
      substitute;  // empty, or which other figure had to stand in: "no f16 vector rate: f32's is used"
  friend bool operator==(const Rate&, const Rate&) = default;
};
// The rate of a unit for a type, never lower than the hardware's own, so that a bound stays a bound. Where
// the table has none: a narrow float takes f32's, integers take i32's or f32's, a matrix product takes the
// vector rate and the reverse, one of f32 a sixth of bf16's matrix rate where that is more (kPartProducts).
// Throws Error when nothing can stand in (f64 on a TPU).
Rate rate(const Hardware& hardware, MathUnit unit, DType dtype);

// The same machine for data that lies in one of its caches between two uses: memory_bytes_per_s (and by kind)
// is that of the innermost level that holds `working_set_bytes`. Levels without a rate, and those that no
// launch finds as the last one left them (shared memory), are passed over.
Hardware holding(const Hardware& hardware, double working_set_bytes);
// The level's name: "L3", "memory".
std::string level_holding(const Hardware& hardware, double working_set_bytes);

// One measured ceiling. `what` is a key: "memory_bytes", "memory_bytes_per_s", "matrix.bf16", "vector.f32",
// "special_ops_per_s", "link_bytes_per_s", "launch_s", "graph_launch_s", "matrix_beside_vector",
// "level.L2.bytes", "level.L2.bytes_per_s", "level.L2.instances"; by kind "memory.read_bytes_per_s" (write,
// copy) and "level.L2.read_bytes_per_s", of which the best stands in where "…bytes_per_s" itself is not
// given.
struct Measurement {
  std::string what;
  double value = 0;
  std::string how;  // the command and conditions: becomes the figure's source
  friend bool operator==(const Measurement&, const Measurement&) = default;
};
// Levels appear in the order in which they are first named. Throws Error on an unknown key, a value that is
// not positive and finite, or when "memory_bytes_per_s" is missing.
Hardware from_measured(std::string_view name, std::string_view title,
                       std::span<const Measurement> measurements);

}  // namespace tilewright::perf
#pragma GCC visibility pop
