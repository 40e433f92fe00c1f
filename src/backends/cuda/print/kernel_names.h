// KernelNames: what a printed kernel calls its parameters and values, and every other name of its text.
#pragma once

#include "backends/printer/names.h"
#include "backends/printer/value_names.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::cuda {

// Whether printed code uses the word itself: what the device headers define, and what pipelines write.
bool is_reserved(std::string_view name);

class KernelNames {
 public:
  KernelNames(const tile::Kernel& kernel, const printer::LoopPlan& loops);

  // Parameters.
  const std::string& view(int i) const { return views_[static_cast<std::size_t>(i)]; }
  // Beginning of the names of what belongs to a parameter: "q" of q_block, q_ring.
  const std::string& stem(int view) const { return kernel_.views[static_cast<std::size_t>(view)].name; }
  const std::string& scalar(int i) const { return scalars_[static_cast<std::size_t>(i)]; }
  // The variable or the registers that a value lives in: one name from its first use on.
  const std::string& value(tile::ValueId v);
  void set_value(tile::ValueId v, std::string name) { values_[v] = std::move(name); }
  // What describes a value, for a variable that is declared here alone.
  const std::string& hint(tile::ValueId v) const { return hints_[v]; }

  // Any other name; one that ends with its block is given back there (Text::local).
  std::string unique(std::string_view wish) { return names_.unique(wish); }
  void release(const std::string& name) { names_.release(name); }

 private:
  const tile::Kernel& kernel_;
  const printer::ValueNames hints_;
  printer::Names names_;
  std::vector<std::string> views_, scalars_;
  std::map<tile::ValueId, std::string> values_;
};

}  // namespace tilewright::cuda
