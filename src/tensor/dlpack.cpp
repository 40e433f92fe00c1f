// DLPack's structs filled from tensors, and read; see dlpack.h for what is promised.
#include "runtime/device_name.h"
#include "tensor/state.h"

#include <tilewright/tensor/dlpack.h>

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <optional>
#include <vector>

namespace tilewright {

namespace {

using dlpack::DataType;
using dlpack::DeviceType;
using dlpack::ManagedTensor;
using dlpack::ManagedTensorVersioned;
using dlpack::TypeCode;

struct TypeRow {
  DType dtype;
  TypeCode code;
  std::uint8_t bits;
};
constexpr TypeRow kTypes[] = {
    {DType::f64, TypeCode::float_, 64},
    {DType::f32, TypeCode::float_, 32},
    {DType::f16, TypeCode::float_, 16},
    {DType::bf16, TypeCode::bfloat, 16},
    {DType::f8e4m3, TypeCode::float8_e4m3fn, 8},
    {DType::f8e5m2, TypeCode::float8_e5m2, 8},
    {DType::i64, TypeCode::int_, 64},
    {DType::i32, TypeCode::int_, 32},
    {DType::i8, TypeCode::int_, 8},
    {DType::u8, TypeCode::uint, 8},
    {DType::boolean, TypeCode::bool_, 8},
};

DataType type_of(DType dtype) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == dtype) return {row.code, row.bits, 1};
  TW_CHECK(false, "a dtype has no row");
}

DType dtype_of(const DataType& type) {
  for (const TypeRow& row : kTypes)
    if (row.code == type.code && row.bits == type.bits && type.lanes == 1) return row.dtype;
  constexpr const char* kCodes[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  const auto code = static_cast<std::size_t>(type.code);
  throw Error(fmt::format("its elements are {}{}{}, which no tensor here has: have the producer convert them",
                          code < std::size(kCodes) ? kCodes[code] : fmt::format("of type code {}, ", code),
                          type.bits, type.lanes == 1 ? "" : fmt::format(" times {} lanes", type.lanes)));
}

void check_stream(dlpack::Stream stream) {
  if (stream == 0)
    throw Error("stream 0 could be the legacy default stream, 1, or the thread's own, 2: say which");
}

dlpack::Device device_of(const runtime::Device& device) {
  if (device.is_host()) return {DeviceType::cpu, 0};
  return {DeviceType::cuda, runtime::parse_device_name(device.name()).value().ordinal};
}

// What a consumer holds: the struct, what it points to, and the memory.
template <class Managed>
struct Exported {
  Managed managed{};
  std::vector<std::int64_t> shape, strides;
  std::shared_ptr<runtime::Buffer> buffer;
};

template <class Managed>
Managed* exported(const Tensor& tensor, const char* name, dlpack::Stream stream, const Location& where) {
  detail::check_given(name, {"operand"}, {&tensor, 1}, where);
  const std::shared_ptr<detail::ContextState> context = detail::context_of(tensor, name, where);
  const std::lock_guard lock(context->mutex);
  detail::check_kept(name, {"operand"}, {&tensor, 1}, where);
  return detail::in_function(name, where, [&] {
    const detail::TensorImpl& t = *tensor.impl();
    check_stream(stream);
    if (!t.buffer || context->recording())
      throw Error("the function is being recorded, and its calls would not do it: call it outside compile()");
    const bool read_only = t.buffer->is_read_only();
    if constexpr (std::is_same_v<Managed, ManagedTensor>) {
      if (read_only)
        throw Error(
            "the tensor is borrowed memory that is read-only, which this form cannot say: use to_dlpack(), "
            "or "
            "give it a copy");
    }
    if (!t.device->is_host() && stream != dlpack::kNoStream) {
      Status ordered = t.device->backend().make_wait(static_cast<backends::StreamHandle>(stream));
      if (!ordered) detail::raise(ordered.error(), ordered.error().message);
    }
    auto out = std::make_unique<Exported<Managed>>();
    out->shape = t.type.shape.extents();
    out->strides = row_major_strides(t.type.shape);
    out->buffer = t.buffer;
    out->managed.manager = out.get();
    out->managed.deleter = [](Managed* self) { delete static_cast<Exported<Managed>*>(self->manager); };
    out->managed.tensor = {.data = t.type.shape.size() == 0 ? nullptr : t.buffer->data(),
                           .device = device_of(*t.device),
                           .rank = t.type.shape.rank(),
                           .dtype = type_of(t.type.dtype),
                           .shape = out->shape.data(),
                           .strides = out->strides.data(),
                           .byte_offset = 0};
    if constexpr (std::is_same_v<Managed, ManagedTensorVersioned>) {
      out->managed.version = dlpack::kVersion;
      out->managed.flags = read_only ? dlpack::kReadOnly : 0;
    }
    return &out.release()->managed;
  });
}

// The producer's struct: its deleter is called when this ends.
template <class Managed>
std::shared_ptr<void> owner_of(Managed* managed) {
  return {managed, [](Managed* m) {
            if (m->deleter) m->deleter(m);
          }};
}

std::string device_name(const dlpack::Device& device, const detail::ContextState& context) {
  switch (device.type) {
    case DeviceType::cpu:
    case DeviceType::cuda_host:
      return runtime::parse_device_name(context.options.device).value().is_host() ? context.options.device
                                                                                  : "cpu";
    case DeviceType::cuda:
    case DeviceType::cuda_managed:
      if (device.id >= 0) return fmt::format("cuda:{}", device.id);
  }
  throw Error(fmt::format(
      "its memory is on device {} of DLPack's type {}: tensors here are on the CPU (1, 3) or CUDA (2, 13)",
      device.id, static_cast<int>(device.type)));
}

Tensor imported(Context& context, const dlpack::Tensor& t, Access access, std::shared_ptr<void> owner,
                const FromDlpackOptions& options, const Location& where) {
  return detail::in_function("from_dlpack", where, [&] {
    const std::shared_ptr<detail::ContextState>& state = context.state();
    check_stream(options.stream);
    // No library has tensors of more axes; a number beyond is of a struct that is none.
    constexpr std::int32_t kMostAxes = 64;
    if (t.rank < 0 || t.rank > kMostAxes || (t.rank > 0 && !t.shape))
      throw Error(fmt::format("it has {} axes{}", t.rank, t.shape ? "" : " and no shape"));
    const Shape shape(std::vector<Index>(t.shape, t.shape + t.rank));
    ir::check_shape(shape);
    BorrowOptions borrowed{.access = access, .copy = options.copy, .owner = std::move(owner)};
    if (t.strides && shape.size() > 0) borrowed.strides.assign(t.strides, t.strides + t.rank);
    const DType dtype = dtype_of(t.dtype);
    const std::lock_guard lock(state->mutex);
    borrowed.device = device_name(t.device, *state);
    const runtime::Device& device = *state->device(borrowed.device).device;
    if (!device.is_host() && options.stream != dlpack::kNoStream && shape.size() > 0) {
      Status ordered = device.backend().wait_for(static_cast<backends::StreamHandle>(options.stream));
      if (!ordered) detail::raise(ordered.error(), ordered.error().message);
    }
    const auto at = reinterpret_cast<std::uintptr_t>(t.data);
    if (t.data && t.byte_offset > std::numeric_limits<std::uintptr_t>::max() - at)
      throw Error(fmt::format("byte_offset {} reaches past the end of the address space", t.byte_offset));
    void* data = t.data ? static_cast<char*>(t.data) + t.byte_offset : nullptr;
    return borrow(context, data, shape, dtype, borrowed, where);
  });
}

}  // namespace

