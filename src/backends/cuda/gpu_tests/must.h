// A result, or an Error that ends the test, for GPU tests and benchmarks.
#pragma once

#include <tilewright/base/error.h>

#include <utility>

namespace tilewright::cuda {

// The value; an Error with the failure's message where there is none.
template <class T>
T must(Result<T> result) {
  if (!result) throw Error(result.error().message);
  return std::move(*result);
}

}  // namespace tilewright::cuda
