// What is thrown where a device cannot hold a tensor or what a function needs beside its results: no mistake,
// and something a program may catch, to go on with less.
#pragma once

#include <tilewright/base/error.h>

#pragma GCC visibility push(default)
namespace tilewright {

class OutOfMemory : public Unavailable {
 public:
  using Unavailable::Unavailable;
};

}  // namespace tilewright
#pragma GCC visibility pop
