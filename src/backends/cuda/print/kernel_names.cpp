// The choice of names: none is a word of C++ or one that the device headers declare.
#include "backends/cuda/print/kernel_names.h"

#include "backends/cuda/nvrtc/device_headers.h"

#include <set>

namespace tilewright::cuda {

namespace {

// Names that printed code gives to what is no value: coordinates, pipelines and turns, the types of blocks.
constexpr std::string_view kPrinted =
    " t g r c v wide part panel block half quad group layout turn pipeline full rank A B a_blocks "
    "b_blocks parts next hop first passed store_stages step program wave fetch_program begins "
    "masked kExchanged kExchange at tw threadIdx blockIdx gridDim blockDim u8 i8 u16 i16 u32 i32 "
    "u64 i64 f32 f64 bf16 f16 f8e4m3 f8e5m2 ";

}  // namespace

bool is_reserved(std::string_view name) {
  if (name.starts_with("program_") || name.starts_with("grid_")) return true;  // and an axis
  static const std::set<std::string, std::less<>> declared = printer::declared_words(device_headers());
  return printer::is_word_of(kPrinted, name) || declared.count(name) > 0;
}

KernelNames::KernelNames(const tile::Kernel& kernel, const printer::LoopPlan& loops)
    : kernel_(kernel), hints_(kernel, loops), names_(is_reserved, printer::Names::Again::number) {
  for (const tile::ViewParam& view : kernel.views) views_.push_back(names_.unique(view.name));
  for (const tile::ScalarParam& scalar : kernel.scalars) scalars_.push_back(names_.unique(scalar.name));
}

const std::string& KernelNames::value(tile::ValueId v) {
  const auto known = values_.find(v);
  return known != values_.end() ? known->second : values_[v] = names_.unique(hints_.of_storage(v));
}

}  // namespace tilewright::cuda
