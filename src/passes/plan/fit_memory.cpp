#include "passes/plan/fit_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace tilewright::passes {

using tile::Plan;
using tile::PlanBuffer;
using tile::PlanStep;

namespace {

std::size_t place_of(int i) { return static_cast<std::size_t>(i); }

// A step, and whether it repeats another.
struct Step {
  PlanStep plan;
  double us = 0;
  bool repeats = false;
};

// A plan's steps and buffers while launches are repeated; kernels stay as they are.
struct Schedule {
  std::vector<Step> steps;
  std::vector<PlanBuffer> buffers;
  std::vector<int> origins;  // of each buffer: the one whose values it has again
};

Index bytes_of(const PlanBuffer& b) {
  return std::max<Index>(b.elements * static_cast<Index>(size_bytes(b.dtype)), 1);
}

struct Access {
  int buffer = -1;
  bool read = false, written = false;
};

// What each step reads and writes, how long temporaries live, and how many bytes are alive.
class Lives {
 public:
  Lives(const Schedule& schedule, const std::vector<std::vector<tile::ViewUse>>& uses)
      : schedule_(schedule), life_(schedule.buffers.size()), alive_(schedule.steps.size(), 0) {
    for (std::size_t s = 0; s < schedule.steps.size(); ++s) {
      accesses_.push_back(accesses(schedule.steps[s].plan, uses));
      for (const Access& a : accesses_.back()) touch(life_[place_of(a.buffer)], static_cast<int>(s), a);
    }
    for (std::size_t b = 0; b < life_.size(); ++b)
      if (is_temporary(static_cast<int>(b)) && life_[b].first >= 0)
        for (int s = life_[b].first; s <= life_[b].last; ++s)
          alive_[place_of(s)] += bytes(static_cast<int>(b));
    if (!alive_.empty())
      peak_ = static_cast<int>(std::max_element(alive_.begin(), alive_.end()) - alive_.begin());
  }

  struct Life {
    int first = -1, last = -1, first_read = -1, last_write = -1;
    std::vector<int> writers, uses;
  };
  const Life& life(int buffer) const { return life_[place_of(buffer)]; }
  const std::vector<Access>& of_step(int step) const { return accesses_[place_of(step)]; }
  Index alive(int step) const { return alive_[place_of(step)]; }
  int peak() const { return peak_; }
  Index peak_bytes() const { return alive_.empty() ? 0 : alive(peak_); }
  Index bytes(int buffer) const { return bytes_of(schedule_.buffers[place_of(buffer)]); }
  bool is_temporary(int buffer) const {
    return schedule_.buffers[place_of(buffer)].role == PlanBuffer::Role::temporary;
  }
  bool is_input(int buffer) const {
    return schedule_.buffers[place_of(buffer)].role == PlanBuffer::Role::input;
  }
  // Written as a whole before anything reads it, so that launching its writers again gives its values again.
  bool is_made_at_once(int buffer) const {
    const Life& l = life(buffer);
    return !l.writers.empty() && l.first == l.writers.front() &&
           (l.first_read < 0 || l.last_write < l.first_read);
  }
  Index most_alive(int from, int to) const {
    Index most = 0;
    for (int s = from; s <= to; ++s) most = std::max(most, alive(s));
    return most;
  }

 private:
  static std::vector<Access> accesses(const PlanStep& step,
                                      const std::vector<std::vector<tile::ViewUse>>& uses) {
    std::map<int, Access> found;
    const auto add = [&found](int buffer, bool read, bool written) {
      Access& a = found[buffer];
      a.buffer = buffer;
      a.read = a.read || read;
      a.written = a.written || written;
    };
    if (step.kind == PlanStep::Kind::launch) {
      const std::vector<tile::ViewUse>& of = uses[place_of(step.kernel)];
      for (std::size_t v = 0; v < step.views.size(); ++v)
        add(step.views[v].buffer, of[v].read || of[v].accumulated, of[v].written || of[v].accumulated);
    } else {
      add(step.buffer, false, true);
      if (step.from >= 0) add(step.from, true, false);
    }
    std::vector<Access> out;
    out.reserve(found.size());
    for (const auto& [buffer, access] : found) out.push_back(access);
    return out;
  }

