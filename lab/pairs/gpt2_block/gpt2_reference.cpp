// One passage's rows after another; every intermediate is an array of its own, and beside it what its
// roundings and those before it may have done to it.
#include "pairs/gpt2_block/gpt2_reference.h"

#include <algorithm>
#include <cmath>

#include "pairs/host_norm.h"
#include "pairs/product.h"

namespace tilewright::lab {

namespace {

struct Model {
  const HostArray &tokens, &targets, &wte, &wpe, &ln1w, &ln1b, &qkvw, &qkvb, &ow, &ob, &ln2w, &ln2b, &fcw,
      &fcb, &pw, &pb, &lnfw, &lnfb;
  explicit Model(const HostArrays& in)
      : tokens(in[0]),
        targets(in[1]),
        wte(in[3]),
        wpe(in[4]),
        ln1w(in[5]),
        ln1b(in[6]),
        qkvw(in[7]),
        qkvb(in[8]),
        ow(in[9]),
        ob(in[10]),
        ln2w(in[11]),
        ln2b(in[12]),
        fcw(in[13]),
        fcb(in[14]),
        pw(in[15]),
        pb(in[16]),
        lnfw(in[17]),
        lnfb(in[18]) {}
};

// Values, and for each a bound on how far off it may be, squared, in units of the tolerance. Roundings are
// independent of each other, so their squares add up (as in ErrorScale::term); the weights that carry them on
// are random, so what two paths share of them cancels as often as it adds.
struct Bounded {
  HostArray values, squares;
  explicit Bounded(Index size)
      : values(static_cast<std::size_t>(size)), squares(static_cast<std::size_t>(size)) {}
  Index size() const { return static_cast<Index>(values.size()); }
};

double square(double v) { return v * v; }

HostArray squared(HostArray a) {
  for (double& v : a) v *= v;
  return a;
}

class Forward {
 public:
  Forward(const HostArrays& in, const GptSizes& sizes, const ErrorScale& scale, ThreadPool& pool)
      : m_(in), s_(sizes), scale_(scale), pool_(pool) {}

  Bounded logits() const {
    Bounded x = embedded();
    x = sum(x, attention(norm(x, m_.ln1w, m_.ln1b)));
    x = sum(x, linear(gelu(linear(norm(x, m_.ln2w, m_.ln2b), m_.fcw, m_.fcb)), m_.pw, m_.pb));
    const HostArray by_columns = host_transpose(m_.wte.data(), s_.vocabulary, s_.channels, s_.channels);
    return linear(norm(x, m_.lnfw, m_.lnfb), by_columns, HostArray(static_cast<std::size_t>(s_.vocabulary)));
  }

  // The mean loss of logits in f32, whose last roundings `scale` knows.
  Reference mean_loss(const Bounded& logits, const ErrorScale& scale) const {
    const Index rows = s_.batch * s_.time;
    Reference loss{{0}, {0}};
    double squares = 0, size = 0;
    for (Index r = 0; r < rows; ++r) {
      const auto x = row_of(logits.values, r, s_.vocabulary), e = row_of(logits.squares, r, s_.vocabulary);
      const double largest = *std::max_element(x.begin(), x.end());
      double total = 0;
      for (double v : x) total += std::exp(v - largest);
      const auto label = static_cast<std::size_t>(m_.targets[static_cast<std::size_t>(r)]);
      loss.values[0] += (largest + std::log(total) - x[label]) / static_cast<double>(rows);
      size += (std::fabs(largest) + std::log(total) + std::fabs(x[label])) / static_cast<double>(rows);
      for (std::size_t v = 0; v < x.size(); ++v)
        squares += square(std::exp(x[v] - largest) / total - (v == label ? 1 : 0)) * e[v];
    }
    loss.magnitude[0] = scale.of(scale_.error(std::sqrt(squares) / static_cast<double>(rows))) +
                        scale(std::fabs(loss.values[0]), size);
    return loss;
  }

 private:
  double rounded(double stored, double computed) const { return square(scale_.term(stored, computed)); }

