// See attention_kernels.h.
#include "support/attention_kernels.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

namespace tilewright::tile::samples {

std::string to_string(const AttentionKernel& a) {
  return fmt::format("{} -> {}, {} heads / {}, {}x{}x{}x{} blocks {}x{}{}{}{}{}", name(a.dtype), name(a.out),
                     a.heads, a.shared, a.queries, a.keys, a.depth, a.columns, a.block_m, a.block_n,
                     a.causal ? fmt::format(" causal, {} unseen", a.unseen) : "",
                     fmt::format("{}{}", a.skips ? " skips" : "", a.splits ? " splits" : ""),
                     a.log_sum_exp ? " lse" : "", a.gap > 0 ? fmt::format(" gap {}", a.gap) : "");
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Writer {
 public:
  Writer(const AttentionKernel& a, const std::string& name) : a_(a), k_(name) {
    k_.constant("BM", a.block_m), k_.constant("BN", a.block_n);
  }

  Kernel forward() {
    const View q = rows("q", a_.heads, a_.queries, a_.depth), k = of_keys("k", a_.depth),
               v = is_f8(a_.dtype) ? by_keys("v", a_.columns) : of_keys("v", a_.columns);
    const View y = k_.view("y", a_.out, {a_.heads, a_.queries, a_.columns});
    begin();
    const Value queries = block(q, row_, a_.block_m, a_.depth);
    const Value lowest = k_.literal(DType::f32, -kInfinity, {a_.block_m, 1}),
                none = k_.literal(DType::f32, 0, {a_.block_m, 1}),
                zero = k_.literal(DType::f32, 0, {a_.block_m, a_.columns});
    const auto blocks = [&](Operand from, Operand to, const std::vector<Value>& start, Mask mask) {
      return k_.loop(from, to, a_.block_n, start, [&](Value i, const std::vector<Value>& carried) {
        const Value s = scores(queries, k, i, mask);
        const Value highest = max(carried[0], k_.expand(k_.reduce(Monoid::max, s, 1), 1));
        const Value base = mask == Mask::none ? highest : where(highest == -kInfinity, 0.0, highest);
        const Value p = exp(s - base), rescale = exp(carried[0] - base);
        // Step by step, so that every compiler makes, and numbers, the values in one order.
        const Value added = k_.expand(k_.reduce(Monoid::sum, p, 1), 1);
        const Value sum = carried[1] * rescale + added;
        if (is_f8(a_.dtype)) {
          const Value values = k_.transpose(block_by_keys(v, i, a_.columns));
          const Value product = k_.dot(k_.cast(p * 256.0, a_.dtype), values, zero);
          return std::vector{highest, sum, carried[2] * rescale + product};
        }
        const Value values = block(v, i, a_.block_n, a_.columns);
        const Value scaled = carried[2] * rescale;
        return std::vector{highest, sum, k_.dot(k_.cast(p, a_.dtype), values, scaled)};
      });
    };
    std::vector<Value> last{lowest, none, zero};
    if (a_.splits) {
      const Value whole = whole_end();
      last = blocks(Index{0}, whole, last, Mask::none);
      last = blocks(whole, end(), last, Mask::needed);
    } else {
      last = blocks(Index{0}, end(), last, Mask::needed);
    }
    const Value empty = last[0] == -kInfinity;
    const Value total = is_f8(a_.dtype) ? last[1] * 256.0 : last[1];
    const Value result = last[2] * where(empty, 0.0, 1.0 / where(empty, 1.0, total));
    k_.store(y, {head_, row_, 0}, k_.cast(result, a_.out), {.bounded = true});
    if (a_.log_sum_exp) {
      const View lse = k_.view("lse", DType::f32, {a_.heads, a_.queries});
      k_.store(lse, {head_, row_}, k_.reshape(last[0] + log(last[1]), {a_.block_m}), {.bounded = true});
    }
    return finish();
  }

  Kernel gradient_q() {
    const View q = rows("q", a_.heads, a_.queries, a_.depth), k = of_keys("k", a_.depth),
               v = of_keys("v", a_.columns), dy = rows("dy", a_.heads, a_.queries, a_.columns);
    const View lse = k_.view("lse", DType::f32, {a_.heads, a_.queries}),
               delta = k_.view("delta", DType::f32, {a_.heads, a_.queries});
    const View dq = k_.view("dq", a_.out, {a_.heads, a_.queries, a_.depth});
    begin();
    const Value queries = block(q, row_, a_.block_m, a_.depth),
                above = block(dy, row_, a_.block_m, a_.columns);
    const auto vector = [&](View view) {
      return k_.expand(k_.load(view, {head_, row_}, {.shape = {a_.block_m}, .fill = 0.0}), 1);
    };
    const Value of_row = vector(lse), mean = vector(delta);
    const auto last = k_.loop(
        Index{0}, end(), a_.block_n, {k_.literal(DType::f32, 0, {a_.block_m, a_.depth})},
        [&](Value i, const std::vector<Value>& carried) {
          const Value keys = block(k, i, a_.block_n, a_.depth), values = block(v, i, a_.block_n, a_.columns);
          const Value none = k_.literal(DType::f32, 0, {a_.block_m, a_.block_n});
          const Value s = masked(k_.dot(queries, k_.transpose(keys), none), i);
          const Value dp = k_.dot(above, k_.transpose(values), none);
          const Value ds = exp(s - of_row) * (dp - mean) * scale();
          return std::vector{k_.dot(k_.cast(ds, a_.dtype), keys, carried[0])};
        });
    k_.store(dq, {head_, row_, 0}, k_.cast(last[0], a_.out), {.bounded = true});
    return finish();
  }

 private:
  double scale() const { return 1 / std::sqrt(static_cast<double>(a_.depth)); }

  View rows(const std::string& name, Index heads, Index count, Index width) {
    const Index pitch = width + a_.gap;
    return k_.view(name, a_.dtype, {heads, count, width}, {.strides = {{count * pitch}, {pitch}, {1}}});
  }
  View of_keys(const std::string& name, Index width) {
    return rows(name, a_.heads / a_.shared, a_.keys, width);
  }

  // A view with the keys of a column one after another, as tensor cores take 8 bits.
  View by_keys(const std::string& name, Index width) {
    const Index pitch = round_up(a_.keys, 16);
    return k_.view(name, a_.dtype, {a_.heads / a_.shared, width, a_.keys},
                   {.strides = {{width * pitch}, {pitch}, {1}}});
  }
  Value block_by_keys(View view, Value key, Index width) {
    const Value head = a_.shared == 1 ? head_ : head_ / a_.shared;
    return k_.load(view, {head, 0, key}, {.shape = {width, a_.block_n}, .fill = 0.0});
  }

  void begin() {
    row_ = k_.program_id(1) * a_.block_m;
    head_ = k_.program_id(2);
  }

  Value block(View view, Value row, Index count, Index width) {
    const bool of_queries = row.id() == row_.id();
    const Value head = of_queries || a_.shared == 1 ? head_ : head_ / a_.shared;
    return k_.load(view, {head, row, 0}, {.shape = {count, width}, .fill = 0.0});
  }

  enum class Mask : unsigned char { none, needed };

  Value scores(Value queries, View k, Value i, Mask mask) {
    const Value keys = block(k, i, a_.block_n, a_.depth);
    const Value none = k_.literal(DType::f32, 0, {a_.block_m, a_.block_n});
    const Value products = k_.dot(queries, k_.transpose(keys), none);
    return mask == Mask::none ? products * scale() : masked(products, i);
  }

  // Query r sees the keys up to its own place, counted from both ends, less those that nobody sees.
  Value masked(Value s, Value i) {
    const Value key = k_.expand(i + k_.arange(a_.block_n), 0);
    std::optional<Value> seen;
    if (a_.keys % a_.block_n != 0) seen = key < a_.keys;
    if (a_.causal) {
      const Value last = k_.expand(row_ + k_.arange(a_.block_m), 1) + (a_.keys - a_.queries - a_.unseen);
      seen = seen ? *seen & (key <= last) : key <= last;
    }
    return seen ? where(*seen, s * scale(), -kInfinity) : s * scale();
  }

  // The end of the blocks that all rows of a program see as a whole.
  Value whole_end() {
    Value seen = k_.literal_int(DType::i64, a_.keys);
    if (a_.causal) seen = max(Index{0}, min(seen, row_ + (1 + a_.keys - a_.queries - a_.unseen)));
    return seen / a_.block_n * a_.block_n;
  }

  Value end() {
    const Value all = k_.literal_int(DType::i64, a_.keys);
    return a_.skips ? min(all, row_ + (a_.block_m + a_.keys - a_.queries - a_.unseen)) : all;
  }

  Kernel finish() { return k_.finish({{{1, 1}}, {{a_.queries, a_.block_m}}, {{a_.heads, 1}}}); }

  const AttentionKernel& a_;
  Builder k_;
  Value row_, head_;
};

}  // namespace

Kernel attention(const AttentionKernel& a) { return Writer(a, "attention").forward(); }
Kernel attention_gradient_q(const AttentionKernel& a) {
  return Writer(a, "attention_gradient_q").gradient_q();
}

}  // namespace tilewright::tile::samples
