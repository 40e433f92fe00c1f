// Work on the cores that this process may use, for a while.
#pragma once

#include <tilewright/base/thread_pool.h>

#include <algorithm>
#include <cstddef>

namespace tilewright {

// Whether there are several of them.
inline bool has_several_cores() { return allowed_cpu_count() > 1; }

// Does `work` for each number below `count`, several at once from `least` on. The first exception is thrown
// here; numbers that were not begun by then are left out.
template <class Work>
void side_by_side(std::size_t count, std::size_t least, const Work& work) {
  if (count < least || count < 2) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  const auto all = static_cast<Index>(count);
  ThreadPool workers(static_cast<int>(std::min<Index>(all, allowed_cpu_count())),
                     {.spin_us = 0, .pin = false});
  workers.parallel_for(
      all,
      [&](Index begin, Index end, int) {
        for (Index i = begin; i < end; ++i) work(static_cast<std::size_t>(i));
      },
      /*grain=*/1);
}

}  // namespace tilewright
