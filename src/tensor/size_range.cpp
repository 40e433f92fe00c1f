// Samples, and what they say of the sizes between them.
#include "tensor/size_range.h"

#include "passes/plan/plan_memory.h"
#include "tensor/size_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>

namespace tilewright::detail {

namespace {

constexpr Index kWindow = 32;  // sizes in a row: SizeRange::Size::remainders

// The plan's, then extents of outputs and of checked indices.
std::vector<passes::PlanNumber> numbers_of(const tile::Plan& plan, const TracedAt& traced) {
  std::vector<passes::PlanNumber> out = passes::numbers_of(plan);
  const auto add = [&](const Shape& shape) {
    for (Index extent : shape) out.push_back({DType::i64, extent});
  };
  for (ir::NodeId o : traced.graph.outputs()) add(traced.graph.type(o).shape);
  for (const PendingCheck& c : traced.checks) {
    add(c.shape);
    out.push_back({DType::i64, c.extent});
  }
  return out;
}

}  // namespace

class SizeRange::Opening {
 public:
  Opening(DeviceState& device, const Of& of, const TraceAt& trace_at, const GraphOptions& options)
      : device_(device), of_(of), trace_at_(trace_at), family_(family_of(device, of.traced.graph, options)) {}

  Result<SizeRange> run() {
    out_.form_ = ir::form_of(of_.traced.graph);
    out_.before_graph_ = numbers_of(of_.graph.compiled.plan, of_.traced).size();
    if (!name_sizes()) return failure(Failure::Kind::unsupported, "more than three sizes differ");
    samples_.insert({now_, numbers(of_.graph.compiled.plan, of_.traced)});
    if (!find_bounds()) return others();
    Result<passes::SizeFormulas> formulas = failure(Failure::Kind::unsupported, "");
    for (const Window window : {Window::short_one, Window::whole}) {
      if (window == Window::whole && is_large()) break;
      if (!find_remainders(window) || !are_samples_together()) continue;
      formulas = formulas_of_samples();
      if (formulas) break;
    }
    if (!formulas) return formulas.error().message.empty() ? others() : formulas.error();
    out_.formulas_ = std::move(*formulas);
    out_.traced_ = of_.traced;
    return std::move(out_);
  }

 private:
  using Numbers = std::optional<std::vector<passes::PlanNumber>>;
  enum class Window : std::uint8_t { short_one, whole };

  // Whether lowering takes so long, from some tenths of a second on, that few samples must do.
  bool is_large() const {
    constexpr int kManyNodes = 250;
    return of_.traced.graph.size() > kManyNodes;
  }

  Failure others() const {
    return failure(Failure::Kind::unsupported, "other sizes have other kernels" + why_not_);
  }

  // With a few samples more where formulas are told apart by these alone.
  Result<passes::SizeFormulas> formulas_of_samples() {
    for (int more = is_large() ? 2 : 6;; --more) {
      passes::SizeFormulas::Found found = passes::SizeFormulas::found(taken());
      if (found.formulas || found.apart.empty() || more == 0 || !sample(found.apart)) return found.formulas;
    }
  }

  std::vector<passes::SizeSample> taken() const {
    std::vector<passes::SizeSample> out;
    for (const auto& [sizes, numbers] : samples_)
      if (numbers) out.push_back({sizes, *numbers});
    return out;
  }

  // The numbers of the program, then those of the graph.
  std::vector<passes::PlanNumber> numbers(const tile::Plan& plan, const TracedAt& traced) const {
    std::vector<passes::PlanNumber> all = numbers_of(plan, traced);
    for (const ir::Measure& m : ir::measures_of(traced.graph)) all.push_back({m.dtype, m.bits});
    return all;
  }

