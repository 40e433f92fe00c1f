// Rows of a block go through bulk conversion when they are contiguous, element by element otherwise.
#include "backends/reference/memory.h"

#include <algorithm>

namespace tilewright::reference {

using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::TileType;

std::vector<BoundView> bind_views(const Kernel& kernel, const std::vector<ViewBinding>& bindings,
                                  const std::vector<std::int64_t>& scalars) {
  std::vector<BoundView> views;
  for (std::size_t v = 0; v < kernel.views.size(); ++v) {
    const tile::ViewParam& param = kernel.views[v];
    BoundView view{.param = &param,
                   .data = static_cast<char*>(bindings[v].data),
                   .element_bytes = static_cast<Index>(size_bytes(param.dtype))};
    for (const tile::Dim& d : param.extents) view.extents.push_back(d.in(scalars.data()));
    for (const tile::Dim& d : param.strides) view.strides.push_back(d.in(scalars.data()));
    views.push_back(std::move(view));
  }
  return views;
}

BlockWalk walk_block(const Kernel& kernel, const Op& op, const BoundView& view, const Values& values) {
  const std::size_t first = op.kind == OpKind::store ? 1 : 0;
  const TileType& type = kernel.type(first == 0 ? op.results[0] : op.operands[0]);
  BlockWalk walk;
  bool empty = false;
  for (std::size_t d = 0; d < view.extents.size(); ++d) {
    const Index start = scalar(values, op.operands[first + d]);
    walk.offset += start * view.strides[d];
    if (op.bounded && (start >= view.extents[d] || start < 0) &&
        std::find(op.tile_dims.begin(), op.tile_dims.end(), static_cast<int>(d)) == op.tile_dims.end())
      empty = true;
  }
  for (std::size_t a = 0; a < op.tile_dims.size(); ++a) {
    const auto d = static_cast<std::size_t>(op.tile_dims[a]);
    const Index start = scalar(values, op.operands[first + d]), extent = type.shape[a];
    BlockWalk::Axis axis{.extent = extent, .begin = 0, .end = extent, .stride = view.strides[d]};
    if (op.bounded) {
      axis.begin = std::clamp<Index>(-start, 0, extent);
      axis.end = std::clamp<Index>(view.extents[d] - start, axis.begin, extent);
    }
    (a + 1 == op.tile_dims.size() ? walk.inner : walk.outer) = axis;
  }
  if (empty) walk.inner.end = walk.inner.begin;
  return walk;
}

namespace {

template <class T>
void read_strided(const char* from, Index stride, Index count, T* to, DType dtype) {
  const Index step = stride * static_cast<Index>(size_bytes(dtype));
  for (Index i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, double>) {
      to[i] = load_f64(from + i * step, dtype);
    } else {
      to[i] = load_i64(from + i * step, dtype);
    }
  }
}

template <class T>
void write_strided(const T* from, Index stride, Index count, char* to, DType dtype) {
  const Index step = stride * static_cast<Index>(size_bytes(dtype));
  for (Index i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, double>) {
      store_f64(to + i * step, dtype, from[i]);
    } else {
      store_i64(to + i * step, dtype, from[i]);
    }
  }
}

template <class T>
constexpr DType kHeldAs = std::is_same_v<T, double> ? DType::f64 : DType::i64;

// 16-bit floats have a fast path to and from f32, which holds them exactly: a piece at a time.
constexpr Index kPiece = 512;

template <class T>
void read_row(const char* from, Index stride, Index count, T* to, DType dtype) {
  if (stride != 1) return read_strided(from, stride, count, to, dtype);
  if (dtype != DType::f16 && dtype != DType::bf16)
    return convert(from, dtype, to, kHeldAs<T>, static_cast<std::size_t>(count));
  float wide[kPiece];
  for (Index done = 0; done < count; done += kPiece) {
    const auto n = static_cast<std::size_t>(std::min(kPiece, count - done));
    convert(from + done * 2, dtype, wide, DType::f32, n);
    convert(wide, DType::f32, to + done, kHeldAs<T>, n);
  }
}

