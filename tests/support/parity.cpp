// Buffers, poison and comparison of the parity check.
#include "support/parity.h"

#include <fmt/format.h>
#include <tilewright/tile/text.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include "support/random_numbers.h"

namespace tilewright::test {

using tile::Kernel;

namespace {

constexpr Index kAlignment = 256;
constexpr Index kGuardBytes = 256;

Index size_of(const tile::Dim& d, const std::vector<std::int64_t>& scalars) {
  return d.is_constant() ? d.value : scalars[static_cast<std::size_t>(d.scalar)];
}

// One view's memory and a copy of its layout.
class Memory {
 public:
  Memory(const tile::ViewParam& view, const std::vector<std::int64_t>& scalars)
      : dtype_(view.dtype), element_(static_cast<Index>(size_bytes(view.dtype))) {
    Index before = 0, after = 0;
    bool empty = false;
    for (std::size_t d = 0; d < view.extents.size(); ++d) {
      const Index extent = size_of(view.extents[d], scalars), stride = size_of(view.strides[d], scalars);
      empty = empty || extent == 0;
      (stride < 0 ? before : after) += std::abs(stride) * std::max<Index>(extent - 1, 0);
    }
    elements_before_ = before;
    elements_ = empty ? 0 : before + after + 1;
    // The promised alignment exactly: a backend must not rely on more.
    const Index origin = round_up(kGuardBytes + before * element_, kAlignment) +
                         std::max(view.align_bytes, element_) % kAlignment;
    begin_ = origin - before * element_;
    bytes_ = round_up(begin_ + elements_ * element_ + kGuardBytes, kAlignment);
    data_.reset(
        static_cast<char*>(::operator new(static_cast<std::size_t>(bytes_), std::align_val_t(kAlignment))));
    // NaN for every float type.
    std::memset(data_.get(), is_float(dtype_) ? 0xFF : 0xA5, static_cast<std::size_t>(bytes_));
  }

  HostView host_view() { return {data_.get(), bytes_, begin_ + elements_before_ * element_}; }
  reference::ViewBinding binding(bool initialized) {
    const Index origin = begin_ + elements_before_ * element_;
    return {.data = data_.get() + origin,
            .extent_bytes = (elements_ - elements_before_) * element_,
            .before_bytes = elements_before_ * element_,
            .initialized = initialized};
  }
  char* at(Index element) { return data_.get() + begin_ + element * element_; }
  const char* at(Index element) const { return data_.get() + begin_ + element * element_; }
  Index elements() const { return elements_; }
  DType dtype() const { return dtype_; }
  void copy_from(const Memory& other) {
    std::memcpy(data_.get(), other.data_.get(), static_cast<std::size_t>(bytes_));
  }
  bool poisoned(Index element) const {
    const char poison = is_float(dtype_) ? '\xFF' : '\xA5';
    return std::all_of(at(element), at(element) + element_, [=](char c) { return c == poison; });
  }
  bool same_bytes(const Memory& other, Index element) const {
    return std::memcmp(at(element), other.at(element), static_cast<std::size_t>(element_)) == 0;
  }
  bool same_guards(const Memory& other) const {
    const Index end = begin_ + elements_ * element_;
    return std::memcmp(data_.get(), other.data_.get(), static_cast<std::size_t>(begin_)) == 0 &&
           std::memcmp(data_.get() + end, other.data_.get() + end, static_cast<std::size_t>(bytes_ - end)) ==
               0;
  }

 private:
  struct Free {
    void operator()(char* p) const { ::operator delete(p, std::align_val_t(kAlignment)); }
  };
  DType dtype_;
  Index element_, elements_before_ = 0, elements_ = 0, begin_ = 0, bytes_ = 0;
  std::unique_ptr<char, Free> data_;
};

double odd_value(DType dtype, std::mt19937_64& engine) {
  const double values[] = {0.0,
                           -0.0,
                           std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN(),
                           max_finite(dtype),
                           -max_finite(dtype),
                           min_normal(dtype),
                           -min_subnormal(dtype),
                           1.0,
                           -1.0};
  return values[engine() % std::size(values)];
}

void fill_random(Memory& memory, int view, const ParityOptions& options, std::mt19937_64& engine) {
  RandomNormals normal(options.scale);
  const DType dtype = memory.dtype();
  const auto given = options.ranges.find(view);
  const bool has_range = given != options.ranges.end();
  const std::pair<double, double> range = has_range                 ? given->second
                                          : dtype == DType::boolean ? std::pair(0.0, 1.0)
                                          : dtype == DType::u8      ? std::pair(0.0, 100.0)
                                                                    : std::pair(-100.0, 100.0);
  for (Index i = 0; i < memory.elements(); ++i) {
    if (is_float(dtype)) {
      const bool odd = random_share(engine) < options.odd_share;
      store_f64(memory.at(i), dtype,
                odd         ? odd_value(dtype, engine)
                : has_range ? random_between(engine, range.first, range.second)
                            : normal(engine));
    } else {
      const auto low = static_cast<Index>(range.first);
      const auto width = static_cast<std::uint64_t>(static_cast<Index>(range.second) - low + 1);
      store_i64(memory.at(i), dtype, low + static_cast<Index>(engine() % width));
    }
  }
}

class Check {
 public:
  Check(const Kernel& kernel, const ParityOptions& options) : kernel_(kernel), options_(options) {
    std::mt19937_64 engine(options.seed);
    const std::vector<tile::ViewUse> uses = view_uses(kernel);
    for (std::size_t v = 0; v < kernel.views.size(); ++v) {
      start_.emplace_back(kernel.views[v], options.scalars);
      inputs_.push_back(uses[v].read || uses[v].accumulated);
      if (inputs_.back()) fill_random(start_.back(), static_cast<int>(v), options, engine);
    }
  }

