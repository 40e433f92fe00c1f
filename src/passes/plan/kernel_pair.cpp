// Two kernels walked side by side, to find what they differ in, or what the parameters of one are in the
// other.
#include "passes/plan/kernel_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace tilewright::passes {

using tile::Block;
using tile::Dim;
using tile::Kernel;
using tile::Op;
using tile::OpKind;

namespace {

// A constant as an argument.
std::int64_t bits_of(DType dtype, const tile::Number& n) {
  return is_float(dtype) ? tile::scalar_bits(dtype, n.f) : n.i;
}

class KernelPair {
 public:
  KernelPair(const Kernel& first, const Kernel& second) : out_(first), other_(second) {}

  // The kernel, and the arguments that make it `first`, behind those it had.
  GeneralKernel run() {
    require(out_.views.size() == other_.views.size() && out_.scalars == other_.scalars &&
                out_.grid.size() == other_.grid.size() && out_.values.size() == other_.values.size(),
            "its code depends on the size: at another size it has other instructions");
    for (std::size_t i = 0; i < out_.values.size(); ++i)
      require(out_.values[i].type == other_.values[i].type,
              fmt::format("its code depends on the size: what is {} here is {} at another size",
                          to_string(out_.values[i].type), to_string(other_.values[i].type)));
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
    require(a.args == b.args && a.ops.size() == b.ops.size(), "it has other operations at another size");
    std::vector<Op> ops;
    for (std::size_t i = 0; i < a.ops.size(); ++i) {
      Op& op = a.ops[i];
      const Op& other = b.ops[i];
      require(op.kind == other.kind && op.blocks.size() == other.blocks.size(),
              "it has other operations at another size");
      for (std::size_t k = 0; k < op.blocks.size(); ++k) merge_block(op.blocks[k], other.blocks[k]);
      Op as_here = other;
      as_here.blocks = op.blocks;
      if (op == as_here) {
        ops.push_back(std::move(op));
        continue;
      }
      as_here.number = op.number;
      require(op.kind == OpKind::constant && op == as_here,
              fmt::format("its {} differ at another size", name(op.kind)));
      ops.push_back(constant_from_parameter(op, other.number));
    }
    a.ops = std::move(ops);
  }

  Op constant_from_parameter(const Op& op, const tile::Number& other) {
    const tile::TileType type = out_.type(op.results[0]);
    require(type.dtype == DType::i64 || type.dtype == DType::f32 || type.dtype == DType::f64,
            fmt::format("constants of {}", name(type.dtype)));
    const int param = parameter(type.dtype, bits_of(type.dtype, op.number), bits_of(type.dtype, other));
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

// What the parameters of a general kernel are where it is this one.
class KernelFit {
 public:
  KernelFit(const Kernel& general, const Kernel& kernel)
      : general_(general), kernel_(kernel), own_(kernel.scalars.size()) {
    require(general.scalars.size() >= own_, "other parameters");
    arguments_.resize(general.scalars.size() - own_);
  }

  // The arguments behind those that the kernel has.
  std::vector<std::int64_t> run() {
    const std::size_t values = kernel_.values.size();
    require(general_.views.size() == kernel_.views.size() && general_.grid.size() == kernel_.grid.size() &&
                general_.values.size() >= values &&
                std::equal(kernel_.scalars.begin(), kernel_.scalars.end(), general_.scalars.begin()),
            "other kernels");
    for (std::size_t i = 0; i < values; ++i)
      require(general_.values[i].type == kernel_.values[i].type, "other types");
    for (std::size_t i = 0; i < general_.views.size(); ++i) fit_view(general_.views[i], kernel_.views[i]);
    for (std::size_t i = 0; i < general_.grid.size(); ++i) fit_axis(general_.grid[i], kernel_.grid[i]);
    // What tiles are filled from is read at the start.
    const std::size_t reads = general_.values.size() - values;
    require(general_.body.ops.size() >= reads, "other operations");
    for (std::size_t r = 0; r < reads; ++r) {
      const Op& read = general_.body.ops[r];
      read_[read.results[0]] = read.param;
    }
    fit_ops(general_.body, reads, kernel_.body);
    std::vector<std::int64_t> out;
    out.reserve(arguments_.size());
    for (const std::optional<std::int64_t>& a : arguments_) {
      require(a.has_value(), "a parameter without a number");
      out.push_back(*a);
    }
    return out;
  }

 private:
  void require(bool same, const char* what) const {
    if (!same) throw Differs{fmt::format("kernel {}: {}", kernel_.name, what)};
  }

  // A parameter that stood for equal numbers stands for one.
  void set(int param, std::int64_t value) {
    const auto at = static_cast<std::size_t>(param) - own_;
    require(static_cast<std::size_t>(param) >= own_ && (!arguments_[at] || *arguments_[at] == value),
            "numbers that were equal");
    arguments_[at] = value;
  }

  void fit_dim(const Dim& general, const Dim& dim) {
    if (general == dim) return;
    require(!general.is_constant() && dim.is_constant(), "other sizes");
    set(general.scalar, dim.value);
  }

  void fit_view(const tile::ViewParam& general, const tile::ViewParam& view) {
    require(general.dtype == view.dtype && general.rank() == view.rank() &&
                view.align_bytes >= general.align_bytes,
            "other views");
    for (std::size_t d = 0; d < view.extents.size(); ++d) {
      fit_dim(general.extents[d], view.extents[d]);
      fit_dim(general.strides[d], view.strides[d]);
    }
  }

  void fit_axis(const tile::GridAxis& general, const tile::GridAxis& axis) {
    require(general.size() == axis.size(), "other grids");
    for (std::size_t f = 0; f < axis.size(); ++f) {
      require(general[f].block == axis[f].block, "other blocks");
      fit_dim(general[f].extent, axis[f].extent);
    }
  }

  void fit_ops(const Block& general, std::size_t first, const Block& block) {
    require(general.args == block.args && general.ops.size() == block.ops.size() + first, "other operations");
    for (std::size_t i = 0; i < block.ops.size(); ++i) fit_op(general.ops[first + i], block.ops[i]);
  }

  void fit_op(const Op& general, const Op& op) {
    if (op.kind == OpKind::constant && general.kind != OpKind::constant) {
      require(general.results == op.results, "other operations");
      set(parameter_of(general), bits_of(kernel_.type(op.results[0]).dtype, op.number));
      return;
    }
    require(general.blocks.size() == op.blocks.size(), "other operations");
    if (op.blocks.empty()) return require(general == op, "other operations");
    Op as_general = op;
    as_general.blocks = general.blocks;
    require(general == as_general, "other operations");
    for (std::size_t b = 0; b < op.blocks.size(); ++b) fit_ops(general.blocks[b], 0, op.blocks[b]);
  }

  // The parameter that stands in the place of a constant.
  int parameter_of(const Op& general) const {
    if (general.kind == OpKind::scalar_param) return general.param;
    const auto read = general.kind == OpKind::broadcast ? read_.find(general.operands[0]) : read_.end();
    require(read != read_.end(), "other operations");
    return read->second;
  }

  const Kernel& general_;
  const Kernel& kernel_;
  const std::size_t own_;  // parameters that the kernel has
  std::map<tile::ValueId, int> read_;
  std::vector<std::optional<std::int64_t>> arguments_;
};

}  // namespace

GeneralKernel general_kernel(const Kernel& first, const Kernel& second) {
  return KernelPair(first, second).run();
}

std::vector<std::int64_t> arguments_of(const Kernel& general, const Kernel& kernel) {
  return KernelFit(general, kernel).run();
}

}  // namespace tilewright::passes
