// IndexTiles: what can be told of the elements of i64 tiles without running the kernel, as Affine tells it of
// scalars. Indices of gathers are often arange times a constant plus the start of a block.
#pragma once

#include <tilewright/tile/affine.h>

#include <map>
#include <optional>
#include <vector>

namespace tilewright::tile {

class IndexTiles {
 public:
  // Both outlive it.
  IndexTiles(const Kernel& kernel, const AffineTable& scalars) : kernel_(kernel), scalars_(scalars) {}

  // The least and the greatest element of a tile or scalar over all programs and iterations, both taken by
  // some; empty when they are not known.
  std::optional<Range> range(ValueId value);

 private:
  // Element (i, j, …) is start + steps[0] · i + steps[1] · j + …
  struct Form {
    Affine start;
    std::vector<Index> steps;
  };
  using Maybe = std::optional<Form>;
  void find_ops(const Block& block);
  const Maybe& form(ValueId value);  // found once: a value may be read by many that one reads
  Maybe form_of(const Op& op);
  Maybe stretched(const Op& op);
  Maybe reshaped(const Op& op);
  Maybe combined(const Op& op);
  static Maybe add(const Maybe& a, const Maybe& b, Index factor);
  const std::vector<Index>& shape(ValueId value) const { return kernel_.type(value).shape; }

  const Kernel& kernel_;
  const AffineTable& scalars_;
  std::map<ValueId, Maybe> forms_;
  std::vector<const Op*> ops_;  // that define the values, once one was asked for; null: an argument of a loop
};

}  // namespace tilewright::tile
