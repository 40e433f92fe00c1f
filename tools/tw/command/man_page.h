// The page of the manual, tw(1), from the tree of commands.
#pragma once

#include <string>

#include "tw/command/command_tree.h"

namespace tilewright::tw {

// The page of a command in the macros of man(7).
std::string man_page(const Command& root);

}  // namespace tilewright::tw
