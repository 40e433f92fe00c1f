// The kernels of groups, written once for all groups that are equal but for names: what comes twelve times,
// as a network's layers do, is planned once. A group's price is what the target predicts for its kernels, and
// these are the ones that a group which is taken becomes.
#pragma once

#include "passes/emit/lower.h"
#include "passes/fuse/group_form.h"

#include <tilewright/tile/target.h>

#include <map>
#include <memory>
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

class GroupPlans {
 public:
  // A plan, in the numbers of the group it was made for.
  struct Plan {
    GroupForm form;  // of that group
    GroupCost cost;
    Lowered lowered;  // its kernels, without their names
  };

  explicit GroupPlans(const tile::Target& target) : target_(target) {}
  // Groups may be of any graphs; `forms` are those of `graph`.
  // Without `seconds`: no kernel is written, and one may yet be refused that cannot be.
  GroupPrice floor(const ir::Graph& graph, GroupForms& forms, const Group& group);
  GroupPrice price(const ir::Graph& graph, GroupForms& forms, const Group& group);
  // The seconds of a group that has a price, as a part of what moves `bytes` in all: what these do not leave
  // in a cache is not there. Otherwise two halves, each of which a cache holds, would seem faster than the
  // whole, which it does not hold. The price itself where the plan was not kept (programs of more than 100
  // thousand exprs).
  double seconds_beside(const ir::Graph& graph, GroupForms& forms, const Group& group, double bytes);
  // The group's kernels, in its own numbers and by `name`; or why it has none.
  std::variant<PlannedGroup, Refusal> plan(const ir::Graph& graph, GroupForms& forms, const Group& group,
                                           const LowerOptions& options);

  const tile::Target& target() const { return target_; }
  const GroupWork& work() const { return work_; }

 private:
  enum class Needed : std::uint8_t { floor, kernels };
  struct Known {
    GroupPrice price;
    bool is_written = false;            // the kernels, which `seconds` are of
    std::unique_ptr<const Plan> plan;   // none where there is none, or no room
    bool has_dots = false;              // may have several tiles
    bool is_fastest = false;            // the plan is by the fastest of them
    std::map<double, double> beside_s;  // seconds_beside(), by the rate of the cache that holds so many bytes
  };
  // A group's tiles, or why it is not worth having.
  std::variant<TiledGroup, Refusal> tiled(const ir::Graph& graph, const Group& group, GroupWork& work) const;
  void write(const ir::Graph& graph, const GroupForm& form, const TiledGroup& tiled, Known& known);
  Known& known(const ir::Graph& graph, GroupForms& forms, const Group& group, Needed needed);
  // Writes a group by the tiles whose kernels are predicted to be fastest. Only groups that are taken are
  // worth writing so often: until then a group's price is that of its first tiles.
  PlannedGroup write_fastest(const ir::Graph& graph, const LoopNest& nest, const LowerOptions& options) const;

  const tile::Target target_;
  std::unordered_map<Hash128, Known> known_;  // by price keys
  std::size_t kept_ = 0;                      // exprs of plans
  GroupWork work_;
};

}  // namespace tilewright::passes
