// Scripts by which shells complete tw's command line, from the tree of commands.
#pragma once

#include <string>

#include "tw/command/command_tree.h"

namespace tilewright::tw {

std::string bash_completion(const Command& root);
std::string zsh_completion(const Command& root);
std::string fish_completion(const Command& root);

}  // namespace tilewright::tw
