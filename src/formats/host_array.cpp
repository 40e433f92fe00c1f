// Between host memory and tensors, by borrow() and DLPack; see host_array.h.
#include "formats/host_array.h"

#include "tensor/storage.h"

#include <tilewright/tensor/borrow.h>
#include <tilewright/tensor/dlpack.h>

#include <algorithm>
#include <vector>

namespace tilewright::formats {

namespace {

void check_bools(const HostArray& array) {
  if (array.dtype != DType::boolean) return;
  const auto wrong = std::find_if(array.elements.begin(), array.elements.end(),
                                  [](std::byte b) { return b > std::byte{1}; });
  if (wrong != array.elements.end())
    throw Error(fmt::format("element {} of it, a bool, is {}", wrong - array.elements.begin(),
                            static_cast<int>(*wrong)));
}

Strides column_major_strides(const Shape& shape) {
  Strides strides;
  Index next = 1;
  for (const Index extent : shape) {
    strides.push_back(next);
    next *= std::max<Index>(extent, 1);
  }
  return strides;
}

}  // namespace

std::uint64_t size_of(const Shape& shape, DType dtype) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 56;  // elements, as of all tensors
  std::uint64_t room = kMost;
  bool is_empty = false;
  for (const Index extent : shape) {
    if (extent < 0) throw Error(fmt::format("shape {} has a negative extent", to_string(shape)));
    is_empty = is_empty || extent == 0;
    if (extent > 1) room /= static_cast<std::uint64_t>(extent);
  }
  if (room == 0) throw Error(fmt::format("shape {} has too many elements for any memory", to_string(shape)));
  return is_empty ? 0 : static_cast<std::uint64_t>(shape.size()) * size_bytes(dtype);
}

Tensor copy_of(Context& context, const HostArray& array, const Location& where) {
  check_bools(array);
  const auto is_long = [](Index extent) { return extent > 1; };
  const bool as_rows =
      array.order == Order::row_major || std::count_if(array.shape.begin(), array.shape.end(), is_long) < 2;
  if (as_rows)
    return context.from_memory(array.elements.data(), array.dtype, array.shape.size(), array.shape,
                               array.dtype, where);
  const std::string& device = context.options().device;
  const Tensor host = borrow(context, array.elements.data(), array.shape, array.dtype,
                             {.strides = column_major_strides(array.shape),
                              .device = detail::is_host(device) ? device : "reference",
                              .copy = Copy::if_needed,
                              .check = false},
                             where);
  return host.to(device, where);
}

Tensor borrowed(Context& context, const HostArray& array, const std::shared_ptr<const void>& owner,
                const Location& where) {
  if (!detail::is_host(context.options().device)) return copy_of(context, array, where);
  check_bools(array);
  return borrow(context, array.elements.data(), array.shape, array.dtype,
                {.copy = Copy::if_needed, .owner = std::const_pointer_cast<void>(owner), .check = false},
                where);
}

KeptBytes host_elements(const Tensor& tensor, const Location& where) {
  const auto size = static_cast<std::size_t>(tensor.size(where)) * size_bytes(tensor.dtype(where));
  if (size > 0 && detail::is_host(tensor.device(where))) {
    dlpack::ManagedTensorVersioned* managed = to_dlpack(tensor, dlpack::kNoStream, where);
    std::shared_ptr<void> owner(managed, [](dlpack::ManagedTensorVersioned* m) { m->deleter(m); });
    return {{static_cast<const std::byte*>(managed->tensor.data), size}, std::move(owner)};
  }
  const auto copy = std::make_shared<std::vector<std::byte>>(size);
  if (size > 0) tensor.read(copy->data(), tensor.dtype(), where);
  return {*copy, copy};
}

}  // namespace tilewright::formats
