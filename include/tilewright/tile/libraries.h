// Libraries: whether kernels of vendors' libraries may take the place of ours.
#pragma once

namespace tilewright::tile {

// What part calls of vendors' libraries take where schedules are measured.
enum class Libraries {
  none,      // all that runs is our own
  compared,  // they are measured beside our kernels, and the fastest runs
  alone,     // no kernel of ours is measured; it runs where a library has no call: for comparisons
};

}  // namespace tilewright::tile
