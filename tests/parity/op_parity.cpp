// Every row of the op table, on every element type and device, against its eval: ordinary, odd and extreme
// numbers, ranks 0 to 6, empty, of one element, primes, operands whole and as views. Prints each call that
// differs.
//   op_parity --device cpu [--isa avx2] [--op tanh] [--dtype bf16] [--every 3 --first 0] [--in-pairs]
#include "ir/text.h"
#include "ops/ops.h"
#include "support/draws.h"
#include "support/lowering_bounds.h"
#include "support/op_samples.h"
#include "support/readable_errors.h"
#include "support/run_graph.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <string>
#include <vector>

namespace tilewright::test {

struct OpOptions {
  std::string device = "cpu", isa, op, dtype;
  std::size_t every = 1, first = 0;  // of n samples take one, beginning with this one
  // Tries, for each row, any two of type, sample and placement together, but only half of all three: what
  // goes wrong does so by a shape, a type, a layout, or two of them.
  bool in_pairs = false;
};

// Additions in any order and products in f32 of n numbers.
bool accumulates(const ir::Op& op) {
  if (op.kind == ir::OpClass::matmul || op.kind == ir::OpClass::scatter_add ||
      op.kind == ir::OpClass::scatter_add_along)
    return true;
  return op.monoid == tile::Monoid::sum || op.monoid == tile::Monoid::prod;
}

// The distance that a result may have from what eval gives, before it is stored in its type.
struct Slack {
  double relative = 0, absolute = 0;
  // What the relative error is relative to where sums cancel: what the magnitudes of an element's terms add
  // up to. None: to the element.
  const ir::HostTensor* terms = nullptr;
  std::vector<double> each = {};  // for each element; empty: by the others

