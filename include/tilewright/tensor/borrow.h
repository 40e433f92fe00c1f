// borrow(): a tensor over memory that somebody else keeps, without a copy where the device can use it as it
// lies.
#pragma once

#include <tilewright/tensor/tensor.h>

#pragma GCC visibility push(default)
namespace tilewright {

// What may be done to borrowed memory. Into read_only memory nothing is written: into() over it is an Error,
// and a donated tensor is copied first.
enum class Access { read_write, read_only };

// What becomes of memory that cannot be used as it lies.
enum class Copy {
  never,      // an Error, which says why
  if_needed,  // a tensor of its own: later changes on either side are not seen on the other
};

struct BorrowOptions {
  Strides strides = {};     // in elements, one for each axis, of any sign; empty: row-major
  std::string device = "";  // where the memory lies: "cpu", "cuda:N"; "": the Context's own device
  Access access = Access::read_write;
  Copy copy = Copy::never;
  // Keeps the memory: it is let go once, after the last tensor that uses it is gone and the work launched by
  // then is done, or before borrow() returns or throws where the tensor does not need it. On a GPU nobody
  // waits for that work: the owner goes at a later allocation or synchronisation. It may go on any thread,
  // and must not throw. Null: the caller keeps the memory for as long.
  std::shared_ptr<void> owner = {};
  // Host memory: whether the process may read it (write it, with read_write), as far as the system knows.
  // That takes about 50 us, which a caller who knows the answer may save.
  bool check = true;
};

// A tensor of this shape and type whose first element lies at `data`; the bytes of a bool are 0 or 1.
//
// No copy is made of row-major memory whose address is a multiple of an element's size on the CPU, and of 256
// bytes on a GPU and on "reference" (axes of extent 1 have any stride). Everything else on the host is
// copied, or is an Error, as `copy` says: other strides, negative and overlapping ones too, and other
// addresses. On a GPU another address is copied, other strides are an Error. A tensor of no elements needs no
// memory.
//
// Throws Error: a null pointer; a negative extent, or more elements than any memory has; as many strides as
// axes, no less; memory that reaches past the end of the address space, or that is known not to be the
// device's; a device of no such name. What cannot be known: that the memory was freed meanwhile and belongs
// to another, or that another writes it while it is read. Inside compile() the tensor is captured.
Tensor borrow(Context& context, void* data, const Shape& shape, DType dtype,
              const BorrowOptions& options = {}, const Location& where = Location::current());
// The same of memory that is read_only, whatever `options` say.
Tensor borrow(Context& context, const void* data, const Shape& shape, DType dtype,
              const BorrowOptions& options = {}, const Location& where = Location::current());

}  // namespace tilewright
#pragma GCC visibility pop