ManagedTensorVersioned* to_dlpack(const Tensor& tensor, dlpack::Stream stream, const Location& where) {
  return exported<ManagedTensorVersioned>(tensor, "to_dlpack", stream, where);
}

ManagedTensor* to_dlpack_unversioned(const Tensor& tensor, dlpack::Stream stream, const Location& where) {
  return exported<ManagedTensor>(tensor, "to_dlpack_unversioned", stream, where);
}

Tensor from_dlpack(Context& context, ManagedTensorVersioned* managed, const FromDlpackOptions& options,
                   const Location& where) {
  if (!managed) throw Error("from_dlpack: the pointer is null", where);
  std::shared_ptr<void> owner = owner_of(managed);
  if (managed->version.major != dlpack::kVersion.major)
    throw Error(
        fmt::format("from_dlpack: it is of DLPack {}.{}, and {}.x is what is read here: ask the producer "
                    "for that (max_version)",
                    managed->version.major, managed->version.minor, dlpack::kVersion.major),
        where);
  const Access access = managed->flags & dlpack::kReadOnly ? Access::read_only : Access::read_write;
  return imported(context, managed->tensor, access, std::move(owner), options, where);
}

Tensor from_dlpack(Context& context, ManagedTensor* managed, const FromDlpackOptions& options,
                   const Location& where) {
  if (!managed) throw Error("from_dlpack: the pointer is null", where);
  return imported(context, managed->tensor, Access::read_write, owner_of(managed), options, where);
}

}  // namespace tilewright