  double of(std::size_t i, double wanted) const {
    if (!each.empty()) return each[i] > 0 ? each[i] + absolute : 0;
    return relative > 0 ? relative * (terms != nullptr ? terms->f[i] : std::fabs(wanted)) + absolute : 0;
  }
};

// An op of a primitive's name is held to what the primitive states, in the type that computes.
double relative_bound(tile::Prim prim, DType dtype) {
  const double ulp = tile::info(prim).ulp;
  // f64 functions are not held to the f32 table; 16 ulp is what a library without care still gives.
  if (compute_dtype(dtype) == DType::f64) return (ulp > 0.5 ? 16 : ulp) * 0x1p-52;
  return ulp * 0x1p-23;
}

// Empty when each element lies between the bounds, both stored in the result's type, or where a rounding
// decides. What is finite in every order of additions must not overflow.
std::string compare(const ir::HostTensor& got, const ir::HostTensor& wanted, const Slack& allowed) {
  const DType dtype = wanted.type.dtype;
  const auto is_open = [&](std::size_t i) { return !allowed.each.empty() && std::isinf(allowed.each[i]); };
  for (std::size_t i = 0; i < wanted.i.size(); ++i)
    if (got.i[i] != wanted.i[i] && !is_open(i))
      return fmt::format("element {}: {} instead of {}", i, got.i[i], wanted.i[i]);
  for (std::size_t i = 0; i < wanted.f.size(); ++i) {
    const double w = wanted.f[i], stored = round_to(dtype, w);
    if ((std::isnan(w) && std::isnan(got.f[i])) || is_open(i)) continue;
    const double slack = std::isinf(w) ? 0 : allowed.of(i, w);
    const bool overflows = allowed.terms != nullptr && std::isfinite(stored) && !std::isfinite(got.f[i]);
    if (overflows || !(got.f[i] >= round_to(dtype, w - slack) && got.f[i] <= round_to(dtype, w + slack)))
      return fmt::format("element {}: {} instead of {} (stored {})", i, got.f[i], w, stored);
  }
  return "";
}

std::vector<ir::HostTensor> magnitudes(std::vector<ir::HostTensor> operands) {
  for (ir::HostTensor& t : operands)
    for (double& v : t.f) v = std::fabs(v);
  return operands;
}

struct Tally {
  int checked = 0;
  int wrong = 0;
};

// What of `got` is wrong; empty: nothing.
std::string compare(const ir::Op& op, DType dtype, const ir::Graph& graph,
                    const std::vector<ir::HostTensor>& operands, const ir::HostTensor& got) {
  const DType computing = compute_dtype(dtype) == DType::f64 ? DType::f64 : DType::f32;
  Slack allowed{.absolute = 2 * min_normal(computing)};
  const ir::HostTensor wanted = ops::evaluate(graph, operands)[0];
  if (accumulates(op)) {
    Index elements = 0;
    for (const ir::HostTensor& t : operands) elements = std::max(elements, t.type.shape.size());
    allowed.relative = static_cast<double>(elements + 4) * 2 * unit_roundoff(computing);
    const ir::HostTensor terms = ops::evaluate(graph, magnitudes(operands))[0];
    allowed.terms = &terms;
    return compare(got, wanted, allowed);
  }
  if (op.kind == ir::OpClass::pointwise) {
    if (const auto prim = tile::parse_prim(op.name))
      allowed.relative = relative_bound(*prim, dtype);
    else  // one of several roundings, as they follow from its lowering
      allowed.each = lowering_bounds(graph, operands);
  }
  return compare(got, wanted, allowed);
}

void check(GraphRunner& runner, const ir::Op& op, DType dtype, const OpSample& sample, Placement placement,
           Tally& tally) {
  // The order of additions decides whether many large numbers overflow: odd numbers are for what has one
  // answer.
  const std::vector<Values> kinds =
      accumulates(op) ? std::vector{Values::ordinary, Values::special, Values::tiny, Values::large}
                      : std::vector{Values::ordinary, Values::odd};
  Random random(static_cast<std::uint64_t>(tally.checked) + 99);
  const ir::Graph graph = sample_graph(op, sample, placement);
  std::vector<GraphRunner::Tensors> sets;
  sets.reserve(kinds.size());
  for (const Values values : kinds)
    sets.push_back(sample_operands(op, placed(sample, placement), random, values));
  tally.checked += static_cast<int>(sets.size());
  std::string problem;
  try {
    const passes::Compiled compiled =
        passes::run_pipeline(graph, runner.device->target(), {.simplify = false});
    const auto got = runner.run_each(compiled, sets);
    for (std::size_t i = 0; i < sets.size() && problem.empty(); ++i)
      problem = compare(op, dtype, graph, sets[i], got[i][0]);
  } catch (const std::exception& e) {
    problem = e.what();
  }
  if (problem.empty()) return;
  ++tally.wrong;
  fmt::print("{} of {}: {}\n{}", op.name, name(dtype), problem, ir::print(graph));
}

struct Call {
  std::size_t sample = 0;
  Placement placement = Placement::whole;
};

// The calls of one row and type. Where few of them are drawn (draws.h) there is one at least, and from type
// to type it is another one.
std::vector<Call> calls_of(const std::vector<OpSample>& samples, DType dtype, bool in_pairs) {
  std::vector<Call> calls;
  for (std::size_t i = 0; i < samples.size(); ++i)
    for (Placement placement : kPlacements) {
      const std::size_t place = static_cast<std::size_t>(dtype) + i + static_cast<std::size_t>(placement);
      if (in_pairs && samples.size() > 1 && place % 2 != 0) continue;
      if (placement == Placement::whole || !samples[i].operands.empty()) calls.push_back({i, placement});
    }
  if (calls.empty()) return calls;
  std::vector<Call> drawn;
  const std::size_t count = draws(calls.size()), first = static_cast<std::size_t>(dtype);
  drawn.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    drawn.push_back(calls[(first + i * calls.size() / count) % calls.size()]);
  return drawn;
}

int run(const OpOptions& options) {
  GraphRunner runner(options.device, options.isa);
  Tally tally;
  const auto start = std::chrono::steady_clock::now();
  std::size_t turn = 0;
  for (const ir::Op* op : ops::all_ops()) {
    if (!options.op.empty() && op->name != options.op) continue;
    for (DType dtype : kAllDTypes) {
      if (!options.dtype.empty() && name(dtype) != options.dtype) continue;
      const std::vector<OpSample> samples = op_samples(*op, dtype);
      for (const Call& call : calls_of(samples, dtype, options.in_pairs))
        if (turn++ % options.every == options.first)
          check(runner, *op, dtype, samples[call.sample], call.placement, tally);
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("{} calls on {}, {} differ, in {:.1f} s\n", tally.checked, options.device, tally.wrong, seconds);
  const bool asked_for_one = !options.op.empty() || !options.dtype.empty();
  if (tally.checked == 0 && asked_for_one && options.every == 1) {
    fmt::print("no row and type of these names\n");
    return 2;
  }
  return tally.wrong == 0 ? 0 : 1;
}

}  // namespace tilewright::test

int main(int argc, char** argv) {
  tilewright::test::OpOptions options;
  CLI::App app("each op row on a device against its float64 eval");
  app.add_option("--device", options.device);
  app.add_option("--isa", options.isa);
  app.add_option("--op", options.op, "only this row");
  app.add_option("--dtype", options.dtype, "only this element type");
  app.add_option("--every", options.every, "one of n samples")->check(CLI::PositiveNumber);
  app.add_option("--first", options.first, "with --every: which one");
  app.add_flag("--in-pairs", options.in_pairs, "any two of type, sample and placement together");
  CLI11_PARSE(app, argc, argv);
  return tilewright::test::with_readable_errors("op_parity", [&] { return tilewright::test::run(options); });
}
