// Tiles whose elements move to other places: transpose and reshape between buffers.
#pragma once
#include "tw_cpu/core.h"

namespace tw {

template <int Rows, int Columns, class T>
static void transpose(const T* from, i64 from_stride, T* to, i64 to_stride) {
  for (i64 r = 0; r < Rows; ++r)
    for (i64 c = 0; c < Columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
}

// The same elements in row-major order.
template <int FromRows, int FromColumns, int ToRows, int ToColumns, class T>
static void reshape(const T* from, i64 from_stride, T* to, i64 to_stride) {
  static_assert(FromRows * FromColumns == ToRows * ToColumns);
  for (i64 i = 0; i < i64(FromRows) * FromColumns; ++i)
    to[i / ToColumns * to_stride + i % ToColumns] = from[i / FromColumns * from_stride + i % FromColumns];
}

}  // namespace tw
