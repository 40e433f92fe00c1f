// Host copies of each view's span, the interpreter on them, and the comparison.
#include "runtime/kernel_check.h"

#include "backends/reference/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tilewright::runtime {

namespace {

constexpr Index kAlignment = 256;  // more than any view promises

// The bytes of a view, from the lowest to the highest element it reaches, around its coordinate 0.
struct Span {
  Index before = 0, after = 0;  // bytes in front of coordinate 0, and from it on
  Index bytes() const { return before + after; }
};

Span span_of(const tile::ViewParam& view, const std::vector<std::int64_t>& scalars) {
  Index before = 0, after = 0;
  for (std::size_t d = 0; d < view.extents.size(); ++d) {
    const Index extent = view.extents[d].in(scalars.data()), stride = view.strides[d].in(scalars.data());
    if (extent <= 0) return {};
    (stride < 0 ? before : after) += std::abs(stride) * (extent - 1);
  }
  const auto element = static_cast<Index>(size_bytes(view.dtype));
  return {before * element, (after + 1) * element};
}

// A view's span on the host, coordinate 0 aligned as on the device.
class HostCopy {
 public:
  explicit HostCopy(Span span) : span_(span), begin_(round_up(span.before, kAlignment) - span.before) {
    memory_.reset(static_cast<char*>(std::aligned_alloc(
        kAlignment, static_cast<std::size_t>(round_up(begin_ + span.bytes() + 1, kAlignment)))));
    if (!memory_) throw std::bad_alloc();
  }
  char* data() { return memory_.get() + begin_; }
  const char* data() const { return memory_.get() + begin_; }
  reference::ViewBinding binding() {
    return {.data = data() + span_.before, .extent_bytes = span_.after, .before_bytes = span_.before};
  }
  const Span& span() const { return span_; }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  Span span_;
  Index begin_;
  std::unique_ptr<char, Free> memory_;
};

class Check {
 public:
  Check(Device& device, const tile::Kernel& meaning, const Executable::StepLaunch& launch)
      : backend_(device.backend()), kernel_(meaning), launch_(launch), uses_(tile::view_uses(meaning)) {
    for (const tile::ViewParam& view : meaning.views) copies_.emplace_back(span_of(view, launch.scalars));
  }

  Result<KernelCheck> run(backends::Program& program) {
    if (Status s = refuse_overlaps(); !s) return s.error();
    if (Status s = poison(); !s) return s.error();
    if (Status s = read_all(); !s) return s.error();
    const auto bounds = reference::run_with_bounds(kernel_, bindings(), launch_.scalars);
    if (!bounds) return bounds.error();
    backends::LaunchArgs args{launch_.views.data(), launch_.scalars.data(), {}};
    std::copy(std::begin(launch_.grid), std::end(launch_.grid), std::begin(args.grid));
    if (Status s = program.launch(args); !s) return s.error();
    if (Status s = backend_.synchronize(); !s) return s.error();
    KernelCheck report;
    for (std::size_t v = 0; v < copies_.size(); ++v) {
      if (!written(v)) continue;
      std::vector<char> got(static_cast<std::size_t>(copies_[v].span().bytes()));
      if (Status s = read(v, got.data()); !s) return s.error();
      compare(v, got, bounds->views[v], report);
    }
    return report;
  }

  Status interpret() {
    if (Status s = read_all(); !s) return s;
    ThreadPool pool;
    return reference::run(kernel_, bindings(), launch_.scalars, {.pool = &pool});
  }

 private:
  bool written(std::size_t v) const { return uses_[v].written || uses_[v].accumulated; }
  char* lowest(std::size_t v) const {
    return static_cast<char*>(launch_.views[v]) - copies_[v].span().before;
  }

  Status refuse_overlaps() const {
    for (std::size_t a = 0; a < copies_.size(); ++a)
      for (std::size_t b = 0; b < copies_.size(); ++b) {
        if (a == b || !written(a)) continue;
        const char *at = lowest(a), *other = lowest(b);
        if (at < other + copies_[b].span().bytes() && other < at + copies_[a].span().bytes())
          return failure(Failure::Kind::unsupported,
                         fmt::format("views {} and {} overlap in memory: the launch cannot be checked alone",
                                     kernel_.views[a].name, kernel_.views[b].name));
      }
    return Unit{};
  }

