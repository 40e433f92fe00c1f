// Embeddings, and the gradients of their tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sweep/families.h"
#include "sweep/families/parts.h"

namespace tilewright::sweep {

namespace {

struct Tokens {
  Index batch, time, width, rows;
};

Tokens tokens_of(Draft& d, double elements) {
  Tokens t{};
  t.width = d.sizes.extent(std::min(d.sizes.log_uniform(16, 4097), std::max(4.0, elements / 8)));
  const double count = std::max(1.0, elements / static_cast<double>(t.width));
  t.time = d.sizes.extent(std::max(1.0, std::min(d.sizes.log_uniform(8, 4097), count / 2)));
  t.batch = std::max(Index{1}, static_cast<Index>(count / 2 / static_cast<double>(t.time)));
  t.rows = std::max(Index{2}, static_cast<Index>(std::min(d.sizes.log_uniform(64, 131073), count / 2)));
  return t;
}

// Different rows that random tokens name, less what chance may take.
double rows_read(const Tokens& t) {
  const auto rows = static_cast<double>(t.rows), tokens = static_cast<double>(t.batch * t.time);
  return 0.9 * rows * -std::expm1(-tokens / rows);
}

}  // namespace

void embedding(Draft& d) {
  const bool positions = d.choose.chance(0.6), normed = d.choose.chance(0.4), rms = d.choose.chance(0.5);
  const Tokens t = tokens_of(d, d.elements(0.6));
  const std::string tokens = d.integers("tokens", Shape({t.batch, t.time}), t.rows);
  const std::string table = d.input("table", Shape({t.rows, t.width}));
  d.reads_of(table, rows_read(t) * static_cast<double>(t.width));
  std::string x = d.add("embedding", {table, tokens});
  if (positions) x = d.add("add", {x, d.input("positions", Shape({t.time, t.width}))});
  if (normed) x = last_axis_norm(d, x, t.width, rms);
  d.results({x});
}

void embedding_gradient(Draft& d) {
  const bool positions = d.choose.chance(0.5);
  const Tokens t = tokens_of(d, d.elements(0.4));
  const std::string tokens = d.integers("tokens", Shape({t.batch, t.time}), t.rows);
  const std::string table = d.input("table", Shape({t.rows, t.width}));
  d.reads_of(table, rows_read(t) * static_cast<double>(t.width));
  std::string x = d.add("embedding", {table, tokens});
  std::vector<std::string> by = {table};
  if (positions) {
    by.push_back(d.input("positions", Shape({t.time, t.width})));
    x = d.add("add", {x, by.back()});
  }
  d.gradients(mse_loss(d, x, Shape({t.batch, t.time, t.width})), by);
}

}  // namespace tilewright::sweep
