// Memory of others as tensors: what is used as it lies, what is copied, and what is refused.
#include "runtime/host_memory.h"
#include "tensor/state.h"
#include "tensor/strided_copy.h"

#include <tilewright/tensor/borrow.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <utility>

namespace tilewright {

namespace {

using runtime::Buffer;

// The bytes that strided elements reach, around the first one.
struct Reach {
  std::size_t before = 0, after = 0;  // in front of the first element, and from it on
  std::size_t bytes() const { return before + after; }
};

Reach reach_of(const Shape& shape, const Strides& strides, DType dtype) {
  __extension__ using Wide = __int128;
  constexpr Wide kMost = std::numeric_limits<std::int64_t>::max();
  const auto element = static_cast<Wide>(size_bytes(dtype));
  Wide before = 0, after = element;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const Wide way = Wide{shape[axis] - 1} * strides[static_cast<std::size_t>(axis)] * element;
    (way < 0 ? before : after) += way < 0 ? -way : way;
    if (before + after > kMost)
      throw Error(fmt::format("strides [{}] of {} reach further than any memory", fmt::join(strides, ","),
                              to_string(shape)));
  }
  return {static_cast<std::size_t>(before), static_cast<std::size_t>(after)};
}

bool is_row_major(const Shape& shape, const Strides& strides) {
  const Strides wanted = row_major_strides(shape);
  for (std::size_t axis = 0; axis < strides.size(); ++axis)
    if (shape[static_cast<int>(axis)] != 1 && strides[axis] != wanted[axis]) return false;
  return true;
}

// Foreign memory on its way to a tensor.
class Borrowing {
 public:
  Borrowing(detail::DeviceState& device, void* data, const ir::Type& type, const BorrowOptions& options)
      : device_(device.device), data_(data), type_(type), options_(options) {
    if (!data_) throw Error(fmt::format("the pointer is null, and {} has elements", to_string(type)));
    if (options.strides.empty()) {
      strides_ = row_major_strides(type.shape);
    } else if (options.strides.size() != static_cast<std::size_t>(type.shape.rank())) {
      throw Error(fmt::format("{} strides are given for the {} axes of {}", options.strides.size(),
                              type.shape.rank(), to_string(type.shape)));
    } else {
      strides_ = options.strides;
    }
    check_reach();
  }

  std::shared_ptr<Buffer> buffer() {
    const std::string why = why_not_as_it_lies();
    if (why.empty())
      return Buffer::borrow(device_, data_, bytes(), {options_.owner, options_.access == Access::read_only});
    if (options_.copy == Copy::never) throw Error(why + ": ask for copy = Copy::if_needed, or lay it out so");
    return copied(why);
  }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(type_.shape.size()) * size_bytes(type_.dtype); }

  void check_reach() const {
    const Reach reach = reach_of(type_.shape, strides_, type_.dtype);
    const auto at = reinterpret_cast<std::uintptr_t>(data_);
    if (at < reach.before || reach.after > std::numeric_limits<std::uintptr_t>::max() - at)
      throw Error(fmt::format("{} at {:#x} reaches past the end of the address space", to_string(type_), at));
    const void* first = static_cast<const char*>(data_) - reach.before;
    Status good = Unit{};
    if (!device_->is_host())
      good = device_->backend().check_foreign(first, reach.bytes());
    else if (options_.check)
      good = runtime::check_host_memory(
          first, reach.bytes(),
          options_.access == Access::read_only ? runtime::HostUse::read : runtime::HostUse::write);
    if (!good)
      throw Error(fmt::format("{} at {:#x} cannot be used on {}: {}", to_string(type_), at, device_->name(),
                              good.error().message));
  }

  std::string why_not_as_it_lies() const {
    if (!is_row_major(type_.shape, strides_))
      return fmt::format("strides [{}] of {} are not row-major", fmt::join(strides_, ","),
                         to_string(type_.shape));
    const auto align = std::max(static_cast<std::uintptr_t>(device_->target().buffer_align),
                                static_cast<std::uintptr_t>(size_bytes(type_.dtype)));
    const auto at = reinterpret_cast<std::uintptr_t>(data_);
    if (at % align == 0) return "";
    return fmt::format("address {:#x} is not a multiple of {} bytes, as {} wants it", at, align,
                       device_->name());
  }

  std::shared_ptr<Buffer> copied(const std::string& why) const {
    std::shared_ptr<Buffer> buffer = detail::allocate(device_, type_);
    if (device_->is_host()) {
      detail::copy_strided(buffer->data(), data_, type_, strides_);
      return buffer;
    }
    if (!is_row_major(type_.shape, strides_))
      throw Error(fmt::format("{}, and memory of {} is not rearranged: make it contiguous first", why,
                              device_->name()));
    backends::Backend& backend = device_->backend();
    Status done = backend.copy(buffer->data(), data_, bytes(), backends::CopyKind::device_to_device);
    if (!done) throw Error(done.error().message);
    backend.let_go(options_.owner);  // behind the copy
    return buffer;
  }

  const std::shared_ptr<runtime::Device>& device_;
  void* data_;
  const ir::Type& type_;
  const BorrowOptions& options_;
  Strides strides_;
};

}  // namespace

Tensor borrow(Context& context, void* data, const Shape& shape, DType dtype, const BorrowOptions& options,
              const Location& where) {
  const std::shared_ptr<detail::ContextState>& state = context.state();
  const std::lock_guard lock(state->mutex);
  return detail::in_function("borrow", where, [&] {
    ir::check_shape(shape);
    const ir::Type type{dtype, shape};
    detail::DeviceState& device =
        state->device(options.device.empty() ? state->options.device : options.device);
    std::shared_ptr<Buffer> buffer = shape.size() == 0 ? detail::allocate(device.device, type)
                                                       : Borrowing(device, data, type, options).buffer();
    return detail::make_tensor(state, type, device.device, std::move(buffer));
  });
}

Tensor borrow(Context& context, const void* data, const Shape& shape, DType dtype,
              const BorrowOptions& options, const Location& where) {
  BorrowOptions read = options;
  read.access = Access::read_only;
  return borrow(context, const_cast<void*>(data), shape, dtype, read, where);
}

}  // namespace tilewright
