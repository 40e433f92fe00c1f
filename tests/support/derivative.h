// Which derivatives of a generated program are taken.
#pragma once

#include <cstdint>

namespace tilewright::test {

enum class Derivative : std::uint8_t { none, first, second };

}  // namespace tilewright::test
