// Short rows that lie one after another are walked as one long row: no vector ends with a row.
#pragma once

#include "backends/cpu/text/access.h"

#include <optional>

namespace tilewright::cpu {

struct LoopPart;

// How the elements of an access lie beside rows that are walked as one.
enum class BesideRows : unsigned char {
  along,   // one after another, too
  again,   // a row that is the same for all rows
  by_row,  // one element for each row
  one,     // one for all
  apart,   // otherwise
};
BesideRows beside_rows(const Access& access, Index columns);

// The columns of a loop whose rows can be walked as one, and are short enough to leave many lanes idle; 0:
// none.
Index joined_columns(const KernelText& k, const LoopPart& part);
// Where such rows end before the loop does: the bound of all that is stored.
std::optional<AccessBound> end_of_joined_rows(const KernelText& k, const LoopPart& part);

}  // namespace tilewright::cpu
