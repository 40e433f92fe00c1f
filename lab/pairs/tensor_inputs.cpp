// Making, reading and hashing input tensors.
#include "pairs/tensor_inputs.h"

#include <tilewright/base/hash.h>
#include <tilewright/tensor/functions.h>
#include <tilewright/tensor/out_of_memory.h>

#include <algorithm>
#include <cmath>

#include "tensor/storage.h"

namespace tilewright::lab {

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
    for (std::size_t i = 0; i < copy.size(); ++i) {
      if (!specs_[i].rotated && &copy != &copies_.front()) continue;  // the same tensor again
      const auto one = tensor_digest(copy[i], pool);
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
  HostArray values(static_cast<std::size_t>(t.size()));
  const Status read = visit_elements(t, [&](const StoredElements& elements) {
    pool.parallel_for(elements.count, [&](Index begin, Index end, int) {
      widen(elements, begin, end - begin, values.data() + elements.first + begin);
    });
  });
  if (!read) throw Error(read.error().message);
  return values;
}

Status visit_elements(const Tensor& t, const ElementsVisitor& visit) {
  const std::size_t size = size_bytes(t.dtype());
  return detail::read_in_pieces(t, [&](std::span<const std::byte> bytes, std::size_t first) {
    visit(
        {bytes.data(), t.dtype(), static_cast<Index>(first / size), static_cast<Index>(bytes.size() / size)});
  });
}

Result<std::uint64_t> tensor_digest(const Tensor& t, ThreadPool& pool) {
  constexpr Index kPart = Index{1} << 20;
  static_assert(detail::kPieceBytes % kPart == 0, "a part is never cut in two");
  std::vector<Hash128> parts(
      static_cast<std::size_t>(ceil_div(static_cast<Index>(detail::storage_bytes(t)), kPart)));
  const Status read = detail::read_in_pieces(t, [&](std::span<const std::byte> bytes, std::size_t first) {
    const auto size = static_cast<Index>(bytes.size());
    const std::span<Hash128> own = std::span(parts).subspan(first / kPart);
    pool.parallel_for(ceil_div(size, kPart), [&](Index begin, Index end, int) {
      for (Index p = begin; p < end; ++p)
        own[static_cast<std::size_t>(p)] =
            hash_bytes(bytes.data() + p * kPart, static_cast<std::size_t>(std::min(kPart, size - p * kPart)));
    });
  });
  if (!read) return read.error();
  return Hasher().add(parts).digest().low;
}

MemoryRange memory_of(const Tensor& t) {
  return {reinterpret_cast<std::uintptr_t>(detail::storage_address(t)), detail::storage_bytes(t)};
}

}  // namespace tilewright::lab
