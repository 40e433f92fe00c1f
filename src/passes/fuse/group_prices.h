// The predicted time of groups, made once for all that are equal but for names: what comes twelve times, as a
// network's layers do, is tried once.
#pragma once

#include "passes/fuse/group_form.h"

#include <tilewright/tile/target.h>

#include <unordered_map>

namespace tilewright::passes {

struct GroupPrice {
  Refusal refusal = Refusal::none;  // of a group that has no kernel, or none worth having
  double seconds = 0;
};

// What was asked for, and what it took: counts that do not depend on the machine.
struct GroupWork {
  std::size_t asked = 0;     // prices
  std::size_t programs = 0;  // built for them: one for each form
  std::size_t syms = 0;      // in these
};

class GroupPrices {
 public:
  // Of groups of any graphs; `forms` are those of `graph`.
  explicit GroupPrices(const tile::Target& target) : target_(target) {}
  const GroupPrice& of(const ir::Graph& graph, GroupForms& forms, const Group& group);

  const GroupWork& work() const { return work_; }

 private:
  GroupPrice made(const ir::Graph& graph, const Group& group);

  const tile::Target& target_;
  std::unordered_map<Hash128, GroupPrice> known_;
  GroupWork work_;
};

}  // namespace tilewright::passes