  // Dynamic dimensions that differed by the same at all calls, or of which one was always so many times the
  // other, are one size; one that never changed is a number.
  bool name_sizes() {
    constexpr std::size_t kMostSizes = 3;
    const std::vector<ir::Type>& newest = of_.seen.front();
    for (const ir::Type& type : newest) {
      out_.dtypes_.push_back(type.dtype);
      std::vector<Extent>& extents = out_.extents_.emplace_back();
      for (Index extent : type.shape) extents.push_back({-1, extent});
    }
    std::vector<std::pair<Extent*, Course>> changing;
    changing.reserve(of_.dynamic.size());
    for (const DynamicDim& d : of_.dynamic) {
      Course course;
      course.reserve(of_.seen.size());
      for (const auto& types : of_.seen)
        course.push_back(types[static_cast<std::size_t>(d.argument)].shape[d.axis]);
      Extent& extent = out_.extents_[static_cast<std::size_t>(d.argument)][static_cast<std::size_t>(d.axis)];
      const auto [least, most] = std::minmax_element(course.begin(), course.end());
      if (*least != *most) changing.emplace_back(&extent, std::move(course));
    }
    std::vector<Course> named;
    for (const auto& [extent, course] : changing) {
      // What it is so many times of may come behind it.
      const Course* base = &course;
      for (const auto& [other_extent, other] : changing)
        if (times_of(*base, other) > 1) base = &other;
      const auto known = std::find_if(named.begin(), named.end(),
                                      [&](const Course& size) { return differ_by_the_same(*base, size); });
      const Index times = base == &course ? 1 : times_of(course, *base);
      *extent = {static_cast<int>(known - named.begin()), 0, times};
      if (known != named.end()) {
        extent->value = course[0] - times * (*known)[0];
        continue;
      }
      const auto [least, most] = std::minmax_element(base->begin(), base->end());
      now_.push_back((*base)[0]);
      out_.sizes_.push_back({.least = *least, .most = *most, .first = (*base)[0]});
      named.push_back(*base);
    }
    return !now_.empty() && now_.size() <= kMostSizes;
  }

  using Course = std::vector<Index>;  // a dynamic dimension's extents, at the calls
  static bool differ_by_the_same(const Course& a, const Course& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (a[i] - b[i] != a[0] - b[0]) return false;
    return true;
  }
  // How many times b a always was; 0 where it was not.
  static Index times_of(const Course& a, const Course& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (b[0] == 0 || a[0] % b[0] != 0 || a[i] != a[0] / b[0] * b[i]) return 0;
    return a[0] / b[0];
  }

  // The numbers that are lowered at these sizes; nothing where the kernels are others.
  const Numbers& sample(const std::vector<Index>& sizes) {
    const auto [at, fresh] = samples_.insert({sizes, std::nullopt});
    if (!fresh) return at->second;
    std::vector<ir::Type> types = of_.seen.front();
    for (std::size_t a = 0; a < types.size(); ++a)
      for (std::size_t axis = 0; axis < out_.extents_[a].size(); ++axis)
        if (const Extent& e = out_.extents_[a][axis]; e.size >= 0) {
          Index& extent = types[a].shape[static_cast<int>(axis)];
          extent = sizes[static_cast<std::size_t>(e.size)] * e.times + e.value;
          if (extent < 2) return at->second;
        }
    try {
      const TracedAt traced = trace_at_(types);
      if (!(ir::form_of(traced.graph) == out_.form_) || !traced.uses_what(of_.traced, types.size()))
        return at->second;
      const tile::Plan& known = of_.graph.compiled.plan;
      const auto plan = family_->plan_at(device_, traced.graph, known);
      if (plan && plan->kernels == known.kernels && passes::same_but_numbers(*plan, known))
        at->second = numbers(*plan, traced);
    } catch (const std::exception& e) {  // the user's function may throw what it likes
      if (why_not_.empty()) why_not_ = std::string(": ") + e.what();
    }
    return at->second;
  }

  // Whether every corner of the box is a sample.
  bool are_samples() {
    for (unsigned corner = 0; corner < 1U << now_.size(); ++corner) {
      std::vector<Index> at = now_;
      for (std::size_t i = 0; i < now_.size(); ++i)
        at[i] = (corner >> i & 1U) != 0 ? out_.sizes_[i].most : out_.sizes_[i].least;
      if (!sample(at)) return false;
    }
    return true;
  }

  // Finds the bounds of each size: from a quarter to four times of what it is, or as far as there are samples
  // with the other sizes as they are. Whether the corners of the box of all bounds are samples, too.
  bool find_bounds() {
    constexpr Index kWider = 4;
    for (std::size_t i = 0; i < now_.size(); ++i) {
      out_.sizes_[i].least = farthest(i, std::max<Index>(now_[i] / kWider, std::min<Index>(now_[i], 2)));
      out_.sizes_[i].most = farthest(i, now_[i] * kWider);
      if (out_.sizes_[i].least == out_.sizes_[i].most) return false;
    }
    return are_samples();
  }

