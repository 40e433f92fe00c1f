// Buffers with random contents on both sides, one launch, and the comparison.
#include "support/kernel_check.h"

#include "backends/reference/interpreter.h"

#include <tilewright/base/philox.h>

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace tilewright::testing_support {

namespace {

using reference::ViewBinding;

constexpr std::size_t kGuardBytes = 256;  // behind each buffer: nobody may write there
constexpr unsigned char kGuard = 0xa5;

struct Buffer {
  std::vector<std::byte> bytes;
  std::size_t origin = 0;  // of coordinate 0
  std::size_t size = 0;    // without the guard
};

Index value_of(const tile::Dim& d, const std::vector<std::int64_t>& scalars) {
  return d.is_constant() ? d.value : scalars[static_cast<std::size_t>(d.scalar)];
}

// Small numbers, of both signs; integers that may serve as indices too.
void fill(Buffer& b, DType dtype, unsigned seed) {
  const std::size_t step = size_bytes(dtype);
  for (std::size_t i = 0; i * step < b.size; ++i) {
    const std::uint32_t word = philox4x32(seed, i)[0];
    const double real = std::round((uniform_f32(word) * 6 - 3) * 64) / 64;
    if (is_float(dtype))
      store_f64(&b.bytes[i * step], dtype, real);
    else
      store_i64(&b.bytes[i * step], dtype, word % 29);
  }
  std::memset(b.bytes.data() + b.size, kGuard, kGuardBytes);
}

Buffer make_buffer(const tile::ViewParam& view, const std::vector<std::int64_t>& scalars) {
  Index low = 0, high = 0;
  for (std::size_t d = 0; d < view.extents.size(); ++d) {
    const Index reach = (value_of(view.extents[d], scalars) - 1) * value_of(view.strides[d], scalars);
    (reach < 0 ? low : high) += reach;
  }
  const auto step = static_cast<Index>(size_bytes(view.dtype));
  Buffer b;
  b.origin = static_cast<std::size_t>(round_up(-low * step, 512));
  b.size = b.origin + static_cast<std::size_t>((high + 1) * step);
  b.bytes.resize(b.size + kGuardBytes);
  return b;
}

std::string compare(const tile::ViewParam& view, const Buffer& got, const Buffer& want,
                    const std::vector<double>& bound) {
  const std::size_t step = size_bytes(view.dtype);
  for (std::size_t i = 0; i < kGuardBytes; ++i)
    if (got.bytes[got.size + i] != std::byte{kGuard})
      return fmt::format("view {}: written {} bytes behind its end", view.name, i);
  for (std::size_t i = 0; i * step < want.size; ++i) {
    const double tolerance = i < bound.size() ? bound[i] : 0;
    if (std::isinf(tolerance)) continue;
    const bool real = is_float(view.dtype);
    const double g = real ? load_f64(&got.bytes[i * step], view.dtype)
                          : static_cast<double>(load_i64(&got.bytes[i * step], view.dtype));
    const double w = real ? load_f64(&want.bytes[i * step], view.dtype)
                          : static_cast<double>(load_i64(&want.bytes[i * step], view.dtype));
    if (std::isnan(w) ? std::isnan(g) : g == w || std::fabs(g - w) <= tolerance) continue;
    const Index element = static_cast<Index>(i) - static_cast<Index>(want.origin / step);
    return fmt::format("view {}, element {}: {} where the reference has {} ± {}", view.name, element, g, w,
                       tolerance);
  }
  return "";
}

}  // namespace

CheckResult check_kernel(backends::Backend& backend, const tile::Kernel& kernel,
                         const std::vector<std::int64_t>& scalars, const KernelCheck& check) {
  CheckResult result;
  auto source = backend.print(kernel, check.schedule);
  if (!source) {
    result.refused = source.error().message;
    return result;
  }
  result.source = source->text;
  const auto fail = [&](const std::string& why) {
    result.problem =
        fmt::format("{} [{}]: {}\n{}", kernel.name, to_string(check.schedule), why, result.source);
    return result;
  };
  auto binary = backend.compile(kernel, *source);
  if (!binary) return fail(binary.error().message);
  auto program = backend.load(kernel, *source, *binary);
  if (!program) return fail(program.error().message);
  result.described = (*program)->describe();

  std::vector<Buffer> want;
  std::vector<void*> addresses, views;
  std::vector<ViewBinding> bindings;
  for (std::size_t v = 0; v < kernel.views.size(); ++v) {
    want.push_back(make_buffer(kernel.views[v], scalars));
    Buffer& b = want.back();
    fill(b, kernel.views[v].dtype, check.seed * 100 + static_cast<unsigned>(v));
    auto memory = backend.allocate(b.bytes.size());
    if (!memory) return fail(memory.error().message);
    if (auto s = backend.copy(*memory, b.bytes.data(), b.bytes.size(), backends::CopyKind::host_to_device);
        !s)
      return fail(s.error().message);
    addresses.push_back(*memory);
    views.push_back(static_cast<std::byte*>(*memory) + b.origin);
  }
  for (Buffer& b : want)
    bindings.push_back({.data = b.bytes.data() + b.origin,
                        .extent_bytes = static_cast<Index>(b.size - b.origin),
                        .before_bytes = static_cast<Index>(b.origin)});
  backends::LaunchArgs args{.views = views.data(), .scalars = scalars.data()};
  const std::vector<Index> grid = tile::grid_extents(kernel, scalars);
  std::copy(grid.begin(), grid.end(), args.grid);
  if (auto s = (*program)->launch(args); !s) return fail(s.error().message);
  if (auto s = backend.synchronize(); !s) return fail(s.error().message);

  // The bounds are computed from the same inputs, and so before run() overwrites them.
  std::vector<Buffer> inputs = want;
  std::vector<ViewBinding> bound_bindings = bindings;
  for (std::size_t v = 0; v < inputs.size(); ++v)
    bound_bindings[v].data = inputs[v].bytes.data() + inputs[v].origin;
  auto bounds = reference::run_with_bounds(kernel, bound_bindings, scalars,
                                           {.scale = check.error_scale, .flush_subnormals = true});
  if (!bounds) return fail(bounds.error().message);
  if (auto s = reference::run(kernel, bindings, scalars); !s) return fail(s.error().message);
  for (std::size_t v = 0; v < kernel.views.size(); ++v) {
    Buffer got = want[v];
    if (auto s = backend.copy(got.bytes.data(), addresses[v], got.bytes.size(),
                              backends::CopyKind::device_to_host);
        !s)
      return fail(s.error().message);
    if (std::string problem = compare(kernel.views[v], got, want[v], bounds->views[v]); !problem.empty())
      return fail(problem);
  }
  for (std::size_t v = 0; v < addresses.size(); ++v) backend.release(addresses[v], want[v].bytes.size());
  return result;
}

}  // namespace tilewright::testing_support
