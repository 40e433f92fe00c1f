// Random floats for tests' inputs. The distributions of libstdc++ take two logarithms in long double for each
// number (std::generate_canonical), which was a tenth of what tests with large inputs took.
#pragma once

#include <cmath>
#include <random>

namespace tilewright::test {

// In [0, 1), with 53 random bits.
inline double random_share(std::mt19937_64& engine) { return static_cast<double>(engine() >> 11) * 0x1p-53; }

inline double random_between(std::mt19937_64& engine, double low, double high) {
  return low + (high - low) * random_share(engine);
}

// Normal numbers around 0, by the polar method of Marsaglia and Bray (SIAM Review 6, 1964), two at a time.
class RandomNormals {
 public:
  explicit RandomNormals(double deviation = 1) : deviation_(deviation) {}

  double operator()(std::mt19937_64& engine) {
    if (has_second_) {
      has_second_ = false;
      return second_;
    }
    double x, y, square;
    do {
      x = random_between(engine, -1, 1);
      y = random_between(engine, -1, 1);
      square = x * x + y * y;
    } while (square >= 1 || square == 0);
    const double scale = deviation_ * std::sqrt(-2 * std::log(square) / square);
    second_ = y * scale;
    has_second_ = true;
    return x * scale;
  }

 private:
  double deviation_, second_ = 0;
  bool has_second_ = false;
};

}  // namespace tilewright::test