// A value of a narrow type was rounded to it when it was made, so that f32 on the way changes nothing.
template <class T>
void write_row(const T* from, Index stride, Index count, char* to, DType dtype) {
  if (stride != 1) return write_strided(from, stride, count, to, dtype);
  if (dtype != DType::f16 && dtype != DType::bf16)
    return convert(from, kHeldAs<T>, to, dtype, static_cast<std::size_t>(count));
  float wide[kPiece];
  for (Index done = 0; done < count; done += kPiece) {
    const auto n = static_cast<std::size_t>(std::min(kPiece, count - done));
    convert(from + done, kHeldAs<T>, wide, DType::f32, n);
    convert(wide, DType::f32, to + done * 2, dtype, n);
  }
}

template <class T>
void load_rows(const BoundView& view, const BlockWalk& walk, std::vector<T>& to) {
  const Index count = walk.inner.end - walk.inner.begin;
  if (count == 0) return;
  for (Index r = walk.outer.begin; r < walk.outer.end; ++r) {
    const Index offset = walk.offset + r * walk.outer.stride + walk.inner.begin * walk.inner.stride;
    read_row(view.data + offset * view.element_bytes, walk.inner.stride, count,
             to.data() + r * walk.inner.extent + walk.inner.begin, view.param->dtype);
  }
}

template <class T>
void store_rows(const BoundView& view, const BlockWalk& walk, const std::vector<T>& from) {
  const Index count = walk.inner.end - walk.inner.begin;
  if (count == 0) return;
  for (Index r = walk.outer.begin; r < walk.outer.end; ++r) {
    const Index offset = walk.offset + r * walk.outer.stride + walk.inner.begin * walk.inner.stride;
    write_row(from.data() + r * walk.inner.extent + walk.inner.begin, walk.inner.stride, count,
              view.data + offset * view.element_bytes, view.param->dtype);
  }
}

}  // namespace

void load_block(const Op& op, const BoundView& view, const BlockWalk& walk, Tile& result) {
  const auto size = static_cast<std::size_t>(walk.outer.extent * walk.inner.extent);
  if (is_float(view.param->dtype)) {
    walk.whole() ? result.f.resize(size) : result.f.assign(size, op.number.f);
    load_rows(view, walk, result.f);
  } else {
    walk.whole() ? result.i.resize(size) : result.i.assign(size, op.number.i);
    load_rows(view, walk, result.i);
  }
}

void store_block(const BoundView& view, const BlockWalk& walk, const Tile& value) {
  is_float(view.param->dtype) ? store_rows(view, walk, value.f) : store_rows(view, walk, value.i);
}

void gather(const Kernel& kernel, const Op& op, const BoundView& view, Values& values) {
  Tile& result = at(values, op.results[0]);
  const auto size = static_cast<std::size_t>(kernel.type(op.results[0]).size());
  const DType dtype = view.param->dtype;
  is_float(dtype) ? result.f.assign(size, op.number.f) : result.i.assign(size, op.number.i);
  for_each_indexed(kernel, op, view, values, [&](std::size_t n, Index offset) {
    const char* from = view.data + offset * view.element_bytes;
    is_float(dtype) ? void(result.f[n] = load_f64(from, dtype)) : void(result.i[n] = load_i64(from, dtype));
  });
}

void scatter(const Kernel& kernel, const Op& op, const BoundView& view, const Values& values) {
  const Tile& value = at(values, op.operands[0]);
  const DType dtype = view.param->dtype;
  for_each_indexed(kernel, op, view, values, [&](std::size_t n, Index offset) {
    char* to = view.data + offset * view.element_bytes;
    is_float(dtype) ? store_f64(to, dtype, value.f[n]) : store_i64(to, dtype, value.i[n]);
  });
}

void atomic_add(const Kernel& kernel, const Op& op, const BoundView& view, const Values& values) {
  const Tile& value = at(values, op.operands[0]);
  const DType dtype = view.param->dtype;
  for_each_indexed(kernel, op, view, values, [&](std::size_t n, Index offset) {
    char* to = view.data + offset * view.element_bytes;
    if (is_float(dtype)) {
      store_f64(to, dtype, load_f64(to, dtype) + value.f[n]);
    } else {
      const auto sum =
          static_cast<std::uint64_t>(load_i64(to, dtype)) + static_cast<std::uint64_t>(value.i[n]);
      store_i64(to, dtype, static_cast<std::int64_t>(sum));
    }
  });
}

}  // namespace tilewright::reference
