// Tensor and Context: the user's API. A Tensor is a cheap handle with value semantics; outside compile() an
// operation runs at once, inside it is recorded. Context owns devices, caches, options and the random state;
// there are no globals.
#pragma once

#include <tilewright/base/allocator.h>
#include <tilewright/base/dtype.h>
#include <tilewright/base/error.h>
#include <tilewright/base/order.h>
#include <tilewright/base/shape.h>
#include <tilewright/tensor/axes.h>

#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright {

using Location = std::source_location;

namespace detail {
struct TensorImpl;
struct ContextState;
template <class T>
struct dtype_of {
  static_assert(
      sizeof(T) == 0,
      "elements of tensors are read and given as double, float, std::int64_t, std::int32_t, std::int8_t, "
      "std::uint8_t or bool, and no other type of C++");
  static constexpr DType value = DType::f32;
};
template <>
struct dtype_of<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct dtype_of<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct dtype_of<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct dtype_of<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct dtype_of<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct dtype_of<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct dtype_of<bool> {
  static constexpr DType value = DType::boolean;
};
}  // namespace detail

struct Arg;      // functions.h
struct Indices;  // indices.h

// A handle to an array of numbers of one type on one device, or to a value that is being recorded. Copies are
// the same tensor; its elements change by into(), TileFunction and whoever lent its memory alone.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(std::shared_ptr<detail::TensorImpl> impl) : impl_(std::move(impl)) {}
  // Functions of the library: a user's source, where there are many, is compiled sooner.
  Tensor(const Tensor&) noexcept;
  Tensor(Tensor&&) noexcept;
  // To a handle with a name alone: x[0] = y would change a handle that nobody has, and no element of x.
  Tensor& operator=(const Tensor&) & noexcept;
  Tensor& operator=(Tensor&&) & noexcept;
  ~Tensor();

  // Whether it is a tensor: not one that was never assigned, or was moved from.
  bool defined() const { return impl_ != nullptr; }
  // What it is, without waiting for its elements. Inside compile() a function that asks for shape() or size()
  // is recorded anew for each size.
  Shape shape(const Location& where = Location::current()) const;
  DType dtype(const Location& where = Location::current()) const;
  Index size(const Location& where = Location::current()) const;
  int rank(const Location& where = Location::current()) const;
  std::string device(const Location& where = Location::current()) const;  // "cpu", "cuda:0"

  // The elements, row-major, converted to T (base/dtype.h's rules). Inside compile() this and item() are
  // graph breaks, of arguments and captured tensors alike: the function is traced at every call.
  template <class T>
  std::vector<T> to_vector(const Location& where = Location::current()) const {
    check_defined("to_vector", where);
    return elements<T>("to_vector", where);
  }
  // The only element of a tensor of size 1. A double by default, and an Error where it holds no such integer
  // (beyond 2^53): item<std::int64_t>() does.
  template <class T = double>
  T item(const Location& where = Location::current()) const {
    check_single(where);
    if constexpr (std::is_same_v<T, double>)
      return number(where);
    else
      return elements<T>("item", where)[0];
  }
  // The elements, row-major, converted to `as`, into memory with room for size() of them.
  void read(void* to, DType as, const Location& where = Location::current()) const;

  // The same elements on another device; the tensor itself where it is there. Inside compile() a graph break.
  Tensor to(const std::string& device, const Location& where = Location::current()) const;

  // A part of the tensor, with NumPy's meaning: x[0], x[-1], x[slice(1, 5)], x[{0, ellipsis, newaxis}] (a
  // list in braces has an index for each axis, from the first). An index tensor of integers picks along its
  // axis as take() does: -1 does not count from the end there; a list has one at most. A new tensor: to
  // change elements, see where() and update_slice(). Throws Error on a position out of range, more indices
  // than axes, a second ellipsis.
  Tensor operator[](const Indices& indices) const;

  // Functions as methods: x.exp() is exp(x), x.sum(0) is sum(x, 0). What they do, and what their errors are
  // called, stands with the functions (functions.h, composites.h).
