// For this folder's tests: a kernel on the CPU backend against the reference interpreter, every element of
// every written view within the bound that rounding allows.
#pragma once

#include <gtest/gtest.h>

#include <tilewright/base/philox.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/host.h"
#include "backends/reference/interpreter.h"

namespace tilewright::cpu::testing {

// The buffer behind a view, with guards around it.
struct HostView {
  std::vector<unsigned char> bytes;
  std::size_t origin = 0;  // of coordinate (0, …, 0)
  static constexpr std::size_t kGuard = 256;
};

inline Index dim_value(const tile::Dim& d, const std::vector<std::int64_t>& scalars) {
  return d.is_constant() ? d.value : scalars.at(static_cast<std::size_t>(d.scalar));
}

struct InputRange {
  double low = -2, high = 2;
};

inline HostView make_view(const tile::ViewParam& view, const std::vector<std::int64_t>& scalars, int seed,
                          InputRange range) {
  Index low = 0, high = 0;
  for (int d = 0; d < view.rank(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    const Index reach = (dim_value(view.extents[i], scalars) - 1) * dim_value(view.strides[i], scalars);
    (reach < 0 ? low : high) += reach;
  }
  const std::size_t element = size_bytes(view.dtype);
  const auto count = static_cast<std::size_t>(high - low + 1);
  HostView h;
  h.bytes.assign(count * element + 2 * HostView::kGuard, 0xA5);
  h.origin = HostView::kGuard + static_cast<std::size_t>(-low) * element;
  for (std::size_t i = 0; i < count; ++i) {
    const double u = uniform_f32(philox4x32(static_cast<std::uint64_t>(seed), i)[0]);
    unsigned char* at = h.bytes.data() + HostView::kGuard + i * element;
    if (is_bool(view.dtype))
      store_i64(at, view.dtype, u < 0.5);
    else if (is_integer(view.dtype))
      store_i64(at, view.dtype,
                static_cast<std::int64_t>(std::floor(range.low + (range.high - range.low) * u)));
    else
      store_f64(at, view.dtype, range.low + (range.high - range.low) * u);
  }
  return h;
}

struct ParityOptions {
  std::vector<std::int64_t> scalars = {};
  tile::Schedule schedule = {.unroll = 4};
  std::vector<InputRange> ranges = {};  // per view
};

// Fails the test with the text of the kernel where an element is further off than rounding explains.
inline void expect_parity(backends::Backend& backend, const tile::Kernel& kernel,
                          ParityOptions options = {}) {
  auto source = backend.print(kernel, options.schedule);
  ASSERT_TRUE(source.ok()) << source.error().message;
  SCOPED_TRACE("\n" + source->text);
  auto binary = backend.compile(kernel, *source);
  ASSERT_TRUE(binary.ok()) << binary.error().message;
  auto program = backend.load(kernel, *source, *binary);
  ASSERT_TRUE(program.ok()) << program.error().message;

  std::vector<HostView> got, want;
  for (std::size_t v = 0; v < kernel.views.size(); ++v) {
    const InputRange range = v < options.ranges.size() ? options.ranges[v] : InputRange{};
    got.push_back(make_view(kernel.views[v], options.scalars, static_cast<int>(v) + 1, range));
  }
  want = got;
  std::vector<void*> views;
  std::vector<reference::ViewBinding> bindings;
  for (std::size_t v = 0; v < got.size(); ++v) {
    views.push_back(got[v].bytes.data() + got[v].origin);
    bindings.push_back(
        {.data = want[v].bytes.data() + want[v].origin,
         .extent_bytes = static_cast<Index>(want[v].bytes.size() - want[v].origin - HostView::kGuard),
         .before_bytes = static_cast<Index>(want[v].origin - HostView::kGuard)});
  }
  const auto bounds = reference::run_with_bounds(kernel, bindings, options.scalars);
  ASSERT_TRUE(bounds.ok()) << bounds.error().message;
  backends::LaunchArgs args{.views = views.data(), .scalars = options.scalars.data()};
  const std::vector<Index> grid = tile::grid_extents(kernel, options.scalars);
  std::copy(grid.begin(), grid.end(), args.grid);
  ASSERT_TRUE((*program)->launch(args).ok());

  for (std::size_t v = 0; v < got.size(); ++v) {
    const DType dtype = kernel.views[v].dtype;
    const std::size_t element = size_bytes(dtype);
    const std::vector<double>& bound = bounds->views[v];
    const std::size_t count = (got[v].bytes.size() - 2 * HostView::kGuard) / element;
    for (std::size_t i = 0; i < count; ++i) {
      const unsigned char* a = got[v].bytes.data() + HostView::kGuard + i * element;
      const unsigned char* b = want[v].bytes.data() + HostView::kGuard + i * element;
      if (std::memcmp(a, b, element) == 0) continue;
      const double x = load_f64(a, dtype), y = load_f64(b, dtype);
      if (std::isnan(x) && std::isnan(y)) continue;
      double most = bound.empty() ? 0 : bound[i];
      // The reference computes f64 in f64: its own roundings are not in the bound.
      if (dtype == DType::f64) most += 1e-13 * std::abs(y) + 1e-15;
      ASSERT_LE(std::abs(x - y), most)
          << kernel.views[v].name << " element " << i << ": " << x << " instead of " << y;
    }
    for (std::size_t i = 0; i < HostView::kGuard; ++i) {
      ASSERT_EQ(got[v].bytes[i], 0xA5) << "written before " << kernel.views[v].name;
      ASSERT_EQ(got[v].bytes[got[v].bytes.size() - 1 - i], 0xA5) << "written behind " << kernel.views[v].name;
    }
  }
}

// A test of each instruction set that this machine has.
class OnIsa : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!host_runs(GetParam())) GTEST_SKIP() << "this machine lacks " << name(GetParam());
    backend_ = CpuBackend::open({.threads = 2, .isa = std::string(name(GetParam()))}).value();
  }
  void check(const tile::Kernel& kernel, ParityOptions options = {}) {
    expect_parity(*backend_, kernel, std::move(options));
  }
  std::unique_ptr<backends::Backend> backend_;
};

}  // namespace tilewright::cpu::testing
