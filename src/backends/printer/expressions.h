// How large a printed expression grows before a part of it gets a name: counted in operations, so that what
// is printed does not depend on how long names are.
#pragma once

namespace tilewright::printer {

// An expression of more operations gets a name: about as many as one reads at a glance, and as fit a line.
inline constexpr int kExpressionOperations = 3;

}  // namespace tilewright::printer
