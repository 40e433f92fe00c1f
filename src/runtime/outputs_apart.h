// Memory for trials of a program that writes over what it reads: it would find other values each time.
#pragma once

#include "runtime/device.h"

#include <span>
#include <vector>

namespace tilewright::runtime {

// The outputs, but copies of those that are inputs as well: they hold what the inputs do.
Result<std::vector<std::shared_ptr<Buffer>>> outputs_apart(std::span<const std::shared_ptr<Buffer>> inputs,
                                                           std::span<const std::shared_ptr<Buffer>> outputs);
// Bytes of outputs that are inputs as well.
std::size_t bytes_overwritten(std::span<const std::shared_ptr<Buffer>> inputs,
                              std::span<const std::shared_ptr<Buffer>> outputs);

}  // namespace tilewright::runtime
