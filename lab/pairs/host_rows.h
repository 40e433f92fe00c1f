// What float64 references are written with: plain loops over rows, shared out over the host's cores. Nothing
// here or in a reference knows the compiler.
#pragma once

#include <tilewright/base/thread_pool.h>

#include <span>
#include <vector>

namespace tilewright::lab {

// The elements of a tensor in float64, row-major.
using HostArray = std::vector<double>;
using HostArrays = std::vector<HostArray>;

// f(r) for every row r of `rows`.
template <class F>
void for_rows(ThreadPool& pool, Index rows, F&& f) {
  pool.parallel_for(rows, [&](Index begin, Index end, int) {
    for (Index r = begin; r < end; ++r) f(r);
  });
}

inline std::span<const double> row_of(const HostArray& a, Index r, Index columns) {
  return {a.data() + r * columns, static_cast<std::size_t>(columns)};
}
inline std::span<double> row_of(HostArray& a, Index r, Index columns) {
  return {a.data() + r * columns, static_cast<std::size_t>(columns)};
}

}  // namespace tilewright::lab
