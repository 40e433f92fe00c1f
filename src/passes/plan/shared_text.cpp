// Kernels compared without their names, and names taken over from the first of equal ones.
#include "passes/plan/shared_text.h"

#include <algorithm>
#include <utility>

namespace tilewright::passes {

namespace {

std::size_t fingerprint(const tile::Kernel& kernel) {
  std::size_t hash = kernel.values.size();
  const auto mix = [&hash](std::size_t value) { hash = hash * 1099511628211U + value; };  // FNV's prime
  mix(kernel.views.size());
  for (const tile::ViewParam& v : kernel.views)
    for (const tile::Dim& d : v.extents) mix(static_cast<std::size_t>(d.value));
  tile::for_each_op(kernel.body, [&](const tile::Op& op) {
    mix(static_cast<std::size_t>(op.kind));
    mix(static_cast<std::size_t>(op.prim));
    mix(static_cast<std::size_t>(op.number.i));
  });
  return hash;
}

}  // namespace

void take_names(tile::Kernel& kernel, const tile::Kernel& first) {
  kernel.name = first.name;
  for (std::size_t i = 0; i < std::min(first.views.size(), kernel.views.size()); ++i)
    kernel.views[i].name = first.views[i].name;
}

void SharedText::name_like_its_equal(tile::Kernel& kernel, const std::vector<tile::Kernel>& known) {
  const std::size_t hash = fingerprint(kernel);
  for (auto [at, end] = places_.equal_range(hash); at != end; ++at) {
    const tile::Kernel& first = known[at->second];
    tile::Kernel renamed = kernel;
    take_names(renamed, first);
    if (renamed == first) {
      kernel = std::move(renamed);
      return;
    }
  }
  places_.insert({hash, known.size()});
}

}  // namespace tilewright::passes
