// Whether a compiled program stores large values that it could compute again.
#pragma once

#pragma GCC visibility push(default)
namespace tilewright {

// Values that are many times larger than what they are made of, like the scores of attention in a backward
// pass, can be computed again by each kernel that reads them.
enum class Recompute {
  by_cost,  // where it is predicted to be faster, or saves memory beyond the cache for at most twice the time
  never,
  always,  // wherever they are larger than what they are made of
};

}  // namespace tilewright
#pragma GCC visibility pop
