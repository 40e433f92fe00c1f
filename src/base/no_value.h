// What is said of every handle without a value: a Tensor, a value or a view of a tile kernel, a function that
// was moved from.
#pragma once

namespace tilewright {

inline constexpr const char* kNoValue = "was never given a value, or was moved from";

}  // namespace tilewright
