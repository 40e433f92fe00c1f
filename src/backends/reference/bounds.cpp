// Error bounds of what lies in memory.
#include "backends/reference/bounds_context.h"
#include "backends/reference/short_forms.h"

#include <algorithm>
#include <limits>

namespace tilewright::reference {

using tile::Block;
using tile::Kernel;
using tile::Op;
using tile::OpKind;

namespace {

// Calls fn(tile element, offset in the view) for the part of a block that lies inside the view.
template <class Fn>
void for_each_inside(const BlockWalk& walk, Fn&& fn) {
  for (Index r = walk.outer.begin; r < walk.outer.end; ++r)
    for (Index c = walk.inner.begin; c < walk.inner.end; ++c)
      fn(static_cast<std::size_t>(r * walk.inner.extent + c),
         walk.offset + r * walk.outer.stride + c * walk.inner.stride);
}

// An undecided value may be anything in memory, a bool too.
double stored_error(DType dtype, double value, double error) {
  if (error == 0) return 0;
  if (!is_float(dtype)) return kInfinity;
  // The value here is rounded by the store; the backend's was rounded when it was computed.
  return error + half_spacing(dtype, value);
}

}  // namespace

BoundsTracker::BoundsTracker(const Kernel& kernel, const std::vector<BoundView>& views,
                             const std::vector<ViewBinding>& bindings, ErrorModel model)
    : kernel_(kernel), model_(model), short_forms_(short_form_errors(kernel)), views_(views.size()) {
  const std::vector<tile::ViewUse> uses = view_uses(kernel);
  for (std::size_t v = 0; v < views.size(); ++v) {
    ViewErrors& errors = views_[v];
    errors.dtype = views[v].param->dtype;
    errors.origin = static_cast<std::size_t>(bindings[v].before_bytes / views[v].element_bytes);
    const auto size = static_cast<std::size_t>((bindings[v].before_bytes + bindings[v].extent_bytes) /
                                               views[v].element_bytes);
    if (uses[v].written || uses[v].accumulated) errors.error.assign(size, 0);
    if (uses[v].accumulated) {
      errors.magnitude.assign(size, 0);
      errors.count.assign(size, 0);
    }
  }
}

bool BoundsTracker::starts_undecided(const Op& op, const Values& values) const {
  const std::size_t first = op.kind == OpKind::store ? 1 : 0;
  return std::any_of(op.operands.begin() + static_cast<std::ptrdiff_t>(first), op.operands.end(),
                     [&](tile::ValueId id) { return at(values, id).error[0] != 0; });
}

void BoundsTracker::load(const Op& op, const BlockWalk& walk, Values& values) const {
  const ViewErrors& errors = errors_of(op);
  std::vector<double>& result = at(values, op.results[0]).error;
  result.assign(static_cast<std::size_t>(walk.outer.extent * walk.inner.extent), 0);
  if (starts_undecided(op, values) || errors.undecided) {
    std::fill(result.begin(), result.end(), kInfinity);
  } else if (!errors.error.empty()) {
    for_each_inside(walk, [&](std::size_t n, Index offset) {
      result[n] = errors.error[errors.origin + static_cast<std::size_t>(offset)];
    });
  }
}

void BoundsTracker::store(const Op& op, const BlockWalk& walk, const Values& values) {
  ViewErrors& errors = errors_of(op);
  if (starts_undecided(op, values)) errors.undecided = true;
  const Tile& value = at(values, op.operands[0]);
  for_each_inside(walk, [&](std::size_t n, Index offset) {
    const double held = is_float(errors.dtype) ? value.f[n] : 0;
    errors.at(errors.error, offset) = stored_error(errors.dtype, held, value.error[n]);
  });
}

void BoundsTracker::gather(const Op& op, const BoundView& view, Values& values) const {
  const ViewErrors& errors = errors_of(op);
  std::vector<double>& result = at(values, op.results[0]).error;
  result.assign(static_cast<std::size_t>(kernel_.type(op.results[0]).size()), 0);
  if (!errors.error.empty())
    for_each_indexed(kernel_, op, view, values, [&](std::size_t n, Index offset) {
      result[n] = errors.error[errors.origin + static_cast<std::size_t>(offset)];
    });
  for (tile::ValueId id : op.operands)
    for (std::size_t n = 0; n < result.size(); ++n)
      if (at(values, id).error[n] != 0 || errors.undecided) result[n] = kInfinity;
}

void BoundsTracker::scatter(const Op& op, const BoundView& view, const Values& values) {
  ViewErrors& errors = errors_of(op);
  const Tile& value = at(values, op.operands[0]);
  for (std::size_t i = 1; i < op.operands.size(); ++i)
    for (double e : at(values, op.operands[i]).error) errors.undecided |= e != 0;
  for_each_indexed(kernel_, op, view, values, [&](std::size_t n, Index offset) {
    const double held = is_float(errors.dtype) ? value.f[n] : 0;
    errors.at(errors.error, offset) = stored_error(errors.dtype, held, value.error[n]);
  });
}

void BoundsTracker::atomic_add(const Op& op, const BoundView& view, const Values& values) {
  ViewErrors& errors = errors_of(op);
  const Tile& value = at(values, op.operands[0]);
  for (std::size_t i = 1; i < op.operands.size(); ++i)
    for (double e : at(values, op.operands[i]).error) errors.undecided |= e != 0;
  for_each_indexed(kernel_, op, view, values, [&](std::size_t n, Index offset) {
    double& error = errors.at(errors.error, offset);
    if (!is_float(errors.dtype)) {
      if (value.error[n] != 0) error = kInfinity;
      return;
    }
    // What was there before the first addition takes part in the sum too.
    double& count = errors.at(errors.count, offset);
    double& magnitude = errors.at(errors.magnitude, offset);
    if (count == 0) magnitude = std::abs(load_f64(view.data + offset * view.element_bytes, errors.dtype));
    error += value.error[n];
    magnitude += std::abs(value.f[n]);
    ++count;
  });
}

void BoundsTracker::undecided(const std::vector<Block>& blocks) {
  for (const Block& block : blocks)
    for_each_op(block, [&](const Op& op) {
      const bool writes =
          op.kind == OpKind::store || op.kind == OpKind::scatter || op.kind == OpKind::atomic_add;
      if (writes) errors_of(op).undecided = true;
    });
}

ErrorBounds BoundsTracker::finish() {
  ErrorBounds bounds;
  for (ViewErrors& errors : views_) {
    // Roundings of atomic additions: one each here and one each in the backend, whose order may be another.
    for (std::size_t n = 0; n < errors.count.size(); ++n)
      if (errors.count[n] > 0 && is_float(errors.dtype)) {
        const double size = errors.magnitude[n] + errors.error[n];
        errors.error[n] += 2 * errors.count[n] * unit_roundoff(errors.dtype) * size;
        if (!(size <= max_finite(errors.dtype))) errors.error[n] = kInfinity;
      }
    if (errors.undecided) std::fill(errors.error.begin(), errors.error.end(), kInfinity);
    bounds.views.push_back(std::move(errors.error));
  }
  return bounds;
}

}  // namespace tilewright::reference