  static void touch(Life& l, int step, const Access& a) {
    if (l.first < 0) l.first = step;
    l.last = step;
    l.uses.push_back(step);
    if (a.written) {
      l.last_write = step;
      l.writers.push_back(step);
    } else if (l.first_read < 0) {
      l.first_read = step;
    }
  }

  const Schedule& schedule_;
  std::vector<std::vector<Access>> accesses_;
  std::vector<Life> life_;
  std::vector<Index> alive_;
  int peak_ = 0;
};

// What is launched again so that a temporary is there once more at a step.
struct Recipe {
  int at = -1;
  std::set<int> steps;
  std::set<int> remade;   // buffers, the wanted one among them
  std::set<int> scratch;  // buffers that the launches write as well
  std::set<int> kept_on;  // temporaries that live on until then
  double us = 0;
};

class Recipes {
 public:
  Recipes(const Schedule& schedule, const Lives& lives) : schedule_(schedule), lives_(lives) {}

  // For a buffer that is alive where most bytes are, but not used there; nothing where it cannot be made
  // again, or where that would take as much memory elsewhere.
  std::optional<Recipe> of(int buffer) {
    const std::optional<int> next = used_again(buffer);
    if (!next) return std::nullopt;
    recipe_ = {.at = *next};
    wanted_ = lives_.bytes(buffer);
    if (!add(buffer)) return std::nullopt;
    // What the launches write beside it is not kept either.
    for (const int b : std::set<int>(recipe_.scratch)) {
      const std::optional<int> again = used_again(b);
      if (!again || *again < recipe_.at || !lives_.is_made_at_once(b)) continue;
      recipe_.scratch.erase(b);
      recipe_.remade.insert(b);
    }
    if (net_bytes() <= 0) return std::nullopt;
    Index here = lives_.alive(recipe_.at) - given_up();
    for (const std::set<int>& made : {recipe_.remade, recipe_.scratch})
      for (const int b : made) here += lives_.bytes(b);
    if (here > lives_.peak_bytes() - wanted_ / 4) return std::nullopt;
    return recipe_;
  }
  // What is no longer alive where most bytes are.
  Index net_bytes() const {
    Index net = given_up();
    for (const int b : recipe_.kept_on)
      if (lives_.life(b).last < lives_.peak()) net -= lives_.bytes(b);
    return net;
  }

 private:
  // The step that uses a temporary next, which lies idle where most bytes are alive.
  std::optional<int> used_again(int buffer) const {
    const Lives::Life& life = lives_.life(buffer);
    const int peak = lives_.peak();
    const auto next = std::lower_bound(life.uses.begin(), life.uses.end(), peak);
    if (!lives_.is_temporary(buffer) || next == life.uses.begin() || next == life.uses.end() ||
        *next == peak || life.last_write > peak)
      return std::nullopt;
    return *next;
  }
  Index given_up() const {
    Index sum = 0;
    for (const int b : recipe_.remade)
      if (used_again(b)) sum += lives_.bytes(b);
    return sum;
  }

  // A chain of more launches than these is never worth it.
  static constexpr std::size_t kMostSteps = 64;

  bool add(int buffer) {
    if (!recipe_.remade.insert(buffer).second) return true;
    if (!lives_.is_made_at_once(buffer) || lives_.life(buffer).last_write >= recipe_.at) return false;
    for (const int s : lives_.life(buffer).writers) {
      if (!recipe_.steps.insert(s).second) continue;
      if (recipe_.steps.size() > kMostSteps) return false;
      recipe_.us += schedule_.steps[place_of(s)].us;
      for (const Access& a : lives_.of_step(s)) {
        if (a.written) {
          if (a.buffer == buffer || recipe_.remade.count(a.buffer)) continue;
          if (a.read) return false;  // what it adds to is not there
          recipe_.scratch.insert(a.buffer);
        } else if (!recipe_.remade.count(a.buffer) && !is_there(a.buffer) && !add(a.buffer)) {
          return false;
        }
      }
    }
    recipe_.scratch.erase(buffer);
    return true;
  }