  Bounded embedded() const {
    const Index c = s_.channels;
    Bounded x(s_.batch * s_.time * c);
    for_rows(pool_, s_.batch * s_.time, [&](Index r) {
      const auto token = row_of(m_.wte, static_cast<Index>(m_.tokens[static_cast<std::size_t>(r)]), c);
      const auto place = row_of(m_.wpe, r % s_.time, c);
      const auto to = row_of(x.values, r, c), squares = row_of(x.squares, r, c);
      for (std::size_t j = 0; j < to.size(); ++j) {
        to[j] = token[j] + place[j];
        squares[j] = rounded(std::fabs(to[j]), 0);
      }
    });
    return x;
  }

  Bounded sum(const Bounded& a, const Bounded& b) const {
    Bounded y(a.size());
    for_rows(pool_, y.size(), [&](Index r) {
      const auto i = static_cast<std::size_t>(r);
      y.values[i] = a.values[i] + b.values[i];
      y.squares[i] = a.squares[i] + b.squares[i] + rounded(std::fabs(y.values[i]), 0);
    });
    return y;
  }

  // x (rows, k) · w (k, n) + b. Stored: the product, and the sum with b.
  Bounded linear(const Bounded& x, const HostArray& w, const HostArray& b) const {
    const auto n = static_cast<Index>(b.size()), k = static_cast<Index>(w.size()) / n;
    const ProductSizes sizes{.m = x.size() / k, .n = n, .k = k};
    const HostProduct product = host_product(x.values, w, sizes, pool_);
    Bounded y(sizes.m * n);
    y.squares = host_product(x.squares, squared(w), sizes, pool_).values;
    for_rows(pool_, sizes.m, [&](Index r) {
      for (Index j = 0; j < n; ++j) {
        const auto i = static_cast<std::size_t>(r * n + j);
        y.values[i] = product.values[i] + b[static_cast<std::size_t>(j)];
        y.squares[i] += rounded(std::fabs(product.values[i]) + std::fabs(y.values[i]), product.size(r, j));
      }
    });
    return y;
  }

  // y = x̂ w + b with x̂ = (x − mean) / σ. Of errors δ of x, δyⱼ = wⱼ/σ (δⱼ − mean(δ) − x̂ⱼ mean(x̂ δ)).
  // Stored: x̂, its product with w, and the sum.
  Bounded norm(const Bounded& x, const HostArray& w, const HostArray& b) const {
    const auto c = static_cast<Index>(w.size());
    Bounded y(x.size());
    for_rows(pool_, x.size() / c, [&](Index r) {
      const auto values = row_of(y.values, r, c), squares = row_of(y.squares, r, c);
      const auto from = row_of(x.values, r, c), errors = row_of(x.squares, r, c);
      HostArray magnitude(values.size());
      const double scale = layer_norm_row(from, w, b, values, magnitude);
      double of_mean = 0, of_deviation = 0;
      for (std::size_t j = 0; j < values.size(); ++j) {
        of_mean += errors[j] / square(static_cast<double>(c));
        of_deviation += square((values[j] - b[j]) / w[j]) * errors[j] / square(static_cast<double>(c));
      }
      for (std::size_t j = 0; j < values.size(); ++j) {
        const double product = std::fabs(values[j] - b[j]);
        squares[j] = square(w[j] * scale) * (errors[j] + 2 * of_mean) + 2 * square(product) * of_deviation +
                     rounded(2 * product + std::fabs(values[j]), magnitude[j]);
      }
    });
    return y;
  }

  // Stored: what tanh is of, and the result.
  Bounded gelu(Bounded x) const {
    constexpr double kSteepest = 1.13;  // of gelu, near 1.4
    for_rows(pool_, x.size(), [&](Index r) {
      const auto i = static_cast<std::size_t>(r);
      const double z = x.values[i], y = gelu_tanh(z);
      x.squares[i] = square(kSteepest) * x.squares[i] + rounded(std::fabs(y) + std::fabs(z), std::fabs(z));
      x.values[i] = y;
    });
    return x;
  }

  Bounded attention(const Bounded& h) const {
    const Bounded qkv = linear(h, m_.qkvw, m_.qkvb);
    Bounded mixed(h.size());
    const Index head = s_.channels / s_.heads;
    for_rows(pool_, s_.batch * s_.heads, [&](Index job) {
      const Index b = job / s_.heads, column = job % s_.heads * head;
      one_head(qkv, b * s_.time * 3 * s_.channels + column, mixed, b * s_.time * s_.channels + column);
    });
    return linear(mixed, m_.ow, m_.ob);
  }

