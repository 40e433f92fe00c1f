// Small functions over the IR's data.
#include <tilewright/base/error.h>
#include <tilewright/tile/kernel.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>

namespace tilewright::tile {

std::string_view name(Monoid monoid) {
  constexpr std::string_view names[] = {"sum", "prod", "max", "min", "and", "or", "argmax", "argmin"};
  return names[static_cast<std::size_t>(monoid)];
}

std::optional<Monoid> parse_monoid(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(Monoid::argmin); ++i)
    if (name(static_cast<Monoid>(i)) == text) return static_cast<Monoid>(i);
  return std::nullopt;
}

std::string_view name(DotPrecision precision) {
  constexpr std::string_view names[] = {"exact", "tf32", "two_level"};
  return names[static_cast<std::size_t>(precision)];
}

std::string_view name(OpKind kind) {
  constexpr std::string_view names[] = {
      "constant", "scalar_param", "program_id", "arange", "broadcast", "reshape",    "transpose", "cast",
      "apply",    "load",         "store",      "gather", "scatter",   "atomic_add", "reduce",    "scan",
      "argsort",  "dot",          "random",     "loop",   "branch",    "yield"};
  return names[static_cast<std::size_t>(kind)];
}

std::string to_string(const TileType& type) {
  if (type.rank() == 0) return std::string(name(type.dtype));
  return fmt::format("tile<{},[{}]>", name(type.dtype), fmt::join(type.shape, ","));
}

bool operator==(const Number& a, const Number& b) {
  const bool same_f = std::isnan(a.f)
                          ? std::isnan(b.f)
                          : std::bit_cast<std::uint64_t>(a.f) == std::bit_cast<std::uint64_t>(b.f);
  return same_f && a.i == b.i;
}

bool operator==(const Op& a, const Op& b) {
  return a.kind == b.kind && a.prim == b.prim && a.monoid == b.monoid && a.operands == b.operands &&
         a.results == b.results && a.param == b.param && a.axis == b.axis && a.order == b.order &&
         a.precision == b.precision && a.tile_dims == b.tile_dims && a.bounded == b.bounded &&
         a.masked == b.masked && a.rounded == b.rounded && a.number == b.number && a.blocks == b.blocks;
}

std::int64_t scalar_bits(DType dtype, double value) {
  if (dtype == DType::f64) return std::bit_cast<std::int64_t>(value);
  if (dtype == DType::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return float_to_int(dtype, value);
}

double scalar_value(DType dtype, std::int64_t bits) {
  if (dtype == DType::f64) return std::bit_cast<double>(bits);
  if (dtype == DType::f32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return static_cast<double>(bits);
}

std::vector<Index> grid_extents(const Kernel& kernel, const std::vector<std::int64_t>& scalars) {
  std::vector<Index> extents;
  for (const GridAxis& axis : kernel.grid) {
    Index n = 1;
    for (const GridFactor& f : axis) {
      const Index extent =
          f.extent.is_constant() ? f.extent.value : scalars.at(static_cast<std::size_t>(f.extent.scalar));
      n *= block_count(extent, f.block);
    }
    extents.push_back(n);
  }
  return extents;
}

List<ViewUse> view_uses(const Kernel& kernel) {
  List<ViewUse> uses(kernel.views.size());
  for_each_op(kernel.body, [&](const Op& op) {
    if (op.param < 0) return;
    const auto view = static_cast<std::size_t>(op.param);
    if (op.kind == OpKind::load || op.kind == OpKind::gather) uses[view].read = true;
    if (op.kind == OpKind::store || op.kind == OpKind::scatter) uses[view].written = true;
    if (op.kind == OpKind::atomic_add) uses[view].accumulated = true;
  });
  return uses;
}

}  // namespace tilewright::tile
