// Cost: what a piece of work asks of a machine, before any machine is named. The same numbers steer fusion,
// prune tuning and stand in every report.
#pragma once

#include <tilewright/base/dtype.h>

#include <array>
#include <iterator>
#include <string>

#pragma GCC visibility push(default)
namespace tilewright::perf {

// Operations counted by element type. A multiply-add is two.
class FlopsByType {
 public:
  // Operations on elements of one type.
  double& operator[](DType dtype) & { return count_[static_cast<std::size_t>(dtype)]; }
  double operator[](DType dtype) const& { return count_[static_cast<std::size_t>(dtype)]; }
  double total() const;  // of all types
  // Work done one after another, and so many times the same work.
  FlopsByType& operator+=(const FlopsByType& other);
  FlopsByType& operator*=(double factor);
  friend bool operator==(const FlopsByType&, const FlopsByType&) = default;

 private:
  std::array<double, std::size(kAllDTypes)> count_{};
};

// Products of bf16 parts that an f32 product may be made of with f32's accuracy
// (passes/graph/products_by_parts.h): a bound on f32 products knows of them.
inline constexpr double kPartProducts = 6;

struct Cost {
  FlopsByType matrix;      // work of `dot`, by the type of its operands
  double tf32 = 0;         // of matrix[f32]: with operands that are rounded to tf32, for tensor cores
  FlopsByType vector;      // all other arithmetic, by the type it is computed in
  double special_ops = 0;  // exp, log, tanh, rsqrt, …: one each, beside what they count in `vector`
  double bytes_read = 0;   // from device memory
  double bytes_written = 0;
  double link_bytes = 0;  // that one device sends to others

  // All operations: of dots, and of the rest.
  double flops() const { return matrix.total() + vector.total(); }
  // `matrix` by the rates that hold for it: tensor cores multiply tf32 at half the rate of bf16, so one is
  // two of bf16.
  FlopsByType matrix_by_rate() const;
  double bytes() const { return bytes_read + bytes_written; }
  // FLOPs per byte of device memory; 0 when nothing moves.
  double intensity() const { return bytes() > 0 ? flops() / bytes() : 0; }

  Cost& operator+=(const Cost& other);  // one after another
  Cost& operator*=(double factor);      // so many times the same work
  friend Cost operator+(Cost a, const Cost& b) { return a += b; }
  friend Cost operator*(Cost a, double factor) { return a *= factor; }
  friend bool operator==(const Cost&, const Cost&) = default;
};

// "134 MFLOP bf16 dot + 65.5 kFLOP f32 + 32.8 k special, 1.05 MB read, 524 kB written"; "nothing" when all is
// 0.
std::string to_string(const Cost& cost);

// A number with three significant digits and a decimal prefix, ready for its unit: "1.97 T", "48.2 k", "3.1
// m", "7 ".
std::string with_prefix(double value);

}  // namespace tilewright::perf
#pragma GCC visibility pop