  // One head of one passage: softmax(q kᵀ / √D, past only) v into its columns of `mixed`.
  void one_head(const Bounded& qkv, Index from, Bounded& mixed, Index to) const {
    const Index head = s_.channels / s_.heads, stride = 3 * s_.channels, t = s_.time;
    const auto part = [&](const HostArray& of, Index third) {
      return of.data() + from + third * s_.channels;
    };
    const HostArray keys = host_transpose(part(qkv.values, 1), t, head, stride);  // (D, T)
    const HostArray key_errors = host_transpose(part(qkv.squares, 1), t, head, stride);
    const HostArray queries = rows_of(part(qkv.values, 0), t, head, stride),
                    query_errors = rows_of(part(qkv.squares, 0), t, head, stride);
    HostArray weights = product(queries, keys, t, head, t),
              errors = product(query_errors, squared(keys), t, head, t);
    add(errors, product(squared(queries), key_errors, t, head, t));
    for (Index r = 0; r < t; ++r) weigh(row_of(weights, r, t), row_of(errors, r, t), r + 1);
    const HostArray values = rows_of(part(qkv.values, 2), t, head, stride),
                    value_errors = rows_of(part(qkv.squares, 2), t, head, stride);
    const HostArray y = product(weights, values, t, t, head);
    HostArray squares = product(errors, squared(values), t, t, head);
    add(squares, product(squared(weights), value_errors, t, t, head));
    for (Index r = 0; r < t; ++r)
      for (Index j = 0; j < head; ++j) {
        const auto i = static_cast<std::size_t>(r * head + j),
                   at = static_cast<std::size_t>(to + r * s_.channels + j);
        mixed.values[at] = y[i];
        // Weights add up to 1, and none of the values is larger than the largest.
        mixed.squares[at] = squares[i] + rounded(std::fabs(y[i]), std::fabs(y[i]));
      }
  }

  // Makes a query's weights of its first `seen` dot products; `squares` is of both. With errors δ of the
  // scores, δpⱼ = pⱼ (δⱼ − Σ p δ). Stored: the dot product, the score, the weight.
  void weigh(std::span<double> p, std::span<double> squares, Index seen) const {
    const Index depth = s_.channels / s_.heads;
    const double factor = 1 / std::sqrt(static_cast<double>(depth));
    const auto past = p.first(static_cast<std::size_t>(seen));
    const double largest = *std::max_element(past.begin(), past.end());
    double total = 0, of_total = 0;
    for (std::size_t j = 0; j < past.size(); ++j) {
      const double score = std::fabs(p[j] * factor);
      squares[j] =
          square(factor) * squares[j] + rounded(2 * score + 1, score + 1 + factor * (largest - p[j]));
      total += p[j] = std::exp((p[j] - largest) * factor);
    }
    for (std::size_t j = 0; j < past.size(); ++j) of_total += square(p[j] /= total) * squares[j];
    for (std::size_t j = 0; j < past.size(); ++j) squares[j] = 2 * square(p[j]) * (squares[j] + of_total);
    std::fill(p.begin() + seen, p.end(), 0.0);
    std::fill(squares.begin() + seen, squares.end(), 0.0);
  }

  static HostArray rows_of(const double* from, Index rows, Index columns, Index stride) {
    HostArray out;
    for (Index r = 0; r < rows; ++r) out.insert(out.end(), from + r * stride, from + r * stride + columns);
    return out;
  }
  static HostArray product(const HostArray& a, const HostArray& b, Index m, Index k, Index n) {
    HostArray c(static_cast<std::size_t>(m * n));
    host_matmul({a.data(), b.data(), c.data(), m, n, k, k, n, n});
    return c;
  }
  static void add(HostArray& x, const HostArray& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  const Model m_;
  const GptSizes& s_;
  const ErrorScale& scale_;
  ThreadPool& pool_;
};

}  // namespace

std::vector<Reference> gpt2_reference(const HostArrays& in, const GptSizes& sizes, const GptScales& scales,
                                      ThreadPool& pool) {
  const Forward forward(in, sizes, scales.logits, pool);
  Bounded logits = forward.logits();
  std::vector<Reference> out = {forward.mean_loss(logits, scales.loss),
                                {std::move(logits.values), std::move(logits.squares)}};
  for (double& m : out[1].magnitude) m = std::sqrt(m);
  return out;
}

}  // namespace tilewright::lab
