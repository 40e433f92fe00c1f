// How much each cache in memory may hold; `tw doctor` says it.
#pragma once

#include <cstddef>

namespace tilewright::detail {

// Specialisations of one compiled function: types and shapes of arguments.
inline constexpr std::size_t kMostSpecialisations = 64;
// Structures of its arguments: lengths of lists, and values of numbers. Each has specialisations.
inline constexpr std::size_t kMostStructures = 64;
// Programs of one of them, by what into() writes over.
inline constexpr std::size_t kMostPrograms = 8;
// Programs of one device, eager operations' and compiled functions', about 40 kB each without their
// temporaries; and the temporaries of all of them.
inline constexpr std::size_t kMostGraphs = 512;
inline constexpr std::size_t kMostTemporaryBytes = std::size_t{1} << 30;
// Numbers beside tensors in eager operations on one device.
inline constexpr std::size_t kMostLiterals = 256;

}  // namespace tilewright::detail
