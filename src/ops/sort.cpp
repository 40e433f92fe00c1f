// The row of sorting: positions in the order of their elements. Sorted values are gathered by these.
#include "ops/combine.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tilewright::ops {

namespace {

Type infer_argsort(Types operands, const Attrs& attrs) {
  const Type type = arithmetic_operands(operands, attrs);
  const Index length = type.shape[axis_attr(attrs, type.shape.rank())];
  if (length > std::numeric_limits<std::int32_t>::max())
    throw Error(fmt::format("positions are i32, the axis has {} elements", length));
  (void)order_attr(attrs);
  return {DType::i32, type.shape};
}

bool precedes(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }
bool precedes(std::int64_t a, std::int64_t b) { return a < b; }

template <class T>
void sort_lines(const HostTensor& x, int axis, Order order, HostTensor& out) {
  const std::vector<T>& from = values<T>(x);
  std::vector<Index> line(static_cast<std::size_t>(x.type.shape[axis]));
  for_each_line(x.type.shape, axis, [&](Index first, Index stride) {
    std::iota(line.begin(), line.end(), 0);
    const auto element = [&](Index i) { return from[static_cast<std::size_t>(first + i * stride)]; };
    std::stable_sort(line.begin(), line.end(), [&](Index a, Index b) {
      return order == Order::ascending ? precedes(element(a), element(b)) : precedes(element(b), element(a));
    });
    for (std::size_t i = 0; i < line.size(); ++i)
      out.i[static_cast<std::size_t>(first + static_cast<Index>(i) * stride)] = line[i];
  });
}

}  // namespace

Order order_attr(const Attrs& attrs) {
  const std::string& text = attrs.text("order");
  for (const Order order : {Order::ascending, Order::descending})
    if (text == name(order)) return order;
  throw Error(fmt::format("no order is called '{}'", text));
}

constexpr ir::Op kArgsort =
    checked({.name = "argsort",
             .arity = 1,
             .kind = OpClass::argsort,
             .doc = "i32 positions along `axis` in the `order` of their elements (ascending or descending); "
                    "equal elements keep their order, and NaN counts as the largest.",
             .infer = infer_argsort,
             .eval =
                 [](HostTensors x, const Attrs& attrs, const Type& type) {
                   HostTensor out = empty_host(type);
                   const int axis = axis_attr(attrs, type.shape.rank());
                   if (is_float(x[0]->type.dtype))
                     sort_lines<double>(*x[0], axis, order_attr(attrs), out);
                   else
                     sort_lines<std::int64_t>(*x[0], axis, order_attr(attrs), out);
                   return out;
                 },
             .vjp = zero_gradient,
             .lower = structural,
             .domain = {.smooth = false}});

}  // namespace tilewright::ops
