// Shadow memory of a checked run: for each cell, the largest piece of memory that every element is whole
// pieces of, who wrote it and who read it. Views that share memory share their shadow.
#pragma once

#include <cstdlib>
#include <memory>
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
  // All zeros: written before the run, touched by no program.
  struct Cell {
    std::int32_t writer;  // program + 1; kAdded for atomic additions
    std::int32_t reader;  // first program + 1; kMany once two programs have read
    bool uninitialized;
    bool scattered;
  };
  // The place of a view's buffer in the shadow.
  struct Window {
    std::size_t origin = 0;    // the cell of the view's coordinate (0, …, 0)
    Index begin = 0, end = 0;  // bytes of the buffer around it
    Index element_bytes = 1;
  };
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::uintptr_t cell_bytes_ = 0;
  // Cells from calloc: pages of large buffers that no program touches are never taken.
  std::unique_ptr<Cell, Free> cells_;
  std::vector<Window> windows_;  // by view
};

}  // namespace tilewright::reference
