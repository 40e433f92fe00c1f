// attention(): the scores, the user's functions of them, and what they weigh, recorded as one program.
#include "ops/attention.h"
#include "ops/promote.h"
#include "ops/seen.h"
#include "tensor/state.h"

#include <tilewright/tensor/attention.h>
#include <tilewright/tensor/compile.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tilewright {

using detail::apply;
using detail::shape_of;
using ir::Value;
using Values = std::vector<Value>;

namespace {

ScoreIndices score_indices(const char* name, const Tensor& q, const Tensor& k, const Location& where) {
  const Shape& s = q.shape();
  const auto write = [&](ir::Graph& graph, const Values&) {
    return Values{ops::iota(graph, {s[0], 1, 1, 1}, 0), ops::iota(graph, {1, s[1], 1, 1}, 1),
                  ops::iota(graph, {s[2], 1}, 0), ops::iota(graph, {k.shape()[2]}, 0)};
  };
  const std::vector<Tensor> at = apply(name, {q}, write, where);
  return {at[0], at[1], at[2], at[3]};
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.rank() > to.rank()) return false;
  for (int i = 1; i <= from.rank(); ++i)
    if (from[from.rank() - i] != 1 && from[from.rank() - i] != to[to.rank() - i]) return false;
  return true;
}

void check_result(const char* of, const char* function, const Tensor& got, bool fits, const Shape& scores,
                  const char* wanted, const Location& where) {
  if (!got.defined()) throw Error(fmt::format("{}: the {} function returned no tensor", of, function), where);
  const Shape& shape = shape_of(got);
  if (!fits || !broadcasts_to(shape, scores))
    throw Error(fmt::format("{}: the {} function returned {}{}, wanted {} that broadcasts to {}", of,
                            function, name(got.dtype()), to_string(shape), wanted, to_string(scores)),
                where);
}

// The last tensor of `in` is the seed, where there is one. `name` is the function the user called.
std::vector<Tensor> record(const char* name, const std::vector<Tensor>& in, const AttentionOptions& options,
                           const Location& where) {
  const Tensor &q = in[0], &k = in[1], &v = in[2];
  apply(
      name, {q, k, v},
      [](ir::Graph&, const Values& x) {
        ops::check_attention(x[0], x[1], x[2]);
        return Values{};
      },
      where);
  const Shape &queries_at = shape_of(q), &keys_at = shape_of(k);
  const Shape shape{queries_at[0], queries_at[1], queries_at[2], keys_at[2]};
  const DType dtype = q.dtype() == DType::f64 ? DType::f64 : DType::f32;
  std::optional<ScoreIndices> at;
  if (options.score || options.mask) at = score_indices(name, q, k, where);
  std::vector<Tensor> read{q, k, v};
  if (options.mask) {
    read.push_back(options.mask(*at));
    const Tensor& m = read.back();
    check_result(name, "mask", m, m.defined() && is_bool(m.dtype()), shape, "bools", where);
  }
  const auto write_scores = [&](ir::Graph&, const Values& x) {
    // Scores of no depth are 0, whatever their scale: 1/sqrt(0) would make NaN of them.
    const auto depth = static_cast<double>(std::max<Index>(x[0].shape()[3], 1));
    const double scale = options.scale.value_or(1 / std::sqrt(depth));
    if (!options.mask) return Values{ops::attention_scores(x[0], x[1], scale), x[2]};
    const ops::Seen keys = ops::seen_keys(x[3], shape, keys_at[1]),
                    queries = ops::seeing_queries(x[3], shape, keys_at[1]);
    return Values{ops::attention_scores(queries.used(x[0]), keys.used(x[1]), scale), keys.used(x[2]),
                  queries.restricted(keys.restricted(x[3]))};
  };
  std::vector<Tensor> operands = apply(name, read, write_scores, where);
  if (options.score) {
    const Tensor s = options.score(operands[0], *at);
    check_result(name, "score", s, s.defined() && is_float(s.dtype()), shape, "floats", where);
    operands[0] = broadcast_to(cast(s, dtype, where), shape, where);
  }
  if (options.dropout != 0) operands.push_back(in[3]);
  const auto write_result = [&](ir::Graph&, const Values& x) {
    ops::AttendOptions o{.dropout = options.dropout, .result = is_f8(q.dtype()) ? dtype : q.dtype()};
    std::size_t next = 2;
    if (options.mask) o.mask = x[next++];
    if (options.dropout != 0) o.seed = x[next];
    const ops::Attended y = ops::attend(x[0], x[1], o);
    return Values{y.out, y.lse};
  };
  return apply(name, operands, write_result, where);
}

