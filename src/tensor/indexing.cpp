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

template <class T>
bool is(const IndexItem& item) {
  return std::holds_alternative<T>(item.value);
}
template <class T>
int count(const Indices& indices) {
  return static_cast<int>(std::count_if(indices.items.begin(), indices.items.end(), is<T>));
}
bool takes_axis(const IndexItem& item) { return !is<Ellipsis>(item) && !is<NewAxis>(item); }

// NumPy moves the axes of an index tensor to the front where a slice lies between it and a position, which
// hardly anybody wants.
bool stands_beside_positions(const Indices& indices) {
  const auto picks = [](const IndexItem& item) { return is<Index>(item) || is<Tensor>(item); };
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
  if (count<Ellipsis>(indices) > 1) fail("more than one ellipsis: which axes each stands for is not said");
  const int tensors = count<Tensor>(indices);
  if (tensors > 1)
    fail(
        "more than one index tensor: element() picks elements by an index tensor for each axis; index one "
        "axis after another to combine them otherwise");
  if (tensors == 1 && !stands_beside_positions(indices))
    fail(
        "an index tensor and a position with others between them: write the positions first, "
        "x[{...}][{...}]");
  for (const IndexItem& item : indices.items)
    if (const Tensor* index = std::get_if<Tensor>(&item.value);
        index && index->defined() && is_bool(index->dtype()))
      fail(
          "an index of bools: how many elements it picks depends on its values, which no compiled function "
          "knows. where() chooses element by element");
}

// Where an index tensor picks; -1: nowhere.
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
    if (is<NewAxis>(item)) {
      out.value = ops::unsqueeze(out.value, to++);
    } else if (is<Ellipsis>(item)) {
      from += rank - static_cast<int>(taken);
      to += rank - static_cast<int>(taken);
    } else if (const Index* position = std::get_if<Index>(&item.value)) {
      const Index extent = x.shape()[from];
      if (*position < -extent || *position >= extent)
        throw Error(
            fmt::format("index {} is out of range of axis {} of {}", *position, from, to_string(x.type())));
      out.value = ops::select(out.value, to, *position);
      ++from;
    } else {
      if (const SliceRange* range = std::get_if<SliceRange>(&item.value))
        out.value = ops::slice_axis(out.value, to, {range->start, range->stop, range->step});
      else
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
                                 [](const IndexItem& item) { return !is<Tensor>(item); });
  Tensor viewed = views ? detail::apply(kName, {*this}, write, indices.where).at(0) : *this;
  for (const IndexItem& item : indices.items)
    if (const Tensor* index = std::get_if<Tensor>(&item.value))
      return detail::alias(kName,
                           [&] { return take(viewed, *index, std::max(axis_to_pick, 0), indices.where); });
  return viewed;
}

}  // namespace tilewright
