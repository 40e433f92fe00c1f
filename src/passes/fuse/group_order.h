// Who reads whom among fusion's groups, while they are merged, in an order that respects it: what lies
// between two groups is all that a path from one to the other can pass.
#pragma once

#include "passes/fuse/sorted.h"
#include "passes/nest/index_expr.h"

#include <vector>

namespace tilewright::passes {

class GroupOrder {
 public:
  // Groups are numbered from 0, each after those it reads.
  explicit GroupOrder(int groups);

  void add_edge(int writer, int reader);
  const std::vector<int>& readers(int group) const { return readers_[at(group)]; }
  const std::vector<int>& writers(int group) const { return writers_[at(group)]; }

  // Whether a path from a to b leaves both. Where the search would take long, it says that one does: the two
  // stay apart.
  bool has_path_through_third(int a, int b) const;

  // `from` becomes a part of `into`. No path between them leaves both.
  void merge(int into, int from);

 private:
  std::vector<int> reached_before(int from, int end) const;
  void place_together(int into, int from);

  std::vector<std::vector<int>> readers_, writers_;  // sorted
  std::vector<int> place_;                           // of a group
  std::vector<int> in_place_;                        // the group, or -1: merged into another
  // A search's state: by group the last search that saw it, and the groups that are still to be looked at.
  void begin_search() const;
  bool see(int group) const;
  mutable std::vector<int> seen_in_;
  mutable int search_ = 0;
  mutable std::vector<int> open_;
};

}  // namespace tilewright::passes
