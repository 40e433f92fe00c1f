// Finds outputs that are inputs, and copies them.
#include "runtime/outputs_apart.h"

#include <algorithm>

namespace tilewright::runtime {

namespace {
bool is_among(std::span<const std::shared_ptr<Buffer>> buffers, const Buffer& b) {
  return b.bytes() > 0 && std::any_of(buffers.begin(), buffers.end(),
                                      [&](const auto& other) { return other->data() == b.data(); });
}
}  // namespace

Result<std::vector<std::shared_ptr<Buffer>>> outputs_apart(std::span<const std::shared_ptr<Buffer>> inputs,
                                                           std::span<const std::shared_ptr<Buffer>> outputs) {
  std::vector<std::shared_ptr<Buffer>> out(outputs.begin(), outputs.end());
  for (std::shared_ptr<Buffer>& b : out) {
    if (!is_among(inputs, *b)) continue;
    const std::shared_ptr<Device> device = b->shared_device();
    auto copy = Buffer::allocate(device, b->bytes());
    if (!copy) return copy.error();
    Status copied =
        device->backend().copy((*copy)->data(), b->data(), b->bytes(), backends::CopyKind::device_to_device);
    if (!copied) return copied.error();
    b = std::move(*copy);
  }
  return out;
}

std::size_t bytes_overwritten(std::span<const std::shared_ptr<Buffer>> inputs,
                              std::span<const std::shared_ptr<Buffer>> outputs) {
  std::size_t bytes = 0;
  for (const std::shared_ptr<Buffer>& b : outputs)
    if (is_among(inputs, *b)) bytes += b->bytes();
  return bytes;
}

}  // namespace tilewright::runtime
