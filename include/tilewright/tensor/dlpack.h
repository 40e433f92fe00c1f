// DLPack: the exchange of tensors with other libraries in one process, without copies. The structs here are
// laid out as DLPack's C interface of version 1.1 says, under names of our own: a program that includes the
// dlpack.h of somebody else as well casts pointers between the two.
// https://dmlc.github.io/dlpack/latest/c_api.html
#pragma once

#include <tilewright/tensor/borrow.h>

#include <cstddef>

#pragma GCC visibility push(default)
namespace tilewright {

namespace dlpack {

struct Version {
  std::uint32_t major, minor;
};
// A struct of another major version may look otherwise; every minor one has these members.
inline constexpr Version kVersion = {1, 1};

enum class DeviceType : std::int32_t {
  cpu = 1,
  cuda = 2,
  cuda_host = 3,      // page-locked memory of the host
  cuda_managed = 13,  // of the host and the GPU at once
};
struct Device {
  DeviceType type;
  std::int32_t id;
};

enum class TypeCode : std::uint8_t {
  int_ = 0,
  uint = 1,
  float_ = 2,
  opaque = 3,
  bfloat = 4,
  complex = 5,
  bool_ = 6,
  float8_e4m3fn = 10,  // from version 1.1 on
  float8_e5m2 = 12,
};
struct DataType {
  TypeCode code;
  std::uint8_t bits;
  std::uint16_t lanes;  // elements of a short vector; 1
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t rank;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major
  std::uint64_t byte_offset;
};

// The older form, which cannot say that memory is read-only. Capsule of Python: "dltensor".
struct ManagedTensor {
  Tensor tensor;
  void* manager;
  void (*deleter)(ManagedTensor* self);  // may be null
};

// Bits of ManagedTensorVersioned::flags.
inline constexpr std::uint64_t kReadOnly = 1, kIsCopied = 2, kIsSubbyteTypePadded = 4;

// Capsule of Python: "dltensor_versioned".
struct ManagedTensorVersioned {
  Version version;
  void* manager;
  void (*deleter)(ManagedTensorVersioned* self);  // may be null
  std::uint64_t flags;
  Tensor tensor;
};

static_assert(sizeof(void*) == 8 && sizeof(Version) == 8 && sizeof(Device) == 8 && sizeof(DataType) == 4);
static_assert(sizeof(Tensor) == 48 && offsetof(Tensor, device) == 8 && offsetof(Tensor, rank) == 16 &&
              offsetof(Tensor, dtype) == 20 && offsetof(Tensor, shape) == 24 &&
              offsetof(Tensor, strides) == 32 && offsetof(Tensor, byte_offset) == 40);
static_assert(sizeof(ManagedTensor) == 64 && offsetof(ManagedTensor, manager) == 48 &&
              offsetof(ManagedTensor, deleter) == 56);
static_assert(sizeof(ManagedTensorVersioned) == 80 && offsetof(ManagedTensorVersioned, manager) == 8 &&
              offsetof(ManagedTensorVersioned, deleter) == 16 &&
              offsetof(ManagedTensorVersioned, flags) == 24 &&
              offsetof(ManagedTensorVersioned, tensor) == 32);

// A CUDA stream as Python's __dlpack__(stream=…) numbers them: the address of a CUstream, or one of these.
using Stream = std::intptr_t;
inline constexpr Stream kNoStream = -1;  // nobody waits: the caller has seen to the order
inline constexpr Stream kLegacyDefaultStream = 1;
inline constexpr Stream kPerThreadDefaultStream = 2;

}  // namespace dlpack

// The tensor's memory, shared: what the consumer writes is seen here, and the reverse. The memory stays until
// the consumer calls the deleter, on whichever thread. Row-major, with strides; tensors of "reference" are on
// the CPU. On a GPU work that is launched on `stream` afterwards finds the values there; the host does not
// wait. `stream` means nothing on the CPU. flags: kReadOnly where the memory was borrowed so.
// Throws Error where the tensor has no value: was never given one, was donated, or is being recorded by
// compile(); and for stream 0, which could be either of the default streams.
dlpack::ManagedTensorVersioned* to_dlpack(const Tensor& tensor,
                                          dlpack::Stream stream = dlpack::kLegacyDefaultStream,
                                          const Location& where = Location::current());
// The same in the older form, for consumers that know no other. Throws Error for memory that is read-only as
// well, which it could not say.
dlpack::ManagedTensor* to_dlpack_unversioned(const Tensor& tensor,
                                             dlpack::Stream stream = dlpack::kLegacyDefaultStream,
                                             const Location& where = Location::current());

struct FromDlpackOptions {
  Copy copy = Copy::if_needed;  // what is used as it lies: borrow()
  // On which the producer has made the values, on a GPU: what is done here waits for them.
  dlpack::Stream stream = dlpack::kLegacyDefaultStream;
};

// A tensor of a producer's memory, borrowed as borrow() says: of the CPU or page-locked on the Context's own
// device where that is one of the host, else on "cpu"; of a GPU on "cuda:N". Memory flagged kReadOnly is
// read_only. `managed` is taken over, whatever becomes of the call: its deleter is called once, when no
// tensor uses the memory any more (BorrowOptions::owner says when), or before an Error.
// Throws Error: what borrow() throws; a null pointer, another major version, a type that tensors do not have
// (the message names it), a device that is none of these.
Tensor from_dlpack(Context& context, dlpack::ManagedTensorVersioned* managed,
                   const FromDlpackOptions& options = {}, const Location& where = Location::current());
Tensor from_dlpack(Context& context, dlpack::ManagedTensor* managed, const FromDlpackOptions& options = {},
                   const Location& where = Location::current());

}  // namespace tilewright
#pragma GCC visibility pop
