// Float64 references that several pairs share: layer norm of a row, gelu.
#pragma once

#include <cmath>
#include <numbers>
#include <span>

#include "pairs/host_rows.h"

namespace tilewright::lab {

inline const double kGelu = std::sqrt(2 / std::numbers::pi);
inline constexpr double kGeluCubic = 0.044715;  // Hendrycks, Gimpel: Gaussian Error Linear Units, 2016

inline double gelu_tanh(double z) { return 0.5 * z * (1 + std::tanh(kGelu * (z + kGeluCubic * z * z * z))); }

// y = (x − mean) / sqrt(variance + 1e-5) · w + b; `magnitude` gets the size of what is subtracted and added.
// Returns 1 / sqrt(variance + 1e-5).
inline double layer_norm_row(std::span<const double> x, std::span<const double> w, std::span<const double> b,
                             std::span<double> y, std::span<double> magnitude) {
  const auto n = static_cast<double>(x.size());
  double mean = 0, size = 0, variance = 0;
  for (double v : x) {
    mean += v;
    size += std::fabs(v);
  }
  mean /= n;
  size /= n;  // of the mean's terms
  for (double v : x) variance += (v - mean) * (v - mean);
  const double scale = 1 / std::sqrt(variance / n + 1e-5);
  for (std::size_t j = 0; j < x.size(); ++j) {
    y[j] = (x[j] - mean) * scale * w[j] + b[j];
    magnitude[j] = (std::fabs(x[j]) + size) * scale * std::fabs(w[j]) + std::fabs(b[j]);
  }
  return scale;
}

}  // namespace tilewright::lab