std::vector<Tensor> run(const char* name, const std::vector<Tensor>& qkv, const AttentionOptions& options,
                        std::size_t results, const Location& where) {
  std::vector<Tensor> in = qkv;
  detail::check_operands(name, in, where);
  if (!(options.dropout >= 0 && options.dropout < 1))
    throw Error(fmt::format("{}: dropout is {}, it must be in [0, 1)", name, options.dropout), where);
  if (options.dropout != 0) {
    if (!options.seed || !options.seed->defined())
      throw Error(fmt::format("{}: dropout needs a seed", name), where);
    in.push_back(*options.seed);
  }
  // Recorded where a recording is going on, else a program of its own: its parts are never run one by one.
  detail::CompiledCore core(
      [&](const detail::Leaves& given) {
        std::vector<Tensor> all = record(name, given.tensors, options, where);
        all.resize(results);
        return detail::Leaves{std::move(all), {}};
      },
      {}, {});
  return core.call(in, where).tensors;
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
                 const Location& where) {
  return run("attention", {q, k, v}, options, 1, where)[0];
}

std::pair<Tensor, Tensor> attention_with_lse(const Tensor& q, const Tensor& k, const Tensor& v,
                                             const AttentionOptions& options, const Location& where) {
  const std::vector<Tensor> both = run("attention_with_lse", {q, k, v}, options, 2, where);
  return {both[0], both[1]};
}

namespace {
// take(x, index, 0) whose indices may lie outside, by what the header says: not checked.
Tensor rows_or_zero(const char* name, const Tensor& x, const Tensor& index, const Location& where) {
  return apply(
      name, {x, index}, [](ir::Graph&, const Values& in) { return Values{ops::take(in[0], in[1], 0)}; },
      where)[0];
}
}  // namespace

Tensor from_pages(const Tensor& pages, const Tensor& table, const Location& where) {
  detail::check_operands("from_pages", {pages, table}, where);
  const Shape &p = shape_of(pages), &t = shape_of(table);
  if (p.rank() != 4 || t.rank() != 2 || !is_integer(table.dtype()))
    throw Error(
        fmt::format("from_pages: wants pages (P, S, H, D) and a table (B, N) of integers, got {}{} and {}{}",
                    name(pages.dtype()), to_string(p), name(table.dtype()), to_string(t)),
        where);
  const Tensor picked = rows_or_zero("from_pages", pages, table, where);  // (B, N, S, H, D)
  return swap_axes(reshape(picked, {t[0], t[1] * p[1], p[2], p[3]}, where), 1, 2, where);
}

Tensor element(const Tensor& table, const std::vector<Tensor>& indices, const Location& where) {
  detail::check_operands("element", {table}, where);
  detail::check_operands("element", indices, where);
  const Shape& shape = shape_of(table);
  if (static_cast<int>(indices.size()) != shape.rank() || indices.empty())
    throw Error(fmt::format("element: {} indices for {}", indices.size(), to_string(shape)), where);
  for (const Tensor& i : indices)
    if (!is_integer(i.dtype()))
      throw Error(fmt::format("element: an index is {}, wanted integers", name(i.dtype())), where);
  if (shape.rank() == 1) return rows_or_zero("element", table, indices[0], where);
  Tensor place, inside;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const Tensor i = cast(indices[static_cast<std::size_t>(axis)], DType::i64, where);
    const Tensor here = logical_and(ge(i, 0, where), lt(i, shape[axis], where), where);
    place = axis == 0 ? i : add(mul(place, shape[axis], where), i, where);
    inside = axis == 0 ? here : logical_and(inside, here, where);
  }
  return rows_or_zero("element", reshape(table, {-1}, where), tilewright::where(inside, place, -1, where),
                      where);
}