  // Whether a buffer has its values where the launches are repeated, or can keep them until then.
  bool is_there(int buffer) {
    if (lives_.is_input(buffer)) return true;
    const Lives::Life& life = lives_.life(buffer);
    if (life.last_write >= recipe_.at) return false;
    if (!lives_.is_temporary(buffer) || life.last >= recipe_.at) return true;
    const Index own = lives_.bytes(buffer);
    const bool small = own <= wanted_ / 8;
    if (!small && lives_.most_alive(life.last + 1, recipe_.at) + own > lives_.peak_bytes() - wanted_ / 2)
      return false;
    recipe_.kept_on.insert(buffer);
    return true;
  }

  const Schedule& schedule_;
  const Lives& lives_;
  Recipe recipe_;
  Index wanted_ = 0;
};

class Fitter {
 public:
  Fitter(Schedule schedule, std::vector<std::vector<tile::ViewUse>> uses)
      : schedule_(std::move(schedule)), uses_(std::move(uses)) {}

  const Schedule& schedule() const { return schedule_; }
  Index peak_bytes() const { return Lives(schedule_, uses_).peak_bytes(); }

  // Gives up the temporary that is cheapest to make again where most bytes are alive; false: there is none,
  // or as many launches are repeated as there were.
  bool give_up_one() {
    const auto repeated = std::count_if(schedule_.steps.begin(), schedule_.steps.end(),
                                        [](const Step& s) { return s.repeats; });
    if (2 * repeated > static_cast<std::ptrdiff_t>(schedule_.steps.size()) || ++given_up_ > most_given_up_)
      return false;
    const Lives lives(schedule_, uses_);
    Recipes recipes(schedule_, lives);
    std::optional<std::pair<double, Recipe>> best;
    for (std::size_t b = 0; b < schedule_.buffers.size(); ++b) {
      const auto buffer = static_cast<int>(b);
      const Lives::Life& life = lives.life(buffer);
      if (!lives.is_temporary(buffer) || life.first >= lives.peak() || life.last <= lives.peak()) continue;
      std::optional<Recipe> recipe = recipes.of(buffer);
      if (!recipe) continue;
      const double price = recipe->us / static_cast<double>(recipes.net_bytes());
      if (!best || price < best->first) best.emplace(price, std::move(*recipe));
    }
    if (!best) return false;
    apply(best->second, lives);
    return true;
  }

 private:
  void apply(const Recipe& recipe, const Lives& lives) {
    std::map<int, int> again;
    for (const std::set<int>& made : {recipe.remade, recipe.scratch})
      for (const int b : made) again[b] = copy_of(b);
    std::vector<Step> repeated;
    for (const int s : recipe.steps) {
      repeated.push_back(schedule_.steps[place_of(s)]);
      repeated.back().repeats = true;
      rename_written(repeated.back().plan, again, recipe);
    }
    for (std::size_t s = place_of(recipe.at); s < schedule_.steps.size(); ++s)
      for (const int b : recipe.remade)
        if (lives.life(b).last >= recipe.at) rename(schedule_.steps[s].plan, b, again.at(b));
    schedule_.steps.insert(schedule_.steps.begin() + recipe.at, repeated.begin(), repeated.end());
    const int behind = recipe.at + static_cast<int>(repeated.size());
    for (const int b : recipe.remade) take_the_place_of_later_ones(again.at(b), behind);
    drop_unread();
  }

  int copy_of(int buffer) {
    PlanBuffer copy = schedule_.buffers[place_of(buffer)];
    copy.role = PlanBuffer::Role::temporary;
    copy.position = -1;
    schedule_.buffers.push_back(copy);
    schedule_.origins.push_back(schedule_.origins[place_of(buffer)]);
    return static_cast<int>(schedule_.buffers.size()) - 1;
  }

  static void rename(PlanStep& step, int from, int to) {
    for (tile::ViewBinding& v : step.views)
      if (v.buffer == from) v.buffer = to;
    for (int* buffer : {&step.buffer, &step.from})
      if (*buffer == from) *buffer = to;
  }
  static void rename_written(PlanStep& step, const std::map<int, int>& again, const Recipe& recipe) {
    const auto renamed = [&](int b) {
      return recipe.remade.count(b) || recipe.scratch.count(b) ? again.at(b) : b;
    };
    for (tile::ViewBinding& v : step.views) v.buffer = renamed(v.buffer);
    if (step.buffer >= 0) step.buffer = renamed(step.buffer);
    if (step.from >= 0) step.from = renamed(step.from);
  }

