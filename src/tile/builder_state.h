// BuilderState: the kernel that a Builder writes. The handles that it gave out share it, so that they can be
// told from those of another kernel, and used wrongly without harm, also behind the Builder's end.
#pragma once

#include <tilewright/tile/builder.h>

#include <deque>
#include <set>
#include <string>
#include <vector>

namespace tilewright::tile {

struct BuilderState {
  std::string name;  // of the kernel, also when that is finished
  Kernel kernel;
  std::deque<ValueInfo> values;  // kernel.values and kernel.views while they grow: references stay valid
  std::deque<ViewParam> views;
  std::vector<Block*> open;  // innermost last
  std::set<std::string> names;
  Builder* builder = nullptr;  // none: it was destroyed
  bool finished = false;
};

[[noreturn]] inline void fail(const Location& where, const std::string& message) {
  throw Error(message, where);
}

}  // namespace tilewright::tile