  // NaN for every float; an unlikely number elsewhere.
  Status poison() const {
    for (std::size_t v = 0; v < copies_.size(); ++v) {
      if (!uses_[v].written || uses_[v].read || uses_[v].accumulated) continue;
      const backends::FillPattern byte{is_float(kernel_.views[v].dtype) ? 0xFFu : 0xA5u};
      if (Status s = backend_.fill(lowest(v), byte, static_cast<std::size_t>(copies_[v].span().bytes())); !s)
        return s;
    }
    return backend_.synchronize();
  }

  Status read_all() {
    for (std::size_t v = 0; v < copies_.size(); ++v)
      if (Status s = read(v, copies_[v].data()); !s) return s;
    return Unit{};
  }

  std::vector<reference::ViewBinding> bindings() {
    std::vector<reference::ViewBinding> out;
    out.reserve(copies_.size());
    for (HostCopy& copy : copies_) out.push_back(copy.binding());
    return out;
  }

  Status read(std::size_t v, char* to) const {
    return backend_.copy(to, lowest(v), static_cast<std::size_t>(copies_[v].span().bytes()),
                         backends::CopyKind::device_to_host);
  }

  static double distance(const char* got, const char* want, DType dtype) {
    constexpr double kFar = std::numeric_limits<double>::infinity();
    if (!is_float(dtype)) return load_i64(got, dtype) == load_i64(want, dtype) ? 0 : kFar;
    const double a = load_f64(got, dtype), b = load_f64(want, dtype);
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : kFar;
    return a == b ? 0 : std::abs(a - b);
  }

  void compare(std::size_t v, const std::vector<char>& got, const std::vector<double>& bounds,
               KernelCheck& report) const {
    const DType dtype = kernel_.views[v].dtype;
    const std::size_t element = size_bytes(dtype);
    for (std::size_t i = 0; i * element < got.size(); ++i) {
      const char *mine = got.data() + i * element, *reference = copies_[v].data() + i * element;
      const double bound = i < bounds.size() ? bounds[i] : 0;
      ++report.compared;
      if (std::isinf(bound)) {
        ++report.undecided;
        continue;
      }
      const double far = distance(mine, reference, dtype);
      if (bound > 0 && std::isfinite(far)) report.worst = std::max(report.worst, far / bound);
      if (far <= bound) continue;
      if (report.wrong++ == 0)
        report.problem =
            fmt::format("view %{}, element {}: got {}, the interpreter has {}, rounding allows {:.3g}",
                        kernel_.views[v].name, i, text(mine, dtype), text(reference, dtype), bound);
    }
  }

  static std::string text(const char* at, DType dtype) {
    return is_float(dtype) ? fmt::format("{}", load_f64(at, dtype)) : fmt::format("{}", load_i64(at, dtype));
  }

  backends::Backend& backend_;
  const tile::Kernel& kernel_;
  const Executable::StepLaunch& launch_;
  std::vector<tile::ViewUse> uses_;
  std::vector<HostCopy> copies_;
};

Status check_given(const tile::Kernel& kernel, const Executable::StepLaunch& launch) {
  if (launch.views.size() == kernel.views.size()) return Unit{};
  return failure(Failure::Kind::invalid,
                 fmt::format("kernel {}: an empty launch has nothing to check", kernel.name));
}

}  // namespace

Result<KernelCheck> check_launch(Device& device, const tile::Kernel& meaning, backends::Program& program,
                                 const Executable::StepLaunch& launch) {
  if (Status s = check_given(meaning, launch); !s) return s.error();
  return Check(device, meaning, launch).run(program);
}

Status check_reach(Device& device, const tile::Kernel& kernel, const Executable::StepLaunch& launch) {
  if (Status s = check_given(kernel, launch); !s) return s;
  return Check(device, kernel, launch).interpret();
}

}  // namespace tilewright::runtime