  // A sample towards `bound`, as near to it as a few halvings tell.
  Index farthest(std::size_t i, Index bound) {
    const int halvings = is_large() ? 2 : 8;
    // Other remainders than this call's may have other kernels.
    const auto reached = [&](Index n) -> std::optional<Index> {
      std::vector<Index> at = now_;
      for (const Index size : {n, now_[i] + (n - now_[i]) / kWindow * kWindow}) {
        at[i] = size;
        if (sample(at)) return size;
      }
      return std::nullopt;
    };
    Index inside = now_[i], outside = bound;
    if (const auto all = reached(bound)) return *all;
    for (int h = 0; h < halvings && std::abs(outside - inside) > 1; ++h) {
      const Index middle = inside + (outside - inside) / 2;
      const auto there = reached(middle);
      if (there && *there != inside && (*there > inside) == (bound > inside))
        inside = *there;
      else
        outside = middle;
    }
    return inside;
  }

  // The largest power of two of which a multiple lies within the bounds, with half a window on each side: 1
  // where there is no room.
  static std::pair<Index, Index> power_and_multiple(const Size& size) {
    constexpr Index kLargest = 256;  // of tiles
    const Index middle = size.least + (size.most - size.least) / 2;
    for (Index power = kLargest; power > 1; power /= 2) {
      const Index multiple = middle / power * power;
      if (multiple - kWindow / 2 >= size.least && multiple + kWindow / 2 <= size.most)
        return {power, multiple};
    }
    return {1, middle};
  }

  bool find_remainders(Window window) {
    for (std::size_t i = 0; i < now_.size(); ++i)
      if (!(window == Window::short_one ? next_to_a_multiple(i) : in_a_row(i))) return false;
    return true;
  }

  // Whether a multiple of a large power of two is a sample with two sizes before and behind it: then no
  // remainder has kernels of its own.
  bool next_to_a_multiple(std::size_t i) {
    Size& size = out_.sizes_[i];
    const auto [power, multiple] = power_and_multiple(size);
    if (power < kWindow) return false;
    std::vector<Index> at = now_;
    for (at[i] = multiple - 2; at[i] <= multiple + 2; ++at[i])
      if (!sample(at)) return false;
    size.first = multiple;
    size.remainders.set();
    return true;
  }

  // Finds the remainders that are samples.
  bool in_a_row(std::size_t i) {
    Size& size = out_.sizes_[i];
    const Index from = std::max(size.least, power_and_multiple(size).second - kWindow / 2);
    size.remainders.reset();
    Index first = -1, step = 0;
    std::vector<Index> at = now_;
    for (at[i] = from; at[i] < from + kWindow && at[i] <= size.most; ++at[i]) {
      if (!sample(at)) continue;
      if (first < 0) first = at[i];
      step = std::gcd(step, at[i] - first);
      size.remainders.set(static_cast<std::size_t>(at[i] % kWindow));
    }
    if (step == 0) return false;  // one sample says nothing of others with its remainder
    size.first = first;
    size.step = step;
    return size.holds(now_[i]);
  }

  // Whether sizes that are all other than the call's are samples. What is a multiple of nothing in each size
  // may be one in their product, their sum or their difference, as long as one of them is: these have several
  // remainders here.
  bool are_samples_together() {
    constexpr Index kPlaces = 5;
    if (now_.size() < 2) return true;
    for (Index place = 0; place < kPlaces; ++place) {
      std::vector<Index> at = now_;
      for (std::size_t i = 0; i < now_.size(); ++i) {
        const Size& size = out_.sizes_[i];
        Index nth = place * static_cast<Index>(i + 1) % kPlaces;
        at[i] = std::max(size.least, power_and_multiple(size).second - kPlaces / 2);
        while (!size.holds(at[i]) || nth-- > 0)
          if (++at[i] > size.most) return false;
      }
      if (!sample(at)) return false;
    }
    return true;
  }

