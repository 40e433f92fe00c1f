// x[...]: the indices become views, one axis after another, and an index tensor a take() of what they leave.
#include "base/no_value.h"
#include "ops/functions.h"
#include "tensor/state.h"

#include <tilewright/tensor/functions.h>

#include <fmt/format.h>

#include <algorithm>

namespace tilewright {

namespace {

constexpr const char* kName = "x[...]";

using Kind = IndexItem::Kind;

int count(const Indices& indices, Kind kind) {
  return static_cast<int>(std::count_if(indices.items.begin(), indices.items.end(),
                                        [&](const IndexItem& item) { return item.kind == kind; }));
}
bool takes_axis(const IndexItem& item) { return item.kind != Kind::rest && item.kind != Kind::new_axis; }

// NumPy moves the axes of an index tensor to the front where a slice lies between it and a position, which
// hardly anybody wants.
bool stands_beside_positions(const Indices& indices) {
  const auto picks = [](const IndexItem& item) {
    return item.kind == Kind::position || item.kind == Kind::tensor;
  };
  const auto first = std::find_if(indices.items.begin(), indices.items.end(), picks);
  const auto last = std::find_if(indices.items.rbegin(), indices.items.rend(), picks).base();
  return std::all_of(first, last, picks);
}

void check(const Tensor& x, const Indices& indices) {
  const auto fail = [&](const std::string& why) {
    throw Error(fmt::format("{}: {}", kName, why), indices.where);
  };
  if (!x.defined()) fail(fmt::format("this tensor {}", kNoValue));
  const auto wanted = std::count_if(indices.items.begin(), indices.items.end(), takes_axis);
  if (wanted > x.rank())
    fail(fmt::format("{} indices are too many for the {} axes of {}", wanted, x.rank(),
                     to_string(x.impl()->type)));
  if (count(indices, Kind::rest) > 1) fail("more than one ellipsis: which axes each stands for is not said");
  const int tensors = count(indices, Kind::tensor);
  if (tensors > 1)
    fail(
        "more than one index tensor: element() picks elements by an index tensor for each axis; index one "
        "axis after another to combine them otherwise");
  if (tensors == 1 && !stands_beside_positions(indices))
    fail(
        "an index tensor and a position with others between them: write the positions first, "
        "x[{...}][{...}]");
  for (const IndexItem& item : indices.items)
    if (item.tensor.defined() && is_bool(item.tensor.dtype()))
      fail(
          "an index of bools: how many elements it picks depends on its values, which no compiled function "
          "knows. where() chooses element by element");
}

// x after slices and new axes, and the axis along which an index tensor still picks; -1: none does.
struct Viewed {
  ir::Value value;
  int axis_to_pick = -1;
};

Viewed view_of(ir::Value x, const Indices& indices) {
  const int rank = x.shape().rank();
  const auto taken = std::count_if(indices.items.begin(), indices.items.end(), takes_axis);
  Viewed out{x};
  int from = 0, to = 0;  // the next axis of x, and of what it becomes
  for (const IndexItem& item : indices.items) {
    switch (item.kind) {
      case Kind::new_axis:
        out.value = ops::unsqueeze(out.value, to++);
        break;
      case Kind::rest:
        from += rank - static_cast<int>(taken);
        to += rank - static_cast<int>(taken);
        break;
      case Kind::position: {
        const Index extent = x.shape()[from];
        if (item.position < -extent || item.position >= extent)
          throw Error(fmt::format("index {} is out of range of axis {} of {}", item.position, from,
                                  to_string(x.type())));
        out.value = ops::select(out.value, to, item.position);
        ++from;
        break;
      }
      case Kind::range:
        out.value = ops::slice_axis(out.value, to, {item.range.start, item.range.stop, item.range.step});
        ++from, ++to;
        break;
      case Kind::tensor:
        out.axis_to_pick = to;
        ++from, ++to;
    }
  }
  return out;
}

}  // namespace

Indices::Indices(std::initializer_list<IndexItem> all, const Location& l) : items(all), where(l) {}

Tensor Tensor::operator[](const Indices& indices) const {
  check(*this, indices);
  int axis_to_pick = -1;
  const auto write = [&](ir::Graph&, const std::vector<ir::Value>& in) {
    const Viewed viewed = view_of(in[0], indices);
    axis_to_pick = viewed.axis_to_pick;
    return std::vector{viewed.value};
  };
  const bool views = std::any_of(indices.items.begin(), indices.items.end(),
                                 [](const IndexItem& item) { return item.kind != Kind::tensor; });
  Tensor viewed = views ? detail::apply(kName, {*this}, write, indices.where).at(0) : *this;
  for (const IndexItem& item : indices.items)
    if (item.kind == Kind::tensor)
      return detail::alias(
          kName, [&] { return take(viewed, item.tensor, std::max(axis_to_pick, 0), indices.where); });
  return viewed;
}

}  // namespace tilewright
