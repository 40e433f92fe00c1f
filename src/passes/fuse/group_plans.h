// The kernels of groups, written once for all groups that are equal but for names: what comes twelve times,
// as a network's layers do, is planned once. A group's price is what the target predicts for its kernels, and
// these are the ones that a group which is taken becomes.
#pragma once

#include "passes/emit/lower.h"
#include "passes/fuse/group_form.h"

#include <tilewright/tile/target.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tilewright::passes {

struct GroupPrice {
  Refusal refusal = Refusal::none;  // of a group that has no kernel, or none worth having
  double seconds = 0;               // predicted for the kernels that it becomes
  double floor_s = 0;               // what its bytes and operations take at the target's rates
  double bytes = 0;                 // that it moves
};

// What was asked for, and what it took: counts that do not depend on the machine.
struct GroupWork {
  std::size_t asked = 0;     // prices, and floors alone
  std::size_t programs = 0;  // built for them: one for each form
  std::size_t exprs = 0;     // in these
};

struct PlannedGroup {
  GroupCost cost;
  Lowered lowered;
};

// A name for a group's kernels, which are named where they are taken.
inline constexpr std::string_view kUnnamed = "group";
void name_kernels(PlannedGroup& group, const std::string& name);

// Several threads may ask at once, each with forms of its own.
class GroupPlans {
 public:
  // A plan, in the numbers of the group it was made for.
  struct Plan {
    GroupForm form;  // of that group
    GroupCost cost;
    Lowered lowered;  // its kernels, without their names
  };

  explicit GroupPlans(const tile::Target& target) : target_(target) {}
  // Threads ask from now on. Groups of one form differ in the names of what they read, and any of them may
  // come first: those that are taken are written again, by their own names, so as to be the same each time.
  void serve_threads() { serves_threads_ = true; }
  // Groups may be of any graphs; `forms` are those of `graph`.
  // Without `seconds`: no kernel is written, and one may yet be refused that cannot be.
  GroupPrice floor(const ir::Graph& graph, GroupForms& forms, const Group& group);
  GroupPrice price(const ir::Graph& graph, GroupForms& forms, const Group& group);
  // The seconds of a group that has a price, as a part of what moves `bytes` in all: what these do not leave
  // in a cache is not there. Otherwise two halves, each of which a cache holds, would seem faster than the
  // whole, which it does not hold.
  double seconds_beside(const ir::Graph& graph, GroupForms& forms, const Group& group, double bytes);
  // The group's kernels, in its own numbers and by `name`; or why it has none. `form` is its own.
  std::variant<PlannedGroup, Refusal> plan(const ir::Graph& graph, const GroupForm& form, const Group& group,
                                           const LowerOptions& options);

  const tile::Target& target() const { return target_; }
  GroupWork work() const;

 private:
  enum class Needed : std::uint8_t { floor, kernels };
  struct Known {
    std::mutex mutex;       // of what follows
    bool is_tried = false;  // for its floor at least
    GroupPrice price;
    bool is_written = false;             // the kernels, which `seconds` are of
    std::unique_ptr<const Plan> plan;    // none where there is none, or no room
    bool has_dots = false;               // may have several tiles
    std::optional<std::size_t> fastest;  // of them, once one was looked for: the plan is by it
    std::map<double, double> beside_s;  // seconds_beside(), by the rate of the cache that holds so many bytes
  };
  // A group's tiles, or why it is not worth having.
  std::variant<TiledGroup, Refusal> tiled(const ir::Graph& graph, const Group& group, GroupWork& work) const;
  void write(const ir::Graph& graph, GroupForm form, const TiledGroup& tiled, Known& known);
  Known& entry(const Hash128& price_key);
  void count(const GroupWork& more);
  // What is known of a group, with at least what is needed. Its mutex is held. `form` gives the group's form.
  template <class Form>
  void find_out(const ir::Graph& graph, const Group& group, Needed needed, const Form& form, Known& known);
  // Writes a group by the tiles whose kernels are predicted to be fastest. Only groups that are taken are
  // worth writing so often: until then a group's price is that of its first tiles.
  PlannedGroup write_fastest(const ir::Graph& graph, const LoopNest& nest, const LowerOptions& options,
                             std::optional<std::size_t>& which) const;
  PlannedGroup taken(const ir::Graph& graph, const Group& group, Known& known,
                     std::unique_lock<std::mutex>& lock) const;

  const tile::Target target_;
  bool serves_threads_ = false;
  mutable std::mutex mutex_;                  // of what follows, but for what stands at the keys
  std::unordered_map<Hash128, Known> known_;  // by price keys
  std::size_t kept_ = 0;                      // exprs of plans
  GroupWork work_;
};

}  // namespace tilewright::passes