  // A later copy of the same values is not made again where this one can live on until then.
  void take_the_place_of_later_ones(int buffer, int behind) {
    for (std::size_t b = 0; b < schedule_.buffers.size(); ++b) {
      const auto later = static_cast<int>(b);
      if (later == buffer || schedule_.origins[b] != schedule_.origins[place_of(buffer)]) continue;
      const Lives lives(schedule_, uses_);
      const Lives::Life &own = lives.life(buffer), &theirs = lives.life(later);
      if (theirs.first < behind || own.first < 0 || !schedule_.steps[place_of(theirs.first)].repeats ||
          !lives.is_made_at_once(later))
        continue;
      if (theirs.first > own.last && lives.most_alive(own.last + 1, theirs.first) + lives.bytes(buffer) >
                                         lives.peak_bytes() - lives.bytes(buffer) / 2)
        continue;
      const auto others_read = [&](int s) {
        const auto& all = lives.of_step(s);
        return std::any_of(all.begin(), all.end(), [&](const Access& a) {
          return a.written && a.buffer != later && lives.life(a.buffer).first_read >= 0;
        });
      };
      if (std::any_of(theirs.writers.begin(), theirs.writers.end(), others_read)) continue;
      std::set<int> gone(theirs.writers.begin(), theirs.writers.end());
      std::vector<Step> left;
      for (std::size_t s = 0; s < schedule_.steps.size(); ++s) {
        if (gone.count(static_cast<int>(s))) continue;
        left.push_back(std::move(schedule_.steps[s]));
        rename(left.back().plan, later, buffer);
      }
      schedule_.steps = std::move(left);
    }
  }

  // Repeated launches of which nothing is read.
  void drop_unread() {
    for (bool dropped = true; dropped;) {
      dropped = false;
      const Lives lives(schedule_, uses_);
      for (std::size_t s = schedule_.steps.size(); s-- > 0 && !dropped;) {
        if (!schedule_.steps[s].repeats) continue;
        const auto& all = lives.of_step(static_cast<int>(s));
        if (std::any_of(all.begin(), all.end(), [&](const Access& a) {
              return a.written && (!lives.is_temporary(a.buffer) || lives.life(a.buffer).first_read >= 0);
            }))
          continue;
        schedule_.steps.erase(schedule_.steps.begin() + static_cast<std::ptrdiff_t>(s));
        dropped = true;
      }
    }
  }

  Schedule schedule_;
  std::vector<std::vector<tile::ViewUse>> uses_;
  // Each temporary at most this often: what is made again may be given up once more, but not without end.
  static constexpr std::size_t kMostOften = 4;
  std::size_t given_up_ = 0, most_given_up_ = kMostOften * schedule_.buffers.size();
};

// Predicted; a layer's kernels come again, and are priced once.
std::vector<double> predicted_us(const Compiled& compiled) {
  std::vector<double> out;
  std::map<std::string_view, std::pair<const tile::Kernel*, double>> known;
  for (std::size_t k = 0; k < compiled.plan.kernels.size(); ++k) {
    const tile::Kernel& kernel = compiled.plan.kernels[k];
    auto& [like, us] = known[kernel.name];
    if (like == nullptr || !(*like == kernel)) {
      like = &kernel;
      us = compiled.target.predicted_us ? compiled.target.predicted_us(kernel, compiled.target)
                                        : compiled.kernels[k].cost.seconds(compiled.target) * 1e6;
    }
    out.push_back(us);
  }
  return out;
}

Schedule schedule_of(const Compiled& compiled, const std::vector<double>& us) {
  Schedule out{.steps = {}, .buffers = compiled.plan.buffers, .origins = {}};
  for (const PlanStep& s : compiled.plan.steps) {
    const double moved = s.kind == PlanStep::Kind::launch
                             ? 0
                             : static_cast<double>(bytes_of(compiled.plan.buffers[place_of(s.buffer)]));
    out.steps.push_back({s, s.kind == PlanStep::Kind::launch
                                ? us[place_of(s.kernel)]
                                : moved / compiled.target.bytes_per_s(moved) * 1e6});
  }
  for (std::size_t b = 0; b < out.buffers.size(); ++b) out.origins.push_back(static_cast<int>(b));
  return out;
}

// Each launch has a kernel of its own in the plan, as what places temporaries may change one.
Compiled with_schedule(const Compiled& compiled, const Schedule& schedule) {
  Compiled out = compiled;
  out.plan.buffers = schedule.buffers;
  out.plan.steps.clear();
  for (const Step& step : schedule.steps) {
    out.plan.steps.push_back(step.plan);
    if (!step.repeats || step.plan.kind != PlanStep::Kind::launch) continue;
    const auto k = place_of(step.plan.kernel);
    out.plan.steps.back().kernel = static_cast<int>(out.plan.kernels.size());
    out.plan.kernels.push_back(compiled.plan.kernels[k]);
    out.kernels.push_back(compiled.kernels[k]);
    std::string& note = out.kernels.back().note;
    note += note.empty() ? "launched again, so that less memory is needed"
                         : "; launched again, so that less memory is needed";
    out.variants.push_back(compiled.variants[k]);
  }
  return out;
}

}  // namespace

