// Two kernels walked side by side.
#include "passes/plan/generalise.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace tilewright::passes {

using tile::Block;
using tile::Dim;
using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::PlanStep;

namespace {

// Thrown inside this file: the kernels differ in more than numbers.
struct Differs {
  std::string what;
};

class KernelPair {
 public:
  KernelPair(const Kernel& first, const Kernel& second) : out_(first), other_(second) {}

  // The kernel, and the arguments that make it `first`, behind those it had.
  std::pair<Kernel, std::vector<std::int64_t>> run() {
    require(out_.views.size() == other_.views.size() && out_.scalars == other_.scalars &&
                out_.grid.size() == other_.grid.size() && out_.values.size() == other_.values.size(),
            "other kernels");
    for (std::size_t i = 0; i < out_.values.size(); ++i)
      require(out_.values[i].type == other_.values[i].type,
              fmt::format("{} and {}", to_string(out_.values[i].type), to_string(other_.values[i].type)));
    for (std::size_t i = 0; i < out_.views.size(); ++i) merge_view(out_.views[i], other_.views[i]);
    for (std::size_t i = 0; i < out_.grid.size(); ++i) merge_axis(out_.grid[i], other_.grid[i]);
    merge_block(out_.body, other_.body);
    // Parameters the body reads are defined at its start.
    out_.body.ops.insert(out_.body.ops.begin(), reads_.begin(), reads_.end());
    return {std::move(out_), std::move(arguments_)};
  }

 private:
  void require(bool same, const std::string& what) const {
    if (!same) throw Differs{fmt::format("kernel {}: {}", out_.name, what)};
  }

  // The parameter that stands for a number which is `a` here and `b` there.
  int parameter(DType dtype, std::int64_t a, std::int64_t b) {
    const auto [it, added] = known_.insert({{dtype, a, b}, static_cast<int>(out_.scalars.size())});
    if (added) {
      out_.scalars.push_back({fmt::format("n{}", out_.scalars.size()), dtype});
      arguments_.push_back(a);
    }
    return it->second;
  }

  void merge_dim(Dim& a, const Dim& b) {
    if (a == b) return;
    require(a.is_constant() && b.is_constant(), "sizes that are arguments");
    a = {0, parameter(DType::i64, a.value, b.value)};
  }

  void merge_view(tile::ViewParam& a, const tile::ViewParam& b) {
    require(a.dtype == b.dtype && a.rank() == b.rank(), "views of other types");
    for (std::size_t d = 0; d < a.extents.size(); ++d) {
      merge_dim(a.extents[d], b.extents[d]);
      merge_dim(a.strides[d], b.strides[d]);
    }
    a.align_bytes = std::min(a.align_bytes, b.align_bytes);
  }

  void merge_axis(tile::GridAxis& a, const tile::GridAxis& b) {
    require(a.size() == b.size(), "grids");
    for (std::size_t f = 0; f < a.size(); ++f) {
      require(a[f].block == b[f].block, "block sizes");
      merge_dim(a[f].extent, b[f].extent);
    }
  }

  // `ops` grows where a number becomes a parameter.
  void merge_block(Block& a, const Block& b) {
    require(a.args == b.args && a.ops.size() == b.ops.size(), "other operations");
    std::vector<Op> ops;
    for (std::size_t i = 0; i < a.ops.size(); ++i) {
      Op& op = a.ops[i];
      const Op& other = b.ops[i];
      require(op.kind == other.kind && op.blocks.size() == other.blocks.size(), "other operations");
      for (std::size_t k = 0; k < op.blocks.size(); ++k) merge_block(op.blocks[k], other.blocks[k]);
      Op as_here = other;
      as_here.blocks = op.blocks;
      if (op == as_here) {
        ops.push_back(std::move(op));
        continue;
      }
      as_here.number = op.number;
      require(op.kind == OpKind::constant && op == as_here,
              fmt::format("other {} operations", name(op.kind)));
      ops.push_back(constant_from_parameter(op, other.number));
    }
    a.ops = std::move(ops);
  }

  Op constant_from_parameter(const Op& op, const tile::Number& other) {
    const tile::TileType type = out_.type(op.results[0]);
    require(type.dtype == DType::i64 || type.dtype == DType::f32 || type.dtype == DType::f64,
            fmt::format("constants of {}", name(type.dtype)));
    const auto bits = [&](const tile::Number& n) {
      return is_float(type.dtype) ? tile::scalar_bits(type.dtype, n.f) : n.i;
    };
    const int param = parameter(type.dtype, bits(op.number), bits(other));
    Op read{.kind = OpKind::scalar_param, .results = op.results, .param = param, .location = op.location};
    if (type.rank() == 0) return read;
    // Tiles are filled from a scalar.
    read.results = {static_cast<tile::ValueId>(out_.values.size())};
    out_.values.push_back({{type.dtype, {}}, ""});
    Op fill{
        .kind = OpKind::broadcast, .operands = read.results, .results = op.results, .location = op.location};
    reads_.push_back(std::move(read));
    return fill;
  }

  Kernel out_;
  const Kernel& other_;
  std::map<std::tuple<DType, std::int64_t, std::int64_t>, int> known_;
  std::vector<std::int64_t> arguments_;
  std::vector<Op> reads_;
};

}  // namespace

Result<tile::Plan> generalise(const tile::Plan& plan, const tile::Plan& other) {
  tile::Plan out = plan;
  const bool same_steps = std::equal(
      plan.steps.begin(), plan.steps.end(), other.steps.begin(), other.steps.end(),
      [](const PlanStep& a, const PlanStep& b) { return a.kind == b.kind && a.kernel == b.kernel; });
  if (!same_steps || plan.kernels.size() != other.kernels.size())
    return failure(Failure::Kind::unsupported,
                   fmt::format("{} kernels and {}", plan.kernels.size(), other.kernels.size()));
  try {
    for (PlanStep& step : out.steps) {
      if (step.kind != PlanStep::Kind::launch) continue;
      const auto k = static_cast<std::size_t>(step.kernel);
      auto [kernel, arguments] = KernelPair(plan.kernels[k], other.kernels[k]).run();
      out.kernels[k] = std::move(kernel);
      step.scalars.insert(step.scalars.end(), arguments.begin(), arguments.end());
    }
  } catch (const Differs& differs) {
    return failure(Failure::Kind::unsupported, differs.what);
  }
  return out;
}

}  // namespace tilewright::passes
