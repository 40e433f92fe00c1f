// The formulas. B, D, F, N, M, K follow the headers' shapes; sizes in bytes are s with the operand's letter.
#include <tilewright/perf/workloads.h>

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace tilewright::perf {

namespace {

struct Extent {
  std::string_view name;
  Index value;
};

void check_positive(std::string_view work, std::initializer_list<Extent> extents) {
  for (const Extent& e : extents) {
    if (e.value < 1) throw Error(fmt::format("{}: {} is {}, expected at least 1", work, e.name, e.value));
  }
}

double bytes_of(DType dtype) { return static_cast<double>(size_bytes(dtype)); }
double real(Index value) { return static_cast<double>(value); }

}  // namespace

Cost cost(const Matmul& w) {
  check_positive("matmul", {{"b", w.b}, {"d", w.d}, {"f", w.f}, {"chips", w.chips}});
  const double b = real(w.b), f = real(w.f), chips = real(w.chips);
  const double d = real(w.d) / chips;
  Cost c;
  c.matrix[w.math] = 2 * b * d * f;
  c.bytes_read = bytes_of(w.activations) * b * d + bytes_of(w.weights) * d * f;
  c.bytes_written = bytes_of(w.activations) * b * f;
  // A ring all-reduce sends each byte of the result 2 (n - 1) / n times from every chip: once for two chips.
  if (w.chips > 1) c.link_bytes = 2 * (chips - 1) / chips * bytes_of(w.activations) * b * f;
  return c;
}

std::optional<double> critical_batch(const Matmul& w, const Hardware& hardware) {
  if (w.chips > 1) return std::nullopt;
  // 2BDF / P = (sa B D + sw D F + sa B F) / W is linear in B.
  const double ridge =
      rate(hardware, MathUnit::matrix, w.math).flops_per_s / hardware.memory_bytes_per_s.value;
  const double d = real(w.d), f = real(w.f);
  const double gain = 2 * d * f - ridge * bytes_of(w.activations) * (d + f);
  if (gain <= 0) return std::nullopt;
  return ridge * bytes_of(w.weights) * d * f / gain;
}

std::optional<double> critical_batch_limit(const Matmul& w, const Hardware& hardware) {
  if (w.chips > 1) return std::nullopt;
  const double ridge =
      rate(hardware, MathUnit::matrix, w.math).flops_per_s / hardware.memory_bytes_per_s.value;
  return ridge * bytes_of(w.weights) / 2;
}

std::optional<double> critical_depth(const Matmul& w, const Hardware& hardware) {
  if (w.chips <= 1) return std::nullopt;
  const Bounds b = bounds(cost(w), hardware);  // both times are linear in B F, so D = d t_link / t_math
  return real(w.d) * b.t_link_s / b.t_math_s;
}

Cost cost(const Dot& w) {
  check_positive("dot", {{"n", w.n}});
  Cost c;
  c.vector[w.dtype] = 2 * real(w.n) - 1;
  c.bytes_read = 2 * real(w.n) * bytes_of(w.dtype);
  c.bytes_written = bytes_of(w.dtype);
  return c;
}

Cost cost(const BatchedMatvec& w) {
  check_positive("batched-matvec", {{"b", w.b}, {"d", w.d}, {"f", w.f}});
  const double b = real(w.b), d = real(w.d), f = real(w.f);
  Cost c;
  c.matrix[w.math] = 2 * b * d * f;
  c.bytes_read = bytes_of(w.activations) * b * d + bytes_of(w.weights) * b * d * f;
  c.bytes_written = bytes_of(w.activations) * b * f;
  return c;
}

Cost cost(const TiledMatmul& w) {
  check_positive("tiled", {{"bm", w.bm}, {"bn", w.bn}});
  const double bm = real(w.bm), bn = real(w.bn);
  Cost c;
  if (w.m == 0 && w.n == 0 && w.k == 0) {
    c.matrix[w.math] = 2 * bm * bn;
    c.bytes_read = bytes_of(w.operands) * (bm + bn);
    return c;
  }
  check_positive("tiled", {{"m", w.m}, {"n", w.n}, {"k", w.k}});
  const double m = real(w.m), n = real(w.n), k = real(w.k);
  c.matrix[w.math] = 2 * m * n * k;
  // Reads: each row block of A once for each column block of the result, and the reverse.
  c.bytes_read = bytes_of(w.operands) * (m * k * std::ceil(n / bn) + k * n * std::ceil(m / bm));
  c.bytes_written = bytes_of(w.output) * m * n;
  return c;
}

double tile_intensity(const TiledMatmul& w) {
  TiledMatmul steady = w;
  steady.m = steady.n = steady.k = 0;
  return cost(steady).intensity();
}

Index flash_block_rows(const Attention& w) {
  const double rows = std::ceil(w.on_chip_bytes / bytes_of(w.dtype) / (4 * real(w.d)));
  return std::clamp<Index>(static_cast<Index>(std::min(rows, real(w.n))), 1, w.n);
}

Cost cost(const Attention& w) {
  check_positive("attention", {{"n", w.n}, {"d", w.d}, {"heads", w.heads}});
  const double n = real(w.n), d = real(w.d), s = bytes_of(w.dtype);
  const double square = n * n * (w.causal ? 0.5 : 1);
  Cost c;
  c.matrix[w.dtype] = 4 * square * d;
  c.special_ops = square;  // one exp for each element of S
  if (w.traffic == Attention::Traffic::standard) {
    // Q, K in and S out; S in and P out; P, V in and O out.
    c.bytes_read = s * (3 * n * d + 2 * square);
    c.bytes_written = s * (n * d + 2 * square);
  } else {
    if (w.on_chip_bytes <= 0)
      throw Error("attention: flash traffic needs the on-chip memory's size in bytes");
    const double blocks = std::ceil(n / real(flash_block_rows(w)));
    c.bytes_read = s * (n * d + 2 * n * d * (blocks == 1 || !w.causal ? blocks : (blocks + 1) / 2));
    c.bytes_written = s * n * d + 4 * n;  // O and one f32 log-sum-exp a row
  }
  return c * real(w.heads);
}

}  // namespace tilewright::perf
