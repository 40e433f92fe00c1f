// One passage's rows after another; every intermediate is an array of its own.
#include "pairs/gpt2_block/gpt2_reference.h"

#include <algorithm>
#include <cmath>

#include "pairs/host_matmul.h"
#include "pairs/host_norm.h"

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

// x (rows, k) · w (k, n) + b
HostArray linear(const HostArray& x, const HostArray& w, const HostArray& b, Index k, ThreadPool& pool) {
  const auto n = static_cast<Index>(b.size());
  const Index rows = static_cast<Index>(x.size()) / k;
  HostArray y(static_cast<std::size_t>(rows * n));
  host_matmul({x.data(), w.data(), y.data(), rows, n, k, k, n, n}, pool);
  for_rows(pool, rows, [&](Index r) {
    for (Index j = 0; j < n; ++j) y[static_cast<std::size_t>(r * n + j)] += b[static_cast<std::size_t>(j)];
  });
  return y;
}

HostArray norm(const HostArray& x, const HostArray& w, const HostArray& b, ThreadPool& pool) {
  const auto c = static_cast<Index>(w.size());
  HostArray y(x.size()), unused(x.size());
  for_rows(pool, static_cast<Index>(x.size()) / c,
           [&](Index r) { layer_norm_row(row_of(x, r, c), w, b, row_of(y, r, c), row_of(unused, r, c)); });
  return y;
}

void add_to(HostArray& x, const HostArray& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

// One head of one passage: softmax(q kᵀ / √D, past only) v into its columns of `mixed`.
void one_head(const double* qkv, double* mixed, const GptSizes& s) {
  const Index head = s.channels / s.heads, stride = 3 * s.channels, t = s.time;
  const HostArray keys = host_transpose(qkv + s.channels, t, head, stride);  // (D, T)
  HostArray scores(static_cast<std::size_t>(t * t));
  host_matmul({qkv, keys.data(), scores.data(), t, t, head, stride, t, t});
  const double scale = 1 / std::sqrt(static_cast<double>(head));
  for (Index r = 0; r < t; ++r) {
    const auto row = row_of(scores, r, t);
    const auto past = row.first(static_cast<std::size_t>(r + 1));
    const double largest = *std::max_element(past.begin(), past.end());
    double sum = 0;
    for (double& v : past) sum += v = std::exp((v - largest) * scale);
    for (double& v : past) v /= sum;
    std::fill(row.begin() + r + 1, row.end(), 0.0);
  }
  host_matmul({scores.data(), qkv + 2 * s.channels, mixed, t, head, t, t, stride, s.channels});
}

HostArray attention(const HostArray& h, const Model& m, const GptSizes& s, ThreadPool& pool) {
  const HostArray qkv = linear(h, m.qkvw, m.qkvb, s.channels, pool);
  HostArray mixed(h.size());
  const Index head = s.channels / s.heads;
  for_rows(pool, s.batch * s.heads, [&](Index job) {
    const Index b = job / s.heads, column = job % s.heads * head;
    one_head(qkv.data() + b * s.time * 3 * s.channels + column,
             mixed.data() + b * s.time * s.channels + column, s);
  });
  return linear(mixed, m.ow, m.ob, s.channels, pool);
}

HostArray absolute(HostArray x) {
  for (double& v : x) v = std::fabs(v);
  return x;
}

// Logits, and for each the size of what is summed: Σ |h| |w|.
Reference head(const HostArray& h, const Model& m, const GptSizes& s, ThreadPool& pool) {
  const Index rows = s.batch * s.time, v = s.vocabulary, c = s.channels;
  Reference logits{HostArray(static_cast<std::size_t>(rows * v)),
                   HostArray(static_cast<std::size_t>(rows * v))};
  // By the transpose of wte (v, c).
  host_matmul({h.data(), m.wte.data(), logits.values.data(), rows, v, c, c, 1, v, 1, c}, pool);
  const HostArray ah = absolute(h), aw = absolute(m.wte);
  host_matmul({ah.data(), aw.data(), logits.magnitude.data(), rows, v, c, c, 1, v, 1, c}, pool);
  return logits;
}

Reference mean_loss(const Reference& logits, const Model& m, const GptSizes& s) {
  const Index rows = s.batch * s.time;
  Reference loss{{0}, {0}};
  for (Index r = 0; r < rows; ++r) {
    const auto x = row_of(logits.values, r, s.vocabulary), size = row_of(logits.magnitude, r, s.vocabulary);
    const double largest = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (double v : x) sum += std::exp(v - largest);
    const auto label = static_cast<std::size_t>(m.targets[static_cast<std::size_t>(r)]);
    loss.values[0] += (largest + std::log(sum) - x[label]) / static_cast<double>(rows);
    loss.magnitude[0] += (std::fabs(largest) + std::log(sum) + size[label]) / static_cast<double>(rows);
  }
  return loss;
}

}  // namespace

std::vector<Reference> gpt2_reference(const HostArrays& in, const GptSizes& s, ThreadPool& pool) {
  const Model m(in);
  const Index c = s.channels;
  HostArray x(static_cast<std::size_t>(s.batch * s.time * c));
  for_rows(pool, s.batch * s.time, [&](Index r) {
    const auto token = row_of(m.wte, static_cast<Index>(m.tokens[static_cast<std::size_t>(r)]), c);
    const auto place = row_of(m.wpe, r % s.time, c);
    const auto to = row_of(x, r, c);
    for (std::size_t j = 0; j < to.size(); ++j) to[j] = token[j] + place[j];
  });
  add_to(x, attention(norm(x, m.ln1w, m.ln1b, pool), m, s, pool));
  HostArray wide = linear(norm(x, m.ln2w, m.ln2b, pool), m.fcw, m.fcb, c, pool);
  for_rows(pool, static_cast<Index>(wide.size()), [&](Index i) {
    wide[static_cast<std::size_t>(i)] = gelu_tanh(wide[static_cast<std::size_t>(i)]);
  });
  add_to(x, linear(wide, m.pw, m.pb, 4 * c, pool));
  const Reference logits = head(norm(x, m.lnfw, m.lnfb, pool), m, s, pool);
  return {mean_loss(logits, m, s), logits};
}

}  // namespace tilewright::lab
