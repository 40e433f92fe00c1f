// The text form of graphs: parse(print(g)) == g.
#pragma once

#include "ir/op.h"

#include <span>
#include <string>
#include <string_view>

namespace tilewright::ir {

std::string print(const Graph& graph);
// `ops` is the table the names are looked up in. Malformed text gives a Failure with line and column.
Result<Graph> parse(std::string_view text, std::span<const Op* const> ops);

}  // namespace tilewright::ir