namespace {

// The query's number among the keys.
Tensor place(const ScoreIndices& at, Index offset) { return offset == 0 ? at.query : at.query + offset; }

// What is read by an index has a value for each of them: outside it would read 0, which means something else.
void check_covers(const char* function, const Tensor& data, bool covers, const char* wanted,
                  const ScoreIndices& at, const Location& where) {
  if (covers) return;
  const Shape scores{shape_of(at.batch)[0], shape_of(at.head)[1], shape_of(at.query)[0], shape_of(at.key)[0]};
  throw Error(fmt::format("{}: wants {}, got {}{} for scores {}", function, wanted, name(data.dtype()),
                          to_string(shape_of(data)), to_string(scores)),
              where);
}

void check_ids(const Tensor& ids, const ScoreIndices& at, const Shape& positions, const Location& where) {
  const Shape& s = shape_of(ids);
  const bool whole =
      (s.rank() == 1 || (s.rank() == 2 && s[0] == shape_of(at.batch)[0])) && s[s.rank() - 1] >= positions[0];
  check_covers("document_mask", ids, whole, "an id for each position, (T) or (B, T)", at, where);
}

// What `ids` (T) or (B, T) says of each position.
Tensor id_of(const Tensor& ids, const ScoreIndices& at, const Tensor& position) {
  if (ids.rank() == 1) return element(ids, {position});
  return element(ids, {at.batch, position});
}

MaskFunction combine(const std::vector<MaskFunction>& masks, const char* name,
                     Tensor (*with)(const Arg&, const Arg&, const Location&), const Location& where) {
  if (masks.empty()) throw Error(fmt::format("{}: no masks given", name), where);
  for (std::size_t i = 0; i < masks.size(); ++i)
    if (!masks[i]) throw Error(fmt::format("{}: mask {} is an empty function", name, i), where);
  return [masks, with, where](const ScoreIndices& at) {
    Tensor m = masks[0](at);
    for (std::size_t i = 1; i < masks.size(); ++i) m = with(m, masks[i](at), where);
    return m;
  };
}

}  // namespace

MaskFunction causal_mask(Index offset) {
  return [offset](const ScoreIndices& at) { return at.key <= place(at, offset); };
}

MaskFunction window_mask(Index before, Index after, Index offset) {
  return [=](const ScoreIndices& at) {
    const Tensor distance = place(at, offset) - at.key;
    return logical_and(distance <= before, distance >= -after);
  };
}

MaskFunction prefix_mask(Index length) {
  return [length](const ScoreIndices& at) { return at.key < length; };
}

MaskFunction prefix_mask(const Tensor& lengths, const Location& where) {
  detail::check_operands("prefix_mask", {lengths}, where);
  return [=](const ScoreIndices& at) {
    check_covers("prefix_mask", lengths, shape_of(lengths) == Shape({shape_of(at.batch)[0]}),
                 "a length for each sequence, (B)", at, where);
    return at.key < element(lengths, {at.batch}, where);
  };
}

MaskFunction document_mask(const Tensor& ids, const Location& where) {
  return document_mask(ids, ids, where);
}

MaskFunction document_mask(const Tensor& query_ids, const Tensor& key_ids, const Location& where) {
  detail::check_operands("document_mask", {query_ids, key_ids}, where);
  return [=](const ScoreIndices& at) {
    check_ids(query_ids, at, shape_of(at.query), where);
    check_ids(key_ids, at, shape_of(at.key), where);
    return eq(id_of(query_ids, at, at.query), id_of(key_ids, at, at.key), where);
  };
}

MaskFunction all_of(const std::vector<MaskFunction>& masks, const Location& where) {
  return combine(masks, "all_of", logical_and, where);
}
MaskFunction any_of(const std::vector<MaskFunction>& masks, const Location& where) {
  return combine(masks, "any_of", logical_or, where);
}

ScoreFunction alibi_score(const Tensor& slopes, Index offset, const Location& where) {
  detail::check_operands("alibi_score", {slopes}, where);
  return [=](const Tensor& score, const ScoreIndices& at) {
    check_covers("alibi_score", slopes, shape_of(slopes) == Shape({shape_of(at.head)[1]}),
                 "a slope for each head, (H)", at, where);
    return score + element(slopes, {at.head}) * cast(at.key - place(at, offset), score.dtype());
  };
}

ScoreFunction soft_cap_score(double cap) {
  return [cap](const Tensor& score, const ScoreIndices&) { return tanh(score / cap) * cap; };
}

ScoreFunction bias_score(const Tensor& bias, const Location& where) {
  detail::check_operands("bias_score", {bias}, where);
  return [=](const Tensor& score, const ScoreIndices& at) {
    check_covers("bias_score", bias, broadcasts_to(shape_of(bias), shape_of(score)),
                 "a tensor that broadcasts to the scores", at, where);
    return add(score, bias, where);
  };
}

ScoreFunction chain(const std::vector<ScoreFunction>& scores) {
  return [scores](const Tensor& score, const ScoreIndices& at) {
    Tensor s = score;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (!scores[i]) throw Error(fmt::format("chain: score function {} is empty", i));
      s = scores[i](s, at);
    }
    return s;
  };
}

}  // namespace tilewright
