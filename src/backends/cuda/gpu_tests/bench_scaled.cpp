// See bench_scaled.h. Random values of the type's whole range; medians over rounds of launches timed by
// device events.
#include "backends/cuda/gpu_tests/bench_scaled.h"

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/gpu_tests/bench_tools.h"
#include "support/scaled_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

namespace tilewright::cuda {
namespace {

using backends::Backend;
using backends::CopyKind;
using tile::Schedule;
using tile::samples::ScaledKernel;

constexpr Index kScaleBlock = 128;

struct ScaledProblem {
  std::string name;
  Index m, n, k;
};
struct ScaledWay {
  std::string name;
  Index block_m;
  bool one_scale = false;
  Schedule schedule;
};

std::vector<ScaledWay> scaled_ways() {
  const auto way = [](std::string name, Index block_m, int stages, int group_m) {
    return ScaledWay{std::move(name),
                     block_m,
                     false,
                     {.threads = 256, .kind = tile::WgmmaScaled{.stages = stages, .group_m = group_m}}};
  };
  std::vector<ScaledWay> all;
  for (const int group_m : {16, 8}) all.push_back(way("128 rows", 128, 6, group_m));
  for (const int group_m : {8, 4}) all.push_back(way("256 rows in halves", 256, 4, group_m));
  for (std::size_t i = 0; i < 4; ++i) {
    all.push_back(all[i]);
    all.back().name += ", b shared by two";
    std::get<tile::WgmmaScaled>(all.back().schedule.kind).cluster = 2;
  }
  for (std::size_t i = 0; i < 8; i += 2) {  // without what scales cost
    all.push_back(all[i]);
    all.back().one_scale = true;
  }
  return all;
}

class ScaledBench {
 public:
  ScaledBench(Backend& backend, const ScaledProblem& p, std::FILE* out)
      : backend_(backend), p_(p), out_(out) {
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    std::vector<std::uint8_t> table(1 << 16);
    for (std::uint8_t& t : table) store_f64(&t, DType::f8e4m3, 16 * normal(random));
    for (std::vector<std::uint8_t>* m : {&a_, &b_}) {
      m->resize(static_cast<std::size_t>((m == &a_ ? p.m : p.n) * p.k));
      for (std::size_t i = 0; i < m->size(); i += 4) {
        const std::uint64_t word = random();
        for (std::size_t j = 0; j < 4; ++j) (*m)[i + j] = table[word >> (16 * j) & 0xffff];
      }
    }
    scale_a_.resize(static_cast<std::size_t>(p.k / kScaleBlock * p.m));
    scale_b_.resize(static_cast<std::size_t>(p.k / kScaleBlock * ceil_div(p.n, kScaleBlock)));
    for (std::vector<float>* s : {&scale_a_, &scale_b_})
      for (float& v : *s) v = 0.02f + 0.002f * normal(random);
    c_.resize(static_cast<std::size_t>(p.m * p.n));
    views_ = {put(a_), put(b_), put(scale_a_), put(scale_b_), put(c_)};
  }
  ~ScaledBench() {
    for (void* v : views_) backend_.release(v, 0);
  }

  void run(const ScaledWay& w) {
    const tile::Kernel kernel = tile::samples::scaled_product(
        {.m = p_.m, .n = p_.n, .k = p_.k, .block_m = w.block_m, .one_scale = w.one_scale});
    const std::string what = fmt::format("\"problem\":\"{}\",\"way\":\"{}{}\",\"schedule\":\"{}\"", p_.name,
                                         w.name, w.one_scale ? ", one scale" : "", to_string(w.schedule));
    const auto source = backend_.print(kernel, w.schedule);
    if (!source) return fmt::print(out_, "{{{},\"refused\":\"{}\"}}\n", what, source.error().message);
    const auto binary = backend_.compile(kernel, *source);
    if (!binary) return fmt::print(out_, "{{{},\"refused\":\"does not compile\"}}\n", what);
    const auto program = must_have(backend_.load(kernel, *source, *binary));
    backends::LaunchArgs args{.views = views_.data()};
    const std::vector<Index> grid = tile::grid_extents(kernel, {});
    std::copy(grid.begin(), grid.end(), args.grid);
    must_have(backend_.fill(views_[4], {0xff}, c_.size() * 2));
    must_have(program->launch(args));
    const double error = worst_error(w.one_scale);
    const double us = launch_us(backend_, *program, args);
    const double flops =
        2 * static_cast<double>(p_.m) * static_cast<double>(p_.n) * static_cast<double>(p_.k);
    fmt::print(out_, "{{{},\"us\":{:.2f},\"tflops\":{:.1f},\"error\":{:.4f},\"resources\":\"{}\"}}\n", what,
               us, flops / us * 1e-6, error, program->describe());
    std::fflush(out_);
  }

 private:
  template <class T>
  void* put(const std::vector<T>& values) {
    void* at = must_have(backend_.allocate(values.size() * sizeof(T)));
    must_have(backend_.copy(at, values.data(), values.size() * sizeof(T), CopyKind::host_to_device));
    return at;
  }

  // The worst error of 500 elements, in units of the likely size of a sum.
  double worst_error(bool one_scale) {
    must_have(backend_.copy(c_.data(), views_[4], c_.size() * 2, CopyKind::device_to_host));
    std::mt19937_64 random(4);
    const Index blocks = p_.k / kScaleBlock;
    double worst = 0;
    for (int i = 0; i < 500; ++i) {
      const Index row = static_cast<Index>(random() % static_cast<std::uint64_t>(p_.m));
      const Index column = static_cast<Index>(random() % static_cast<std::uint64_t>(p_.n));
      double sum = 0, squares = 0;
      for (Index k = 0; k < p_.k; ++k) {
        const Index at = one_scale ? 0 : k / kScaleBlock;
        const double scale = double(scale_a_[static_cast<std::size_t>(at * p_.m + row)]) *
                             double(scale_b_[static_cast<std::size_t>(column / kScaleBlock * blocks + at)]);
        const double term = scale * load_f64(&a_[static_cast<std::size_t>(row * p_.k + k)], DType::f8e4m3) *
                            load_f64(&b_[static_cast<std::size_t>(column * p_.k + k)], DType::f8e4m3);
        sum += term, squares += term * term;
      }
      const double got = bf16_value(c_[static_cast<std::size_t>(row * p_.n + column)]);
      const double error = std::abs(got - sum) / std::sqrt(squares);
      worst = error >= worst ? error : error != error ? 1e30 : worst;
    }
    return worst;
  }

  Backend& backend_;
  const ScaledProblem& p_;
  std::FILE* out_;
  std::vector<std::uint8_t> a_, b_;
  std::vector<float> scale_a_, scale_b_;
  std::vector<std::uint16_t> c_;  // bf16
  std::vector<void*> views_;
};

}  // namespace

void bench_scaled(const std::string& path, const std::string& only) {
  std::FILE* out = std::fopen(path.c_str(), "w");
  if (out == nullptr) throw Error(fmt::format("cannot write {}", path));
  auto backend = must_have(CudaBackend::open({}));
  const ScaledProblem problems[] = {{"4096x7168x16384", 4096, 7168, 16384}, {"4096^3", 4096, 4096, 4096}};
  for (const ScaledProblem& p : problems) {
    if (p.name.find(only) == std::string::npos) continue;
    ScaledBench bench(*backend, p, out);
    for (const ScaledWay& w : scaled_ways()) bench.run(w);
  }
  std::fclose(out);
}

}  // namespace tilewright::cuda
