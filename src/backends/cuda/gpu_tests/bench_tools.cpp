// See bench_tools.h.
#include "backends/cuda/gpu_tests/bench_tools.h"

#include <algorithm>
#include <random>

namespace tilewright::cuda {

using backends::Backend;
using backends::CopyKind;

// Drawn from a table, which is quick enough for gigabytes.
Matrix random_matrix(Backend& backend, Index elements, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> table(1 << 16);
  for (std::uint16_t& t : table) store_f64(&t, DType::bf16, normal(random));
  Matrix m;
  m.host.resize(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < m.host.size(); i += 4) {
    const std::uint64_t word = random();
    for (std::size_t j = 0; j < 4 && i + j < m.host.size(); ++j)
      m.host[i + j] = table[word >> (16 * j) & 0xffff];
  }
  m.device = must_have(backend.allocate(m.host.size() * 2));
  must_have(backend.copy(m.device, m.host.data(), m.host.size() * 2, CopyKind::host_to_device));
  return m;
}

double bf16_value(std::uint16_t bits) { return load_f64(&bits, DType::bf16); }

double round_us(Backend& backend, backends::Program& program, const backends::LaunchArgs& args) {
  // Short bursts run at either of two clocks, 10 % apart (docs/notes/2026-11-21-h200-gemm.md): a round is
  // long.
  constexpr double kRoundUs = 100e3;
  must_have(backend.timer_start());
  for (int i = 0; i < 3; ++i) must_have(program.launch(args));
  const double once = must_have(backend.timer_stop_us()) / 3;
  const int launches = std::clamp(static_cast<int>(kRoundUs / std::max(once, 1.0)), 3, 4000);
  must_have(backend.timer_start());
  for (int i = 0; i < launches; ++i) must_have(program.launch(args));
  return must_have(backend.timer_stop_us()) / launches;
}

double launch_us(Backend& backend, backends::Program& program, const backends::LaunchArgs& args) {
  std::vector<double> rounds(7);
  for (double& us : rounds) us = round_us(backend, program, args);
  std::sort(rounds.begin(), rounds.end());
  return rounds[rounds.size() / 2];
}

}  // namespace tilewright::cuda
