// docs/ops.md as text, generated from the op table and simplify's tables.
#pragma once

#include <string>

namespace tilewright::tools {

std::string ops_document();

}  // namespace tilewright::tools
