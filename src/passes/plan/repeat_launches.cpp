// Launches that make given-up temporaries again, and the search for the one that costs least.
#include "passes/plan/repeat_launches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace tilewright::passes {

using tile::PlanBuffer;

// What is launched again so that a temporary is there once more at a step.
struct Recipe {
  int at = -1;
  std::set<int> steps;
  std::set<int> remade;   // buffers, the wanted one among them
  std::set<int> scratch;  // buffers that the launches write as well
  std::set<int> kept_on;  // temporaries that live on until then
  double us = 0;
};

namespace {

std::size_t place_of(int i) { return static_cast<std::size_t>(i); }

class Recipes {
 public:
  Recipes(const RepeatingPlan& plan, const PlanLives& lives) : plan_(plan), lives_(lives) {}

  // The recipe of a buffer that is alive where most bytes are, but not used there. None if it cannot be made
  // again, or if that would take as much memory elsewhere.
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
  // The recipe of what a checkpointed call made, of which `wanted` is read from step `at` on. What else the
  // launches read is kept for them. None if nothing can be made again.
  std::optional<Recipe> of_call(int at, std::set<int> wanted, std::set<int> made) {
    recipe_ = {.at = at};
    call_ = CallMakes{std::move(made), std::move(wanted)};
    for (const int b : std::set<int>(call_->wanted)) {
      const Recipe before = recipe_;
      if (add(b)) continue;
      recipe_ = before;
      call_->wanted.erase(b);
    }
    if (recipe_.remade.empty()) return std::nullopt;
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
    const PlanLives::Life& life = lives_.life(buffer);
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
      if (recipe_.steps.size() > kMostSteps && !call_) return false;
      recipe_.us += plan_.steps[place_of(s)].us;
      for (const auto& [other, use] : lives_.of_step(s)) {
        if (use.written) {
          if (recipe_.remade.count(other)) continue;
          if (use.read) return false;  // what it adds to is not there
          recipe_.scratch.insert(other);
        } else if (!recipe_.remade.count(other) && !is_there(other) && !add(other)) {
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
    const PlanLives::Life& life = lives_.life(buffer);
    if (life.last_write >= recipe_.at) return false;
    if (!lives_.is_temporary(buffer)) return true;
    if (call_ && call_->all.count(buffer) == 0) return true;
    if (life.last >= recipe_.at) return !call_ || call_->wanted.count(buffer) == 0;
    if (call_) return false;
    const Index own = lives_.bytes(buffer);
    const bool small = own <= wanted_ / 8;
    if (!small && lives_.most_alive(life.last + 1, recipe_.at) + own > lives_.peak_bytes() - wanted_ / 2)
      return false;
    recipe_.kept_on.insert(buffer);
    return true;
  }

  const RepeatingPlan& plan_;
  const PlanLives& lives_;
  Recipe recipe_;
  Index wanted_ = 0;
  struct CallMakes {
    std::set<int> all, wanted;  // buffers
  };
  std::optional<CallMakes> call_;
};

// Most times that a temporary is made again: it may be given up once more afterwards, but not without end.
constexpr std::size_t kMostOften = 4;

}  // namespace

LaunchRepeater::LaunchRepeater(RepeatingPlan plan, KernelUses kernels)
    : plan_(std::move(plan)),
      kernels_(std::move(kernels)),
      most_given_up_(kMostOften * plan_.buffers.size()) {}

bool LaunchRepeater::give_up_one() {
  const auto repeated =
      std::count_if(plan_.steps.begin(), plan_.steps.end(), [](const PlannedStep& s) { return s.repeats; });
  if (2 * repeated > static_cast<std::ptrdiff_t>(plan_.steps.size()) || ++given_up_ > most_given_up_)
    return false;
  const PlanLives lives(plan_, kernels_);
  Recipes recipes(plan_, lives);
  std::optional<std::pair<double, Recipe>> best;
  for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
    const auto buffer = static_cast<int>(b);
    const PlanLives::Life& life = lives.life(buffer);
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

bool LaunchRepeater::give_up_checkpointed(const CheckpointedLaunches& launches) {
  const auto last = std::max_element(launches.calls.begin(), launches.calls.end());
  bool any = false;
  for (int call = 1; last != launches.calls.end() && call <= *last; ++call)
    any = give_up_call(call, launches) || any;
  return any;
}

bool LaunchRepeater::give_up_call(int call, const CheckpointedLaunches& launches) {
  const PlanLives lives(plan_, kernels_);
  const auto call_of = [&](int s) {
    const tile::PlanStep& step = plan_.steps[place_of(s)].plan;
    return step.kind == tile::PlanStep::Kind::launch ? launches.calls[place_of(step.kernel)] : 0;
  };
  const auto is_launch = [&](int s) {
    return plan_.steps[place_of(s)].plan.kind == tile::PlanStep::Kind::launch;
  };
  int end = -1;  // the call's last launch
  for (int s = 0; s < static_cast<int>(plan_.steps.size()); ++s)
    if (call_of(s) == call && !plan_.steps[place_of(s)].repeats) end = s;
  // What it makes, and where that is read first behind it.
  std::set<int> made, wanted;
  int at = static_cast<int>(plan_.steps.size());
  for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b) {
    const PlanLives::Life& life = lives.life(b);
    const auto is_other = [&](int s) { return is_launch(s) && call_of(s) != call; };
    const auto is_own = [&](int s) { return call_of(s) == call; };
    if (!lives.is_temporary(b) || std::none_of(life.writers.begin(), life.writers.end(), is_own) ||
        std::any_of(life.writers.begin(), life.writers.end(), is_other))
      continue;
    made.insert(b);
    const auto next = std::upper_bound(life.uses.begin(), life.uses.end(), end);
    if (next == life.uses.end() || launches.results.count(b)) continue;
    wanted.insert(b);
    at = std::min(at, *next);
  }
  const std::optional<Recipe> recipe = Recipes(plan_, lives).of_call(at, std::move(wanted), std::move(made));
  if (recipe) apply(*recipe, lives);
  return recipe.has_value();
}

void LaunchRepeater::apply(const Recipe& recipe, const PlanLives& lives) {
  std::map<int, int> again;
  for (const std::set<int>& made : {recipe.remade, recipe.scratch})
    for (const int b : made) again[b] = copy_of(b);
  std::vector<PlannedStep> repeated;
  for (const int s : recipe.steps) {
    repeated.push_back(plan_.steps[place_of(s)]);
    repeated.back().repeats = true;
    for (const auto& [from, to] : again) rename_buffer(repeated.back().plan, from, to);
  }
  for (std::size_t s = place_of(recipe.at); s < plan_.steps.size(); ++s)
    for (const int b : recipe.remade)
      if (lives.life(b).last >= recipe.at) rename_buffer(plan_.steps[s].plan, b, again.at(b));
  plan_.steps.insert(plan_.steps.begin() + recipe.at, repeated.begin(), repeated.end());
  const int behind = recipe.at + static_cast<int>(repeated.size());
  for (const int b : recipe.remade) take_the_place_of_later_ones(again.at(b), behind);
  drop_unread();
}

int LaunchRepeater::copy_of(int buffer) {
  PlanBuffer copy = plan_.buffers[place_of(buffer)];
  copy.role = PlanBuffer::Role::temporary;
  copy.position = -1;
  plan_.buffers.push_back(copy);
  plan_.origins.push_back(plan_.origins[place_of(buffer)]);
  return static_cast<int>(plan_.buffers.size()) - 1;
}

void LaunchRepeater::take_the_place_of_later_ones(int buffer, int behind) {
  for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
    const auto later = static_cast<int>(b);
    if (later == buffer || plan_.origins[b] != plan_.origins[place_of(buffer)]) continue;
    const PlanLives lives(plan_, kernels_);
    const PlanLives::Life &own = lives.life(buffer), &theirs = lives.life(later);
    if (theirs.first < behind || own.first < 0 || !plan_.steps[place_of(theirs.first)].repeats ||
        !lives.is_made_at_once(later))
      continue;
    if (theirs.first > own.last && lives.most_alive(own.last + 1, theirs.first) + lives.bytes(buffer) >
                                       lives.peak_bytes() - lives.bytes(buffer) / 2)
      continue;
    const auto others_read = [&](int s) {
      const auto& all = lives.of_step(s);
      return std::any_of(all.begin(), all.end(), [&](const auto& use) {
        return use.second.written && use.first != later && lives.life(use.first).first_read >= 0;
      });
    };
    if (std::any_of(theirs.writers.begin(), theirs.writers.end(), others_read)) continue;
    std::set<int> gone(theirs.writers.begin(), theirs.writers.end());
    std::vector<PlannedStep> left;
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      if (gone.count(static_cast<int>(s))) continue;
      left.push_back(std::move(plan_.steps[s]));
      rename_buffer(left.back().plan, later, buffer);
    }
    plan_.steps = std::move(left);
  }
}

void LaunchRepeater::drop_unread() {
  for (bool dropped = true; dropped;) {
    dropped = false;
    const PlanLives lives(plan_, kernels_);
    for (std::size_t s = plan_.steps.size(); s-- > 0 && !dropped;) {
      if (!plan_.steps[s].repeats) continue;
      const auto& all = lives.of_step(static_cast<int>(s));
      if (std::any_of(all.begin(), all.end(), [&](const auto& use) {
            return use.second.written &&
                   (!lives.is_temporary(use.first) || lives.life(use.first).first_read >= 0);
          }))
        continue;
      plan_.steps.erase(plan_.steps.begin() + static_cast<std::ptrdiff_t>(s));
      dropped = true;
    }
  }
}

}  // namespace tilewright::passes