#define TW_HERE const Location& where = Location::current()
#define TW_FUNCTION(f) Tensor f(TW_HERE) const;
#define TW_COMPOSITE_OF(f, parameter, usual, ...) Tensor f(double parameter = usual, TW_HERE) const;
#include <tilewright/ops/unary.def>
#define TW_REDUCTION(f) Tensor f(const Axes& axes = {}, Keep keep = Keep::no, TW_HERE) const;
#include <tilewright/tensor/reductions.def>
  Tensor var(const Axes& axes = {}, Index ddof = 0, Keep keep = Keep::no, TW_HERE) const;
  Tensor std(const Axes& axes = {}, Index ddof = 0, Keep keep = Keep::no, TW_HERE) const;
  Tensor norm(const Axes& axes = {}, Keep keep = Keep::no, TW_HERE) const;
  Tensor argmax(Index axis, Keep keep = Keep::no, TW_HERE) const;
  Tensor argmin(Index axis, Keep keep = Keep::no, TW_HERE) const;
#define TW_SCAN(f) Tensor f(Index axis, TW_HERE) const;
#include <tilewright/tensor/scans.def>
  Tensor sort(Index axis = -1, Order order = Order::ascending, TW_HERE) const;
  Tensor argsort(Index axis = -1, Order order = Order::ascending, TW_HERE) const;
  std::pair<Tensor, Tensor> topk(Index k, Index axis = -1, TW_HERE) const;
  Tensor softmax(Index axis = -1, TW_HERE) const;
  Tensor log_softmax(Index axis = -1, TW_HERE) const;
  Tensor clamp(double low, double high, TW_HERE) const;
  Tensor pow(const Arg& exponent, TW_HERE) const;
  Tensor matmul(const Tensor& b, TW_HERE) const;
  Tensor to(DType dtype, TW_HERE) const;  // cast(x, dtype)
  Tensor reshape(const Shape& shape, TW_HERE) const;
  Tensor flatten(Index first = 0, Index last = -1, TW_HERE) const;
  Tensor transpose(const std::vector<Index>& perm, TW_HERE) const;
  Tensor T(TW_HERE) const;   // transpose(x, {1, 0}) of a matrix
  Tensor mT(TW_HERE) const;  // swap_axes(x, -2, -1): of each matrix
  Tensor swap_axes(Index a, Index b, TW_HERE) const;
  Tensor broadcast_to(const Shape& shape, TW_HERE) const;
  Tensor unsqueeze(Index axis, TW_HERE) const;
  Tensor squeeze(Index axis, TW_HERE) const;
#undef TW_HERE

  // What stands behind the handle, for the library itself.
  detail::TensorImpl* impl() const { return impl_.get(); }
  const std::shared_ptr<detail::TensorImpl>& shared_impl() const& { return impl_; }
  std::shared_ptr<detail::TensorImpl> shared_impl() && { return std::move(impl_); }

 private:
  void check_defined(const char* what, const Location& where) const;
  void check_single(const Location& where) const;
  double number(const Location& where) const;
  // read() by the name of the function that was called.
  void read_for(const char* function, void* to, DType as, const Location& where) const;
  template <class T>
  std::vector<T> elements(const char* function, const Location& where) const {
    if constexpr (std::is_same_v<T, bool>) {
      std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size()));
      read_for(function, bytes.data(), DType::boolean, where);
      return std::vector<T>(bytes.begin(), bytes.end());
    } else {
      std::vector<T> out(static_cast<std::size_t>(size()));
      read_for(function, out.data(), detail::dtype_of<T>::value, where);
      return out;
    }
  }
  std::shared_ptr<detail::TensorImpl> impl_;
};