MemoryFit fit_memory(Compiled& compiled, Index bytes, const std::function<void(Compiled&)>& place) {
  MemoryFit fit{.asked = bytes};
  const auto placed = [&](const Schedule& schedule) {
    Compiled out = with_schedule(compiled, schedule);
    place(out);
    return out;
  };
  const std::vector<double> us = predicted_us(compiled);
  std::vector<std::vector<tile::ViewUse>> uses;
  for (const tile::Kernel& kernel : compiled.plan.kernels) {
    const auto of = tile::view_uses(kernel);
    uses.emplace_back(of.begin(), of.end());
  }
  std::vector<Schedule> tried = {schedule_of(compiled, us)};
  Compiled best = placed(tried[0]);
  fit.bytes_before = best.plan.arena_bytes;
  std::size_t taken = 0;
  Fitter fitter(tried[0], uses);
  while (best.plan.arena_bytes > bytes) {
    // What is alive at once is less than what has a place, and more where temporaries share one: it is asked
    // for in the same proportion.
    const Index alive = Lives(tried.back(), uses).peak_bytes();
    const Index goal = static_cast<Index>(static_cast<double>(alive) * static_cast<double>(bytes) /
                                          static_cast<double>(best.plan.arena_bytes));
    const std::size_t before = tried.size();
    while (fitter.peak_bytes() > std::min(goal, alive - 1) && fitter.give_up_one())
      tried.push_back(fitter.schedule());
    if (tried.size() == before) break;
    Compiled next = placed(tried.back());
    if (next.plan.arena_bytes >= best.plan.arena_bytes && next.plan.arena_bytes > bytes) {
      // Nothing was won by these; more may help.
      if (fitter.peak_bytes() > std::min(goal, alive - 1)) break;
    }
    if (next.plan.arena_bytes < best.plan.arena_bytes) {
      best = std::move(next);
      taken = tried.size() - 1;
    }
  }
  if (best.plan.arena_bytes <= bytes) {
    // The fewest that do.
    std::size_t low = 0, high = taken;
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      Compiled next = placed(tried[middle]);
      if (next.plan.arena_bytes <= bytes) {
        best = std::move(next);
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    taken = high;
  }
  fit.fits = best.plan.arena_bytes <= bytes;
  fit.bytes = best.plan.arena_bytes;
  for (const Step& s : tried[taken].steps) {
    fit.repeated += s.repeats ? 1 : 0;
    (s.repeats ? fit.more_us : fit.all_us) += s.us;
  }
  compiled = std::move(best);
  return fit;
}

std::string to_string(const MemoryFit& fit) {
  const auto megabytes = [](Index bytes) { return static_cast<double>(bytes) * 1e-6; };
  if (fit.repeated == 0)
    return fmt::format("temporaries take {:.1f} MB of the {:.1f} MB that they may", megabytes(fit.bytes),
                       megabytes(fit.asked));
  return fmt::format(
      "temporaries take {:.1f} MB, not {:.1f}, as {} launches are repeated: {:.1f} us are predicted for "
      "these, "
      "{:.1f} for all others",
      megabytes(fit.bytes), megabytes(fit.bytes_before), fit.repeated, fit.more_us, fit.all_us);
}

}  // namespace tilewright::passes
