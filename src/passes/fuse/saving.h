// When a change of groups is worth it: predictions and floors of all the groups concerned.
#pragma once

#include "passes/fuse/group_plans.h"

namespace tilewright::passes {

// Times of several groups together.
struct Times {
  double seconds = 0, floor_s = 0;
  void add(const GroupPrice& price) { seconds += price.seconds, floor_s += price.floor_s; }
};

struct Trust {
  double trusted = 0;  // how much longer than before it may be predicted where floors say that it saves
  double error = 0;    // how much shorter it must be predicted where they do not
};

// Bytes and operations decide, but where the schedules' times say otherwise by more than their error.
inline bool saves(const Times& before, const Times& after, const Trust& trust) {
  const bool floors_save = after.floor_s < before.floor_s;
  return after.seconds < before.seconds * (1 + (floors_save ? trust.trusted : -trust.error));
}

}  // namespace tilewright::passes