// How a Context is made.
struct ContextOptions {
  std::string device = "cpu";            // where tensors are created: "cpu", "cuda:N", "reference"
  std::string cache_directory = "auto";  // compiled kernels; "auto": $XDG_CACHE_HOME or ~/.cache; "": none
  int threads = 0;                       // CPU threads, at most 4096; 0: every allowed core
  std::string isa = {};                  // CPU: "" for the host's best, else amx, avx512, avx2, baseline
  // The folder of the backends (libtw_cpu.so, libtw_cuda.so). "": the folder of libtilewright.so, or of the
  // program that it is a part of; the folder tilewright/ in that; then wherever the loader looks.
  std::string library_directory = {};
  // Where to look for NVRTC and cuBLASLt beside the usual places.
  std::vector<std::string> cuda_library_paths = {};
  // What `device` works with in place of its own: a stream of a GPU, on which everything is launched, and a
  // source of memory. The stream is a CUstream (a cudaStream_t) made on that device, or 1, CUDA's legacy
  // default stream; it stays until the Context, its tensors and its compiled functions are gone. Not from the
  // allocator comes what a kernel's code, a library's workspace and transfers of the host need.
  std::optional<std::uintptr_t> stream = {};
  std::shared_ptr<Allocator> allocator = {};
  std::uint64_t seed = 0;  // of rand and randn
  // Indices that are data (take, take_along, embedding, scatter_add, labels of losses, ends of groups) are
  // looked at, and one out of range is an Error. true: everywhere, in compiled functions as well, which then
  // read two numbers back per call and check. false: nowhere. Otherwise in what runs on the CPU outside
  // compile(), where it costs less than 2 % of the call: up to 32 indices, or rows of at least 50 times the
  // size of an index.
  std::optional<bool> check = {};
};

// Memory of a device that tensors and the programs that run on them have.
struct MemoryUse {
  std::size_t bytes = 0;       // now
  std::size_t peak_bytes = 0;  // at most, since the Context was made or its peak was reset
};

// Owns devices, the caches of programs and kernels, and the random state. Tensors of two Contexts do not mix;
// they may outlive theirs, but are then only good for being let go.
class Context {
 public:
  // Throws Error when the device cannot be opened, saying what is missing.
  explicit Context(ContextOptions options = {}, const Location& where = Location::current());
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Converts `data` (row-major, data.size() == shape.size()) to `dtype`; the default is T's own. The data may
  // also be a std::array, a C array or a list in braces: from({1.f, 2.f}, {2}).
  template <class T>
  Tensor from(std::span<const T> data, const Shape& shape, DType dtype = detail::dtype_of<T>::value,
              const Location& where = Location::current()) {
    return from_memory(data.data(), detail::dtype_of<T>::value, static_cast<Index>(data.size()), shape, dtype,
                       where);
  }
  template <class T>
  Tensor from(const std::vector<T>& data, const Shape& shape, DType dtype = detail::dtype_of<T>::value,
              const Location& where = Location::current()) {
    const auto count = static_cast<Index>(data.size());
    if constexpr (std::is_same_v<T, bool>) {
      const std::vector<std::uint8_t> bytes(data.begin(), data.end());  // a vector<bool> has bits
      return from_memory(bytes.data(), DType::boolean, count, shape, dtype, where);
    } else {
      return from_memory(data.data(), detail::dtype_of<T>::value, count, shape, dtype, where);
    }
  }
  template <class T, std::size_t N>
  Tensor from(const std::array<T, N>& data, const Shape& shape, DType dtype = detail::dtype_of<T>::value,
              const Location& where = Location::current()) {
    return from(std::span<const T>(data), shape, dtype, where);
  }
  template <class T, std::size_t N>
  Tensor from(const T (&data)[N], const Shape& shape, DType dtype = detail::dtype_of<T>::value,
              const Location& where = Location::current()) {
    return from(std::span<const T>(data), shape, dtype, where);
  }
  // The same of `count` elements of a type that is known when the program runs.
  Tensor from_memory(const void* data, DType data_dtype, Index count, const Shape& shape, DType dtype,
                     const Location& where = Location::current());

