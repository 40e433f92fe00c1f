// Tensors as text: as NumPy prints an array, with the type behind it.
//
//   std::cout << x;   [[1.   2.5 ]
//                      [0.25 4.  ]] f32[2,2]
#pragma once

#include <tilewright/tensor/tensor.h>

#include <iosfwd>
#include <string>

#pragma GCC visibility push(default)
namespace tilewright {

// As numpy.set_printoptions().
struct PrintOptions {
  int precision = 8;       // most digits behind the point, 0 to 100
  Index threshold = 1000;  // of more elements than these, the first and last of each axis stand for all
  Index edge_items = 3;    // so many of them at either end
  int line_width = 75;
};

// NumPy's str(x) (that of version 2), then a space and the type: "[1. 2. 3.] f32[3]". Floats have the fewest
// digits that tell them from their neighbours in their own type, `precision` at most; those of bf16 and f8,
// which NumPy does not have, are printed as the f32 that they are: 448, and not 450. A tensor without a
// value says so. All elements are read, also where few are printed; inside compile() that is a graph break,
// as to_vector() is. Throws Error where an option is out of range, or the tensor was donated.
std::string to_string(const Tensor& x, const PrintOptions& options = {},
                      const Location& where = Location::current());

namespace detail {
// A tensor that is written to a stream, with the line it stands on.
struct Printed {
  Printed(const Tensor& t, const Location& l = Location::current()) : tensor(t), where(l) {}
  const Tensor& tensor;
  Location where;
};
}  // namespace detail
std::ostream& operator<<(std::ostream& out, const detail::Printed& x);  // to_string(x)

}  // namespace tilewright
#pragma GCC visibility pop
