// Making, reading and hashing input tensors.
#include "pairs/tensor_inputs.h"

#include <tilewright/base/hash.h>
#include <tilewright/tensor/functions.h>
#include <tilewright/tensor/out_of_memory.h>

#include <algorithm>
#include <cmath>

#include "tensor/storage.h"

namespace tilewright::lab {

namespace {

// The raw bytes of a tensor on the host: in place, or copied into `room`.
Result<const std::byte*> host_bytes(const Tensor& t, std::vector<std::byte>& room) {
  if (const std::byte* there = detail::host_storage(t)) return there;
  room.resize(detail::storage_bytes(t));
  if (Status read = detail::read_storage(t, room.data()); !read) return read.error();
  return static_cast<const std::byte*>(room.data());
}

}  // namespace

double input_bytes(const InputSpec& input) {
  return static_cast<double>(input.shape.size()) * static_cast<double>(size_bytes(input.dtype));
}

InputSpec normal_input(std::string name, const Shape& shape, DType dtype, Normal values) {
  return {std::move(name), dtype, shape, [shape, dtype, values](Context& context) {
            const bool standard = values.mean == 0 && values.deviation == 1;
            Tensor t = context.randn(shape, standard ? dtype : DType::f32);
            if (!standard) t = cast(t * values.deviation + values.mean, dtype);
            return t;
          }};
}

InputSpec integer_input(std::string name, const Shape& shape, Index high) {
  return {std::move(name), DType::i64, shape,
          [shape, high](Context& context) { return context.randint(shape, high); }};
}

InputSpec shared(InputSpec spec) {
  spec.rotated = false;
  return spec;
}

std::int64_t copies_for(const std::vector<InputSpec>& inputs, double output_bytes, double cache_bytes) {
  constexpr std::int64_t kMost = 64;
  double rotated = 0, shared = 0;
  for (const InputSpec& input : inputs) (input.rotated ? rotated : shared) += input_bytes(input);
  if (rotated <= 0) return 1;
  if (rotated + shared + output_bytes <= cache_bytes / 4) return 2;
  return std::clamp(static_cast<std::int64_t>(std::ceil(2 * cache_bytes / rotated)), std::int64_t{1}, kMost);
}

TensorInputs::TensorInputs(std::vector<InputSpec> specs, std::int64_t copies, Context& context)
    : specs_(std::move(specs)), context_(&context), copies_(static_cast<std::size_t>(copies)) {}

Status TensorInputs::refresh(std::uint64_t seed) {
  try {
    context_->set_seed(seed);
    for (auto& copy : copies_) {
      copy.resize(specs_.size());
      for (std::size_t i = 0; i < specs_.size(); ++i) {
        const bool first = &copy == &copies_.front();
        copy[i] = Tensor();  // its memory is taken again for the new one
        copy[i] = specs_[i].rotated || first ? specs_[i].make(*context_) : copies_.front()[i];
      }
    }
    context_->synchronize();
    for (const auto& listener : listeners_) {
      if (Status heard = listener(); !heard) return heard;
    }
  } catch (const OutOfMemory& error) {
    return failure(Failure::Kind::out_of_memory, error.what());
  } catch (const Error& error) {
    return failure(Failure::Kind::device, error.what());
  }
  return Unit{};
}

Result<std::uint64_t> TensorInputs::digest(ThreadPool& pool) const {
  Hasher hasher;
  for (const auto& copy : copies_) {
    for (const Tensor& t : copy) {
      const auto one = tensor_digest(t, pool);
      if (!one) return one.error();
      hasher.add(*one);
    }
  }
  return hasher.digest().low;
}

std::vector<MemoryRange> TensorInputs::memory() const {
  std::vector<MemoryRange> ranges;
  for (const auto& copy : copies_) {
    for (const Tensor& t : copy) ranges.push_back(memory_of(t));
  }
  return ranges;
}

HostArrays TensorInputs::host(std::int64_t iteration, ThreadPool& pool) const {
  HostArrays arrays;
  for (const Tensor& t : copy(iteration)) arrays.push_back(to_doubles(t, pool));
  return arrays;
}

double TensorInputs::working_bytes() const {
  double bytes = 0;
  for (const InputSpec& spec : specs_)
    bytes += input_bytes(spec) * (spec.rotated ? static_cast<double>(copies_.size()) : 1.0);
  return bytes;
}

HostArray to_doubles(const Tensor& t, ThreadPool& pool) {
  std::vector<std::byte> room;
  const std::byte* from = *host_bytes(t, room);
  HostArray values(static_cast<std::size_t>(t.size()));
  const std::size_t size = size_bytes(t.dtype());
  pool.parallel_for(t.size(), [&](Index begin, Index end, int) {
    convert(from + static_cast<std::size_t>(begin) * size, t.dtype(), values.data() + begin, DType::f64,
            static_cast<std::size_t>(end - begin));
  });
  return values;
}

Result<std::uint64_t> tensor_digest(const Tensor& t, ThreadPool& pool) {
  constexpr Index kPart = Index{1} << 20;
  std::vector<std::byte> room;
  const auto from = host_bytes(t, room);
  if (!from) return from.error();
  const auto size = static_cast<Index>(detail::storage_bytes(t));
  std::vector<Hash128> parts(static_cast<std::size_t>(ceil_div(size, kPart)));
  pool.parallel_for(static_cast<Index>(parts.size()), [&](Index begin, Index end, int) {
    for (Index p = begin; p < end; ++p) {
      const auto length = static_cast<std::size_t>(std::min(kPart, size - p * kPart));
      parts[static_cast<std::size_t>(p)] = hash_bytes(*from + p * kPart, length);
    }
  });
  return Hasher().add(parts).digest().low;
}

MemoryRange memory_of(const Tensor& t) {
  return {reinterpret_cast<std::uintptr_t>(detail::storage_address(t)), detail::storage_bytes(t)};
}

}  // namespace tilewright::lab