  Tensor empty(const Shape& shape, DType dtype = DType::f32,
               const Location& where = Location::current());  // any bytes
  // 0, 1 or `value` in every element. An integer type takes the whole part of the value, and throws Error
  // where that lies beyond its limits or is no number; bool is whether it is not 0; a float type rounds it,
  // beyond its largest number to infinity, and a type of 8 bits to its largest.
  Tensor zeros(const Shape& shape, DType dtype = DType::f32, const Location& where = Location::current());
  Tensor ones(const Shape& shape, DType dtype = DType::f32, const Location& where = Location::current());
  Tensor full(const Shape& shape, double value, DType dtype = DType::f32,
              const Location& where = Location::current());
  Tensor scalar(double value, DType dtype = DType::f32, const Location& where = Location::current());
  // 0, 1, … n-1. Throws Error where n is negative; this and randint, where an integer type does not hold the
  // largest of them.
  Tensor arange(Index n, DType dtype = DType::i64, const Location& where = Location::current());
  // start, start + step, … up to `stop`, which is not among them: ceil((stop - start) / step) numbers, none
  // where that is negative. Of whole numbers exact; with a real one each is start + i · step in f64, rounded
  // to `dtype` once. Throws Error on a step of 0, and where an integer type does not hold one of them.
  template <std::integral Start, std::integral Stop, std::integral Step = Index>
  Tensor arange(Start start, Stop stop, Step step = 1, DType dtype = DType::i64,
                const Location& where = Location::current()) {
    const auto is_index = [](auto number) {
      return std::is_signed_v<decltype(number)> || static_cast<std::uint64_t>(number) >> 63 == 0;
    };
    if (!is_index(start) || !is_index(stop) || !is_index(step))
      throw Error("arange: a number is beyond what 64 bits hold", where);
    return whole_range({static_cast<Index>(start), static_cast<Index>(stop), static_cast<Index>(step)}, dtype,
                       where);
  }
  Tensor arange(double start, double stop, double step = 1, DType dtype = DType::f32,
                const Location& where = Location::current());
  // From 0 up to one real number: arange(2.5) is 0, 1, 2.
  template <std::floating_point Stop>
  Tensor arange(Stop stop, DType dtype = DType::f32, const Location& where = Location::current()) {
    return arange(0.0, static_cast<double>(stop), 1.0, dtype, where);
  }
  // `count` numbers at equal distances from start to stop, both among them (start alone where count is 1), as
  // NumPy's: start + i · ((stop - start) / (count - 1)) in f64, rounded to `dtype`, a float type, once.
  Tensor linspace(double start, double stop, Index count, DType dtype = DType::f32,
                  const Location& where = Location::current());
  // (rows, columns), columns as many as rows where not given: 1 on the diagonal, 0 elsewhere.
  Tensor eye(Index rows, std::optional<Index> columns = {}, DType dtype = DType::f32,
             const Location& where = Location::current());
  // Philox: the k-th random tensor of a context depends on the seed and k alone; randn has the same numbers
  // on every device up to their last bits. Inside compile() the seeds are inputs of the call: each call draws
  // anew, what the function would draw uncompiled.
  Tensor randn(const Shape& shape, DType dtype = DType::f32, const Location& where = Location::current());
  Tensor rand(
      const Shape& shape, DType dtype = DType::f32,
      const Location& where = Location::current());  // [0, 1), by as many bits as it has digits (to 24)
  // Integers below high, which is at least 1 and at most 2^32.
  Tensor randint(const Shape& shape, Index high, DType dtype = DType::i64,
                 const Location& where = Location::current());
  // Starts the random tensors anew. Inside compile() it is an Error: calls would not do it.
  void set_seed(std::uint64_t seed, const Location& where = Location::current());

  void synchronize();  // waits for all work on all devices
  // What tensors of this Context's device and its compiled functions' temporaries take; memory of others
  // (borrow()) is not counted, nor what a pool keeps for later.
  MemoryUse memory() const;
  void reset_peak_memory();  // the peak begins anew with what is in use now
  // The stream on which the work of the Context's own device is launched, a CUstream: the one that was given,
  // or its own. 0 on the CPU, and the legacy default stream where that was given as 0.
  std::uintptr_t stream() const;
  // As they were given, but for the seed, which is the last one set.
  const ContextOptions& options() const&;
  ContextOptions options() &&;
  // What stands behind the Context, for the library itself.
  const std::shared_ptr<detail::ContextState>& state() const& { return state_; }
  std::shared_ptr<detail::ContextState> state() && { return state_; }

 private:
  struct WholeRange {
    Index start, stop, step;
  };
  Tensor whole_range(const WholeRange& range, DType dtype, const Location& where);
  std::shared_ptr<detail::ContextState> state_;
};

}  // namespace tilewright
#pragma GCC visibility pop
