// Random kernels around one dot: most are products, whose matrices lie in many ways; of the rest one thing is
// not as a product has it.
#pragma once

#include <tilewright/tile/builder.h>

#include <random>

namespace tilewright::cuda {

// What a kernel does beside a product; `nothing` is one.
enum class Twist : std::uint8_t {
  nothing,
  starts_at_one,     // the sum
  scaled,            // the result
  filled_with_ones,  // blocks behind the depth
  skips_depth,       // the loop begins at its second block
  half_depth,        // the loop's upper bound
  swapped_axes,      // a's rows follow the columns
  shifted_rows,      // of a: begins a row later
  short_rows,        // of a's view, which reads as zeros behind its end
  other_step,        // of a's rows, from program to program
  batch_of_column,   // a is of another batch for each block of columns
  shared_batch,      // a, or b, is of the first batch in all of them: a product still
  stored_twice,
  summed_rows,     // a reduction beside it
  updates_result,  // what is in d is added
  later_rows,      // d begins a row later: a product still
};
inline constexpr int kTwists = 16;

class ProductDraw {
 public:
  ProductDraw(std::uint64_t seed, Twist twist) : random_(seed), twist_(twist) {}

  tile::Kernel run();

 private:
  Index below(Index n) { return static_cast<Index>(random_() % static_cast<std::uint64_t>(n)); }
  Index between(Index low, Index high) { return low + below(high - low + 1); }
  bool chance(double p) { return static_cast<double>(random_() >> 11) * 0x1p-53 < p; }
  tile::View matrix(tile::Builder& k, const std::string& name, DType dtype, Index rows, Index columns,
                    bool by_columns);
  std::vector<tile::Operand> place(const std::vector<tile::Value>& batch, const tile::Operand& row,
                                   const tile::Operand& column) const;

