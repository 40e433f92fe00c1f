// Guards, and the sizes of a range.
#include "tensor/specialisation.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace tilewright::detail {

bool matches(const Specialisation& s, const std::vector<Tensor>& args) {
  if (s.guards.size() != args.size()) return false;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const TensorImpl& t = *args[i].impl();
    if (!(s.guards[i].type == t.type) || s.guards[i].device != t.device) return false;
  }
  return true;
}

std::string recompile_reason(const std::vector<std::shared_ptr<Specialisation>>& known,
                             const std::vector<Guard>& guards, const GivenNames& names) {
  if (known.empty()) return "first call";
  const std::vector<Guard>& last = known.front()->guards;
  if (last.size() != guards.size())
    return fmt::format("{} arguments instead of {}", guards.size(), last.size());
  for (std::size_t i = 0; i < guards.size(); ++i) {
    if (!(guards[i].type == last[i].type))
      return fmt::format("{} is {}, was {}", names.of(i), to_string(guards[i].type), to_string(last[i].type));
    const std::string &now = guards[i].device->name(), &then = last[i].device->name();
    if (now != then) return fmt::format("{} is on {}, was on {}", names.of(i), now, then);
    if (guards[i].device != last[i].device) return names.of(i) + " is of another Context";
  }
  return "the previous specialisation was dropped";
}

std::vector<Guard> guards_of(const std::vector<Tensor>& args) {
  std::vector<Guard> guards;
  guards.reserve(args.size());
  for (const Tensor& a : args) guards.push_back({a.impl()->type, a.impl()->device});
  return guards;
}

namespace {

std::vector<const ir::Type*> types_at(const std::vector<Tensor>& args) {
  std::vector<const ir::Type*> out;
  out.reserve(args.size());
  for (const Tensor& a : args) out.push_back(&a.impl()->type);
  return out;
}

std::vector<const ir::Type*> pointers_to(const std::vector<ir::Type>& types) {
  std::vector<const ir::Type*> out;
  out.reserve(types.size());
  for (const ir::Type& t : types) out.push_back(&t);
  return out;
}

// Sizes at which the function is not recorded again.
void note_recorded(Specialisation& s, const std::vector<Index>& sizes) {
  constexpr std::size_t kMostRecorded = 4096;
  if (s.recorded_at.size() == kMostRecorded) s.recorded_at.clear();
  s.recorded_at.insert(sizes);
}

}  // namespace

void open_range(Specialisation& s, SizeHistory& history, DeviceState& device, const TraceAt& trace_at,
                const std::vector<DynamicDim>& dynamic, const GraphOptions& options) {
  constexpr std::size_t kMostCalled = 8;
  std::vector<ir::Type> now;
  now.reserve(s.guards.size());
  for (const Guard& g : s.guards) now.push_back(g.type);
  // Axes of no or one element are lowered another way, and say nothing of others.
  const auto is_short = [&](const DynamicDim& d) {
    return now[static_cast<std::size_t>(d.argument)].shape[d.axis] < 2;
  };
  if (std::any_of(dynamic.begin(), dynamic.end(), is_short)) return;
  history.called.insert(history.called.begin(), now);
  if (history.called.size() > kMostCalled) history.called.pop_back();
  std::vector<std::vector<ir::Type>> seen;
  for (const std::vector<ir::Type>& types : history.called)
    if (are_alike(now, types, dynamic)) seen.push_back(types);
  // Functions whose sizes share nothing pay for a few attempts, not for one at each size.
  if (seen.size() < 2 || history.opening || !std::has_single_bit(++history.attempts)) return;
  struct Opening {
    bool& now;
    explicit Opening(bool& flag) : now(flag) { now = true; }
    ~Opening() { now = false; }
  } const opening(history.opening);
  const std::shared_ptr<CompiledGraph> graph = s.graph();
  auto range = SizeRange::open(device,
                               {.graph = *graph,
                                .traced = {*s.recorded, s.captured, s.draws, s.checks},
                                .seen = seen,
                                .dynamic = dynamic},
                               trace_at, options);
  if (!range) {
    s.dynamic += "; each size is planned anew: " + range.error().message;
    return;
  }
  // Meanwhile into() may have added programs, which are for the guards' sizes alone.
  const auto plain =
      std::find_if(s.programs.begin(), s.programs.end(), [](const Program& p) { return p.over.empty(); });
  if (plain == s.programs.end()) return;
  s.programs = {Program(*plain)};
  history.attempts = 0;
  s.range = std::move(*range);
  s.dynamic += "; for " + s.range->guard();
  s.sizes = *s.range->sizes_of(pointers_to(now));
  note_recorded(s, s.sizes);
}

bool replaces(const Specialisation& s, const Specialisation& other) {
  if (!s.range || other.range || !other.recorded || s.guards.size() != other.guards.size()) return false;
  std::vector<const ir::Type*> types;
  for (std::size_t i = 0; i < s.guards.size(); ++i) {
    if (s.guards[i].device != other.guards[i].device) return false;
    types.push_back(&other.guards[i].type);
  }
  const bool writes_over = std::any_of(other.programs.begin(), other.programs.end(),
                                       [](const Program& p) { return !p.over.empty(); });
  return !writes_over && s.range->sizes_of(types).has_value();
}

bool serves(const Specialisation& s, const std::vector<Tensor>& args) {
  if (!s.range || s.guards.size() != args.size()) return false;
  for (std::size_t i = 0; i < args.size(); ++i)
    if (s.guards[i].device != args[i].impl()->device) return false;
  return s.range->sizes_of(types_at(args)).has_value();
}

bool take_sizes(Specialisation& s, const std::vector<Tensor>& args, const std::function<TracedAt()>& traced) {
  auto sizes = s.range->sizes_of(types_at(args));
  if (*sizes == s.sizes) return true;
  const std::vector<std::int64_t> numbers = s.range->numbers_at(*sizes);
  if (!s.recorded_at.contains(*sizes)) {
    try {
      if (!s.range->is_of(traced(), numbers)) return false;
    } catch (const std::exception&) {
      return false;  // recorded for these alone it says why
    }
    note_recorded(s, *sizes);
  }
  s.sizes.clear();  // where memory cannot be had the program is of no size
  s.range->set(*s.programs.front().graph, s.checks, numbers);
  s.sizes = std::move(*sizes);
  for (std::size_t i = 0; i < args.size(); ++i) s.guards[i].type = args[i].impl()->type;
  return true;
}

}  // namespace tilewright::detail