  DeviceState& device_;
  const Of& of_;
  const TraceAt& trace_at_;
  std::shared_ptr<SizeFamily> family_;
  std::vector<Index> now_;
  std::map<std::vector<Index>, Numbers> samples_;
  std::string why_not_;
  SizeRange out_;
};

Result<SizeRange> SizeRange::open(DeviceState& device, const Of& of, const TraceAt& trace_at,
                                  const GraphOptions& options) {
  return Opening(device, of, trace_at, options).run();
}

std::optional<std::vector<Index>> SizeRange::sizes_of(const std::vector<const ir::Type*>& args) const {
  if (args.size() != extents_.size()) return std::nullopt;
  std::vector<Index> sizes(sizes_.size(), -1);
  for (std::size_t a = 0; a < args.size(); ++a) {
    const ir::Type& type = *args[a];
    const std::vector<Extent>& extents = extents_[a];
    if (type.dtype != dtypes_[a] || type.shape.extents().size() != extents.size()) return std::nullopt;
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      const Extent& e = extents[axis];
      const Index more = type.shape.extents()[axis] - e.value, size = more / e.times;
      if (more % e.times != 0) return std::nullopt;
      if (e.size < 0) {
        if (size != 0) return std::nullopt;
        continue;
      }
      Index& known = sizes[static_cast<std::size_t>(e.size)];
      if (known >= 0 && known != size) return std::nullopt;
      known = size;
    }
  }
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (!sizes_[i].holds(sizes[i])) return std::nullopt;
  return sizes;
}

void SizeRange::set(CompiledGraph& graph, std::vector<PendingCheck>& checks,
                    const std::vector<std::int64_t>& numbers) const {
  tile::Plan& plan = graph.compiled.plan;
  std::size_t after_plan = before_graph_;
  for (const ir::Type& t : graph.outputs) after_plan -= t.shape.extents().size();
  for (const PendingCheck& c : checks) after_plan -= c.shape.extents().size() + 1;
  passes::set_numbers(plan, std::span(numbers).first(after_plan));
  passes::plan_memory(plan);
  auto next = numbers.begin() + static_cast<std::ptrdiff_t>(after_plan);
  const auto take = [&](Shape& shape) {
    for (int axis = 0; axis < shape.rank(); ++axis) shape[axis] = *next++;
  };
  for (ir::Type& t : graph.outputs) take(t.shape);
  for (PendingCheck& c : checks) {
    take(c.shape);
    c.extent = *next++;
  }
  if (Status resized = graph.executable->resize(plan); !resized)
    raise(resized.error(), resized.error().message);
  graph.replay = {};
  graph.times.reset();
}

bool SizeRange::is_of(const TracedAt& traced, const std::vector<std::int64_t>& numbers) const {
  if (!(ir::form_of(traced.graph) == form_) || !traced.uses_what(*traced_, extents_.size())) return false;
  const std::vector<ir::Measure> measures = ir::measures_of(traced.graph);
  return std::equal(measures.begin(), measures.end(),
                    numbers.begin() + static_cast<std::ptrdiff_t>(before_graph_), numbers.end(),
                    [](const ir::Measure& m, std::int64_t number) { return m.bits == number; });
}

std::string SizeRange::guard() const {
  std::string out;
  for (std::size_t a = 0; a < extents_.size(); ++a) {
    std::string shape;
    for (const Extent& e : extents_[a]) {
      if (!shape.empty()) shape += ",";
      if (e.size < 0)
        shape += fmt::format("{}", e.value);
      else
        shape += fmt::format("{}n{}{}", e.times == 1 ? "" : fmt::format("{} ", e.times), e.size,
                             e.value == 0 ? "" : fmt::format("{:+}", e.value));
    }
    out += fmt::format("{}{}[{}]", a == 0 ? "" : ", ", name(dtypes_[a]), shape);
  }
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    const Size& s = sizes_[i];
    const Index first = s.least + ((s.first - s.least) % s.step + s.step) % s.step;
    out += fmt::format("; n{} from {} to {}", i, first, s.most);
    if (s.step > 1) out += fmt::format(" in steps of {}", s.step);
    std::string left_out;
    for (Index r = 0; r < kWindow; ++r)
      if (!s.remainders[static_cast<std::size_t>(r)] && (r - s.first) % s.step == 0 &&
          s.least + ((r - s.least) % kWindow + kWindow) % kWindow <= s.most)
        left_out += fmt::format("{}{}", left_out.empty() ? "" : ", ", r);
    if (left_out == "0")
      out += fmt::format(", no multiple of {}", kWindow);
    else if (!left_out.empty())
      out += fmt::format(", none that leaves {} when divided by {}", left_out, kWindow);
  }
  return out;
}

}  // namespace tilewright::detail
