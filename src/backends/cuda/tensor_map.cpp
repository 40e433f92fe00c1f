// cuTensorMapEncodeTiled, and the memory of what it made.
#include "backends/cuda/tensor_map.h"

#include <fmt/format.h>

namespace tilewright::cuda {

namespace {

// cuda.h: CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion.
constexpr int kUint8 = 0, kInt32 = 3, kFloat16 = 6, kFloat32 = 7, kBfloat16 = 9, kTfloat32 = 11,
              kSwizzle128Bytes = 3, kPromote256Bytes = 3;
constexpr std::size_t kMaxMade = 256;  // of one block: then all are forgotten

// The copy engine's name of a type: it knows 8-bit types by their size alone, and rounds f32 operands for
// tensor cores, which alone read what it brings.
int data_type(DType dtype, const TensorBlock& block) {
  if (dtype == DType::f32) return block.is_exact ? kFloat32 : kTfloat32;
  if (dtype == DType::i32) return kInt32;
  return size_bytes(dtype) == 1 ? kUint8 : dtype == DType::bf16 ? kBfloat16 : kFloat16;
}

}  // namespace

TensorMaps::TensorMaps(const tile::Kernel& kernel, const tile::Schedule& schedule) {
  for (TensorBlock& block : tensor_blocks(kernel, schedule)) {
    const tile::ViewParam& view = kernel.views[static_cast<std::size_t>(block.view)];
    blocks_.push_back({std::move(block), view});
  }
  made_.resize(blocks_.size());
}

Result<const api::TensorMap*> TensorMaps::get(const Driver& driver, std::size_t i, void* const* views,
                                              const std::int64_t* scalars) {
  const Block& b = blocks_[i];
  std::vector<std::int64_t> key{reinterpret_cast<std::int64_t>(views[b.block.view])};
  for (int d : b.block.dims) key.push_back(b.view.extents[static_cast<std::size_t>(d)].in(scalars));
  const auto found = made_[i].find(key);
  if (found != made_[i].end()) return &found->second;
  if (made_[i].size() >= kMaxMade) made_[i].clear();
  api::TensorMap* const map = &made_[i][key];
  if (auto s = encode(driver, b, key, map); !s) {
    made_[i].erase(key);
    return s.error();
  }
  return map;
}

// Writes to `map` rather than return it: a map is aligned more strictly than values that functions return.
Status TensorMaps::encode(const Driver& driver, const Block& b, const std::vector<std::int64_t>& key,
                          api::TensorMap* map) {
  const std::size_t rank = b.block.dims.size();
  std::vector<std::uint64_t> extents(rank), strides(rank);
  std::vector<std::uint32_t> box(rank), steps(rank, 1);
  for (std::size_t i = 0; i < rank; ++i) {
    const tile::Dim& stride = b.view.strides[static_cast<std::size_t>(b.block.dims[i])];
    extents[i] = static_cast<std::uint64_t>(key[i + 1]);
    box[i] = static_cast<std::uint32_t>(b.block.box[i]);
    strides[i] = static_cast<std::uint64_t>(stride.value) * size_bytes(b.view.dtype);
  }
  const auto result = driver.tensor_map_encode_tiled(
      map, data_type(b.view.dtype, b.block), static_cast<std::uint32_t>(rank),
      reinterpret_cast<void*>(key[0]), extents.data(), strides.data() + 1, box.data(), steps.data(),
      /*interleave=*/0, kSwizzle128Bytes, kPromote256Bytes, /*oob_fill=*/0);
  return check(driver, result, fmt::format("cuTensorMapEncodeTiled of {}", b.view.name));
}

}  // namespace tilewright::cuda
