// Shadow memory of a checked run: for each byte who wrote it and who read it. Views that share memory share
// their shadow.
#pragma once

#include <string>

#include "backends/reference/memory.h"

namespace tilewright::reference {

enum class Touch : unsigned char { read, store, scatter, add };

class Shadow {
 public:
  Shadow(const std::vector<BoundView>& views, const std::vector<ViewBinding>& bindings);

  // Notes that `program` touches the element at `offset` (in elements from the view's origin). Returns what
  // is wrong with that, empty when nothing is.
  std::string touch(int view, Index offset, Index program, Touch how);

 private:
  struct Byte {
    std::int32_t writer = 0;  // program + 1; kAdded for atomic additions
    std::int32_t reader = 0;  // first program + 1; kMany once two programs have read
    bool initialized = true;
    bool scattered = false;
  };
  // Where a view's buffer lies in the shadow.
  struct Window {
    std::size_t origin = 0;    // the view's coordinate (0, …, 0)
    Index begin = 0, end = 0;  // bytes of the buffer around it
    Index element_bytes = 1;
  };
  std::vector<Byte> bytes_;
  std::vector<Window> windows_;  // by view
};

}  // namespace tilewright::reference