  ParityReport run(const RunOnBackend& backend) {
    std::vector<Memory> checked = copies(), reference = copies(), result = copies();
    if (Status s = reference::run(kernel_, bindings(checked), options_.scalars, {.checked = true}); !s.ok())
      return fail("the kernel breaks its own promises: " + s.error().message);
    const auto bounds =
        reference::run_with_bounds(kernel_, bindings(reference), options_.scalars, options_.model);
    if (!bounds.ok()) return fail(bounds.error().message);
    std::vector<HostView> views;
    views.reserve(result.size());
    for (Memory& m : result) views.push_back(m.host_view());
    if (Status s = backend(kernel_, views, options_.scalars); !s.ok()) {
      report_.refused = s.error().kind == Failure::Kind::unsupported;
      return fail("the backend failed: " + s.error().message);
    }
    for (std::size_t v = 0; v < result.size() && report_.ok(); ++v)
      compare(v, reference[v], result[v], bounds->views[v]);
    const auto limit = options_.undecided_limit * static_cast<double>(report_.compared + report_.undecided);
    if (report_.ok() && static_cast<double>(report_.undecided) > limit)
      return fail(fmt::format("{} of {} elements are undecided", report_.undecided,
                              report_.compared + report_.undecided));
    return report_;
  }

 private:
  std::vector<Memory> copies() const {
    std::vector<Memory> all;
    for (std::size_t v = 0; v < start_.size(); ++v) {
      all.emplace_back(kernel_.views[v], options_.scalars);
      all.back().copy_from(start_[v]);
    }
    return all;
  }

  std::vector<reference::ViewBinding> bindings(std::vector<Memory>& memory) const {
    std::vector<reference::ViewBinding> all;
    all.reserve(memory.size());
    for (std::size_t v = 0; v < memory.size(); ++v) all.push_back(memory[v].binding(inputs_[v]));
    return all;
  }

  void compare(std::size_t v, const Memory& want, const Memory& got, const std::vector<double>& bounds) {
    const std::string& view = kernel_.views[v].name;
    if (!got.same_guards(start_[v])) {
      fail(fmt::format("view %{}: the backend wrote outside the view", view));
      return;
    }
    for (Index i = 0; i < want.elements() && report_.ok(); ++i) {
      // What the kernel does not write keeps its bytes.
      if (bounds.empty() || want.poisoned(i)) {
        if (!got.same_bytes(want, i) && !(is_nan(want, i) && is_nan(got, i)))
          fail(fmt::format("view %{} element {}: the backend wrote {} where the kernel writes nothing", view,
                           i, text(got, i)));
        continue;
      }
      const double bound = bounds[static_cast<std::size_t>(i)];
      if (std::isinf(bound)) {
        ++report_.undecided;
        continue;
      }
      ++report_.compared;
      const double distance = distance_between(want, got, i);
      if (bound > 0 && std::isfinite(distance)) report_.worst = std::max(report_.worst, distance / bound);
      if (!(distance <= bound))
        fail(fmt::format("view %{} element {}: backend {}, reference {}, bound {:.3g}", view, i, text(got, i),
                         text(want, i), bound));
    }
  }

  static bool is_nan(const Memory& m, Index i) {
    return is_float(m.dtype()) && std::isnan(load_f64(m.at(i), m.dtype()));
  }

  static double distance_between(const Memory& want, const Memory& got, Index i) {
    if (!is_float(want.dtype()))
      return load_i64(want.at(i), want.dtype()) == load_i64(got.at(i), got.dtype())
                 ? 0
                 : std::numeric_limits<double>::infinity();
    const double a = load_f64(want.at(i), want.dtype()), b = load_f64(got.at(i), got.dtype());
    // Poison is a NaN too, but not one that a store makes; the one of f8e4m3 may be.
    if (std::isnan(a) && std::isnan(b) && (!got.poisoned(i) || want.dtype() == DType::f8e4m3)) return 0;
    return a == b ? 0 : std::abs(a - b);
  }

  static std::string text(const Memory& m, Index i) {
    if (m.poisoned(i)) return "nothing (poison)";
    return is_float(m.dtype()) ? fmt::format("{}", load_f64(m.at(i), m.dtype()))
                               : fmt::format("{}", load_i64(m.at(i), m.dtype()));
  }

  ParityReport fail(const std::string& message) {
    report_.message = fmt::format("{} (seed {}, scalars [{}])\n{}", message, options_.seed,
                                  fmt::join(options_.scalars, ","), print(kernel_));
    return report_;
  }

  const Kernel& kernel_;
  const ParityOptions& options_;
  std::vector<Memory> start_;
  std::vector<bool> inputs_;
  ParityReport report_;
};

}  // namespace

ParityReport check_parity(const Kernel& kernel, const ParityOptions& options, const RunOnBackend& backend) {
  return Check(kernel, options).run(backend);
}

}  // namespace tilewright::test