  std::mt19937_64 random_;
  Twist twist_;
  std::vector<Index> batch_;  // extents, outer ones first
};

// A view of (batch …, rows, columns) whose axes lie in any order, sometimes further apart than they are long.
inline tile::View ProductDraw::matrix(tile::Builder& k, const std::string& name, DType dtype, Index rows,
                                      Index columns, bool by_columns) {
  std::vector<Index> extents = batch_;
  extents.push_back(rows), extents.push_back(columns);
  std::vector<int> order;  // from the contiguous axis on
  const int last = static_cast<int>(extents.size()) - 1;
  order = {by_columns ? last - 1 : last, by_columns ? last : last - 1};
  for (int d = last - 2; d >= 0; --d) order.push_back(d);
  // Rows of all batches side by side, as heads lie in a row of tokens.
  if (order.size() > 2 && chance(0.3)) std::swap(order[1], order[2]);
  std::vector<tile::Dim> strides(extents.size());
  Index stride = 1;
  for (const int d : order) {
    strides[static_cast<std::size_t>(d)] = {stride};
    stride *= extents[static_cast<std::size_t>(d)] + (chance(0.15) ? below(4) : 0);
  }
  std::vector<tile::Builder::SizeArg> sizes(extents.begin(), extents.end());
  return k.view(name, dtype, sizes, {.strides = strides, .align_bytes = Index{4} << below(4)});
}

inline std::vector<tile::Operand> ProductDraw::place(const std::vector<tile::Value>& batch,
                                                     const tile::Operand& row,
                                                     const tile::Operand& column) const {
  std::vector<tile::Operand> all(batch.begin(), batch.end());
  all.push_back(row), all.push_back(column);
  return all;
}

inline tile::Kernel ProductDraw::run() {
  using namespace tile;
  Builder k("product");
  constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16, DType::f64};
  const DType dtype = kTypes[below(4)], sum = dtype == DType::f64 ? DType::f64 : DType::f32;
  const DType out = chance(0.7) ? dtype : sum;
  const auto size = [&] { return chance(0.2) ? Index{1} : between(1, 20); };
  const Index m = size(), n = size(), depth = size();
  const auto block_of = [&](Index extent) { return chance(0.3) ? extent : Index{1} << between(0, 4); };
  const Index block_m = block_of(m), block_n = block_of(n), block_k = block_of(depth);
  for (Index i = below(4); i > 1; --i) batch_.push_back(between(1, 3));
  const bool a_by_columns = chance(0.5), b_by_columns = chance(0.5);
  const Index later = twist_ == Twist::later_rows ? 1 : 0;
  const Index more = twist_ == Twist::shifted_rows ? 1 : twist_ == Twist::short_rows && m > 1 ? -1 : 0;
  const View a = matrix(k, "a", dtype, m + more, depth, a_by_columns);
  const View b = matrix(k, "b", dtype, depth, n, b_by_columns);
  const View d = matrix(k, "d", out, m + later, n, chance(0.5));
  // The grid counts columns, rows, and all batch axes in one.
  const Value column = k.program_id(0) * block_n, row = k.program_id(1) * block_m;
  std::vector<Value> batch(batch_.size());
  Value rest;
  if (!batch_.empty()) rest = k.program_id(2);
  for (std::size_t i = batch_.size(); i-- > 0;) {
    batch[i] = i == 0 ? rest : k.apply(Prim::rem, {rest, batch_[i]});
    if (i > 0) rest = k.apply(Prim::div, {rest, batch_[i]});
  }
  std::vector<Value> batch_of_a = batch, batch_of_b = batch;
  if (twist_ == Twist::shared_batch)
    for (Value& each : chance(0.5) ? batch_of_a : batch_of_b) each = k.literal_int(DType::i64, 0);
  if (twist_ == Twist::batch_of_column && !batch.empty()) batch_of_a[0] = k.program_id(0);
  const bool bounded = chance(0.5) || m % block_m != 0 || n % block_n != 0 || depth % block_k != 0 ||
                       twist_ == Twist::swapped_axes || twist_ == Twist::skips_depth ||
                       twist_ == Twist::short_rows || twist_ == Twist::other_step ||
                       twist_ == Twist::batch_of_column;
  const auto block = [&](View view, const std::vector<Value>& at, const Value& i, const Value& j, Index rows,
                         Index columns, double fill) {
    LoadOptions options{.shape = {rows, columns}};
    if (bounded) options.fill = fill;
    if (chance(0.5)) return k.load(view, place(at, i, j), options);
    const int last = static_cast<int>(batch_.size()) + 1;
    options.shape = {columns, rows}, options.dims = {last, last - 1};
    return k.transpose(k.load(view, place(at, i, j), options));
  };
  const Value zero = k.literal(sum, twist_ == Twist::starts_at_one ? 1.0 : 0.0, {block_m, block_n});
  const Index lower = twist_ == Twist::skips_depth ? block_k : 0;
  const Index upper = twist_ == Twist::half_depth ? (depth + 1) / 2 : depth;
  const Value row_of_a = twist_ == Twist::swapped_axes   ? k.program_id(0) * block_m
                         : twist_ == Twist::shifted_rows ? row + 1
                         : twist_ == Twist::other_step   ? k.program_id(1) * (block_m - 1)
                                                         : row;
  const double fill = twist_ == Twist::filled_with_ones ? 1.0 : 0.0;
  const auto acc =
      k.loop(lower, upper, block_k, {zero}, [&](const Value& i, const std::vector<Value>& carried) {
        return std::vector{k.dot(block(a, batch_of_a, row_of_a, i, block_m, block_k, fill),
                                 block(b, batch_of_b, i, column, block_k, block_n, fill), carried[0])};
      });
  Value result = acc[0];
  if (twist_ == Twist::scaled) result = result * 2.0;
  if (twist_ == Twist::updates_result) {
    LoadOptions options{.shape = {block_m, block_n}};
    if (bounded) options.fill = 0.0;
    result = result + k.cast(k.load(d, place(batch, row, column), options), sum);
  }
  const Value stored = k.cast(result, out);
  k.store(d, place(batch, later != 0 ? row + 1 : row, column), stored, {.bounded = bounded});
  if (twist_ == Twist::stored_twice)
    k.store(matrix(k, "e", out, m, n, false), place(batch, row, column), stored, {.bounded = bounded});
  if (twist_ == Twist::summed_rows) {
    k.atomic_add(k.view("sums", sum, {round_up(m, block_m)}), {row + k.arange(block_m)},
                 k.reduce(Monoid::sum, result, 1));
  }
  std::vector<std::pair<Builder::SizeArg, Index>> batches;
  batches.reserve(batch_.size());
  for (const Index extent : batch_) batches.push_back({extent, 1});
  if (batches.empty()) return k.finish({{{n, block_n}}, {{m, block_m}}});
  return k.finish({{{n, block_n}}, {{m, block_m}}, batches});
}

}  // namespace tilewright::cuda
