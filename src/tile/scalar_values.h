// The integer scalars of one program, as far as they follow from its place in the grid and the arguments.
#pragma once

#include <tilewright/tile/kernel.h>

#include <optional>
#include <vector>

namespace tilewright::tile {

class ScalarValues {
 public:
  ScalarValues(const Kernel& kernel, const std::vector<std::int64_t>& scalars)
      : kernel_(kernel), scalars_(scalars), values_(kernel.values.size()) {}

  void start(const std::vector<Index>& program) { program_ = program; }
  // Its first result, if that is such a scalar.
  void evaluate(const Op& op);
  std::optional<std::int64_t>& of(ValueId id) { return values_[static_cast<std::size_t>(id)]; }

 private:
  std::optional<std::int64_t> apply(const Op& op);

  const Kernel& kernel_;
  const std::vector<std::int64_t>& scalars_;
  std::vector<Index> program_;
  std::vector<std::optional<std::int64_t>> values_;
};

}  // namespace tilewright::tile
