// Predicted times of a plan's kernels. Those of a network's layers come again, and are priced once.
#pragma once

#include <tilewright/tile/kernel.h>
#include <tilewright/tile/target.h>

#include <map>
#include <string_view>
#include <utility>

namespace tilewright::passes {

class KernelPrices {
 public:
  explicit KernelPrices(const tile::Target& target) : target_(target) {}  // one that predicts
  double us(const tile::Kernel& kernel) {                                 // which must stay where it is
    auto& [like, us] = known_[kernel.name];
    if (like == nullptr || !(*like == kernel)) like = &kernel, us = target_.predicted_us(kernel, target_);
    return us;
  }

 private:
  const tile::Target& target_;
  std::map<std::string_view, std::pair<const tile::Kernel*, double>> known_;
};

}  // namespace tilewright::passes
