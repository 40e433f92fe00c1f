// An order of things that is known at every place without the places before it.
#pragma once

#include <tilewright/tensor/tensor.h>

#include <cstdint>

#pragma GCC visibility push(default)
namespace tilewright::nn {

// A bijection of 0 … size - 1, another for each seed and epoch: a Feistel network whose rounds are Philox,
// over the next even power of two, walked until it lands below `size` (Black and Rogaway, "Ciphers with
// arbitrary finite domains", 2002).
class Permutation {
 public:
  // Throws Error where the size is below 1.
  Permutation(Index size, std::uint64_t seed, std::uint64_t epoch,
              const Location& where = Location::current());
  Index size() const { return size_; }
  // What stands at a place. Throws Error on one that is not below the size.
  Index operator()(Index place, const Location& where = Location::current()) const;

 private:
  Index size_;
  int half_bits_ = 1;
  std::uint64_t seed_, epoch_;
};

}  // namespace tilewright::nn
#pragma GCC visibility pop
