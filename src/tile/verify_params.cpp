// The verifier's view of what stands before the body: names, views, scalars, the grid, the types of values.
#include <fmt/format.h>

#include <cmath>
#include <set>
#include <string_view>

#include "tile/rules.h"
#include "tile/verify_parts.h"

namespace tilewright::tile {

namespace {

std::string check_dim(const Kernel& kernel, const Dim& dim) {
  if (dim.scalar < -1) return fmt::format("scalar parameter {} does not exist", dim.scalar);
  if (dim.is_constant()) return "";
  if (dim.scalar >= static_cast<int>(kernel.scalars.size()))
    return fmt::format("scalar parameter {} does not exist", dim.scalar);
  const ScalarParam& scalar = kernel.scalars[static_cast<std::size_t>(dim.scalar)];
  if (dim.value != 0) return fmt::format("the size %{} has a value too", scalar.name);
  if (scalar.dtype != DType::i64)
    return fmt::format("%{} is {}, sizes are i64", scalar.name, name(scalar.dtype));
  return "";
}

std::string check_view(const Kernel& kernel, const ViewParam& view) {
  if (view.rank() > kMaxViewRank) return fmt::format("rank {} is above {}", view.rank(), kMaxViewRank);
  if (view.strides.size() != view.extents.size())
    return fmt::format("{} strides for {} extents", view.strides.size(), view.extents.size());
  if (view.align_bytes < 1 || (view.align_bytes & (view.align_bytes - 1)) != 0)
    return fmt::format("alignment {} is not a power of two", view.align_bytes);
  double span = 1;
  for (std::size_t i = 0; i < view.extents.size(); ++i) {
    for (const Dim& d : {view.extents[i], view.strides[i]})
      if (std::string problem = check_dim(kernel, d); !problem.empty()) return problem;
    const Dim &extent = view.extents[i], &stride = view.strides[i];
    if (extent.is_constant() && extent.value < 0) return fmt::format("extent {} is negative", extent.value);
    const double steps = extent.is_constant() ? static_cast<double>(extent.value) : 1;
    const double step = stride.is_constant() ? std::abs(static_cast<double>(stride.value)) : 1;
    span += steps * std::max(step, 1.0);
  }
  if (span > static_cast<double>(kMaxViewSpan)) return "it reaches further than 2^48 elements";
  return "";
}

std::string check_grid(const Kernel& kernel) {
  if (kernel.grid.empty() || kernel.grid.size() > kMaxGridAxes)
    return fmt::format("a grid has 1 to {} axes, not {}", kMaxGridAxes, kernel.grid.size());
  for (const GridAxis& axis : kernel.grid) {
    if (axis.empty()) return "an axis of the grid has no size";
    double programs = 1;
    for (const GridFactor& f : axis) {
      if (std::string problem = check_dim(kernel, f.extent); !problem.empty()) return "grid: " + problem;
      if (f.block < 1) return fmt::format("grid: the block {} is not positive", f.block);
      if (!f.extent.is_constant()) continue;
      if (f.extent.value < 0) return fmt::format("grid: the extent {} is negative", f.extent.value);
      programs *= std::max(1.0, static_cast<double>(block_count(f.extent.value, f.block)));
    }
    constexpr double kMaxPrograms = 2147483647;  // what CUDA launches along its first axis
    if (programs > kMaxPrograms) return "grid: an axis has more than 2^31 - 1 programs";
  }
  return "";
}

// Views, scalars and values share one set of names, so that a text reads without rules of precedence.
class Names {
 public:
  std::string add(const std::string& name) {
    if (!is_identifier(name)) return fmt::format("\"{}\" is not a name (letters, digits, _ and .)", name);
    if (!seen_.insert(name).second) return fmt::format("the name %{} is used twice", name);
    return "";
  }

 private:
  std::set<std::string_view> seen_;
};

}  // namespace

std::string check_params(const Kernel& kernel) {
  if (!is_identifier(kernel.name)) return fmt::format("\"{}\" is not a name for a kernel", kernel.name);
  Names names, constants;
  for (const ViewParam& view : kernel.views) {
    if (std::string problem = names.add(view.name); !problem.empty()) return problem;
    if (std::string problem = check_view(kernel, view); !problem.empty())
      return fmt::format("view %{}: {}", view.name, problem);
  }
  for (const ScalarParam& scalar : kernel.scalars) {
    if (std::string problem = names.add(scalar.name); !problem.empty()) return problem;
    if (scalar.dtype != DType::i64 && scalar.dtype != DType::f32 && scalar.dtype != DType::f64)
      return fmt::format("scalar %{}: {} is not one of i64, f32, f64", scalar.name, name(scalar.dtype));
  }
  for (const ConstParam& constant : kernel.constants)
    if (std::string problem = constants.add(constant.name); !problem.empty()) return problem;
  if (std::string problem = check_grid(kernel); !problem.empty()) return problem;
  if (kernel.together < 1 || kernel.together > kMostTogether)
    return fmt::format("launches run together 1 to {} at once", kMostTogether);
  for (const ValueInfo& value : kernel.values)
    if (!value.name.empty())
      if (std::string problem = names.add(value.name); !problem.empty()) return problem;
  return "";
}

}  // namespace tilewright::tile
