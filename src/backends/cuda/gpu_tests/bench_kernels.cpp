// See bench_kernels.h. Medians over rounds of launches timed by device events; random data; launches take
// copies of the buffers in turn, which together are larger than the L2 cache.
#include "backends/cuda/gpu_tests/bench_kernels.h"

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/gpu_tests/must.h"
#include "support/hand_kernels.h"

#include <tilewright/base/philox.h>
#include <tilewright/tile/text.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

namespace tilewright::cuda {
namespace {

using backends::Backend;
using backends::CopyKind;
using tile::samples::HandKernel;

Index elements_of(const tile::ViewParam& v) {
  Index n = 1;
  for (const tile::Dim& d : v.extents) n *= d.value;
  return n;
}

// One random piece, then copies of it on the device.
void* make_view(Backend& backend, const tile::ViewParam& v, unsigned seed) {
  constexpr Index kPiece = 1 << 20;
  const Index n = elements_of(v), step = static_cast<Index>(size_bytes(v.dtype));
  auto* address = static_cast<std::byte*>(must(backend.allocate(static_cast<std::size_t>(n * step))));
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min(n, kPiece) * step));
  for (Index i = 0; i < std::min(n, kPiece); ++i) {
    const std::uint32_t word = philox4x32(seed, static_cast<std::uint64_t>(i))[0];
    void* at = piece.data() + i * step;
    if (is_float(v.dtype))
      store_f64(at, v.dtype, uniform_f32(word) * 4.0 - 2.0);
    else
      store_i64(at, v.dtype, word % 1000);
  }
  must(backend.copy(address, piece.data(), piece.size(), CopyKind::host_to_device));
  for (Index done = std::min(n, kPiece); done < n; done *= 2)
    must(backend.copy(address + done * step, address,
                      static_cast<std::size_t>(std::min(done, n - done) * step), CopyKind::device_to_device));
  return address;
}

// What the model proposes.
std::vector<backends::Candidate> schedules_for(const Backend& backend, const tile::Kernel& kernel) {
  std::vector<backends::Candidate> all = backend.candidates(kernel);
  std::erase_if(all, [](const auto& c) { return !c.refusal.empty(); });
  return all;
}

struct Timing {
  double median_us = 0, best_us = 0;
};
Timing time_launches(Backend& backend, backends::Program& program,
                     const std::vector<backends::LaunchArgs>& copies) {
  const backends::LaunchArgs& args = copies.front();
  must(program.launch(args));
  must(backend.synchronize());
  must(backend.timer_start());
  must(program.launch(args));
  const double once = must(backend.timer_stop_us());
  const int launches = std::clamp(static_cast<int>(5e3 / std::max(once, 1.0)), 3, 50);
  std::vector<double> rounds;
  for (int round = 0; round < 7; ++round) {
    must(backend.timer_start());
    for (int i = 0; i < launches; ++i)
      must(program.launch(copies[static_cast<std::size_t>(i) % copies.size()]));
    rounds.push_back(must(backend.timer_stop_us()) / launches);
  }
  std::sort(rounds.begin(), rounds.end());
  return {rounds[rounds.size() / 2], rounds.front()};
}

void bench(Backend& backend, const HandKernel& k, std::FILE* out) {
  constexpr double kPastCaches = 200e6;  // bytes: several times an H200's L2
  const auto sets = static_cast<std::size_t>(std::clamp(std::ceil(kPastCaches / k.bytes), 1.0, 16.0));
  std::vector<std::vector<void*>> views(sets);
  std::vector<backends::LaunchArgs> args;
  const std::vector<Index> grid = tile::grid_extents(k.kernel, k.scalars);
  for (std::vector<void*>& set : views) {
    for (std::size_t v = 0; v < k.kernel.views.size(); ++v)
      set.push_back(make_view(backend, k.kernel.views[v], static_cast<unsigned>(v) + 1));
    args.push_back({.views = set.data(), .scalars = k.scalars.data()});
    std::copy(grid.begin(), grid.end(), args.back().grid);
  }
  for (const backends::Candidate& c : schedules_for(backend, k.kernel)) {
    const auto source = backend.print(k.kernel, c.schedule);
    if (!source) {
      fmt::print(out, "{{\"kernel\":\"{}\",\"schedule\":\"{}\",\"refused\":\"{}\"}}\n", k.name,
                 to_string(c.schedule), source.error().message);
      continue;
    }
    const auto binary = must(backend.compile(k.kernel, *source));
    const auto program = must(backend.load(k.kernel, *source, binary));
    const Timing t = time_launches(backend, *program, args);
    fmt::print(
        out,
        "{{\"kernel\":\"{}\",\"schedule\":\"{}\",\"median_us\":{:.2f},\"best_us\":{:.2f},\"gb_per_s\":{:.0f},"
        "\"predicted_us\":{:.1f},\"compile_ms\":{:.1f},\"resources\":\"{}\"}}\n",
        k.name, to_string(c.schedule), t.median_us, t.best_us, k.bytes / t.median_us * 1e-3, c.predicted_us,
        binary.compile_ms, program->describe());
    std::fflush(out);
  }
  for (const std::vector<void*>& set : views)
    for (void* view : set) backend.release(view, 0);
}

// A kernel of a file.
HandKernel read_tile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) throw Error(fmt::format("cannot read {}", path));
  HandKernel out{.name = path, .kernel = must(tile::parse(text.str()))};
  for (const tile::ViewParam& v : out.kernel.views)
    out.bytes += static_cast<double>(elements_of(v)) * static_cast<double>(size_bytes(v.dtype));
  return out;
}

// Host time of a launch, and of a graph node, of a kernel that does next to nothing.
void bench_launches(Backend& backend, std::FILE* out) {
  const tile::Kernel kernel = tile::samples::elu_of(1024, 1024);
  const auto source = must(backend.print(kernel, backend.candidates(kernel).front().schedule));
  const auto program = must(backend.load(kernel, source, must(backend.compile(kernel, source))));
  void* x = must(backend.allocate(4096));
  void* y = must(backend.allocate(4096));
  void* views[] = {x, y};
  const backends::LaunchArgs args{.views = views, .grid = {1, 1, 1}};
  constexpr int kLaunches = 1000;
  std::vector<double> each;
  for (int round = 0; round < 11; ++round) {
    must(backend.synchronize());
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) must(program->launch(args));
    each.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() /
        kLaunches);
  }
  std::sort(each.begin(), each.end());
  fmt::print(out, "{{\"measure\":\"program_launch_host\",\"us\":{:.3f}}}\n", each[each.size() / 2]);
  backend.release(x, 4096);
  backend.release(y, 4096);
}

}  // namespace

void bench_kernels(const std::string& path, const std::string& only) {
  std::FILE* out = std::fopen(path.c_str(), "w");
  if (out == nullptr) throw Error(fmt::format("cannot write {}", path));
  auto backend = must(CudaBackend::open({}));
  const bool reads_file = only.ends_with(".tile");
  if (reads_file) bench(*backend, read_tile(only), out);
  for (const HandKernel& k : tile::samples::lab_kernels())
    if (k.name.find(only) != std::string::npos) bench(*backend, k, out);
  bench_launches(*backend, out);
  std::fclose(out);
}

}  // namespace tilewright::cuda
