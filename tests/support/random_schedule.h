// Random CUDA schedules of every kind: few fit a kernel, and those that do must be right.
#pragma once

#include <tilewright/tile/schedule.h>

#include <cstdint>

namespace tilewright::test {

// The same seed gives the same schedule.
tile::Schedule random_schedule(std::uint64_t seed);

}  // namespace tilewright::test
