// Staged copies and fills; see copy.h.
#include "backends/cuda/host/copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tilewright::cuda {

Result<PinnedBuffer> PinnedBuffer::allocate(const Context& context, std::size_t size_bytes) {
  void* memory = nullptr;
  const Driver& driver = context.driver();
  const auto result = driver.mem_host_alloc(&memory, size_bytes, api::kHostAllocPortable);
  if (auto status = check(driver, result, fmt::format("pinning {} bytes of host memory", size_bytes));
      !status) {
    return status.error();
  }
  PinnedBuffer made;
  made.memory_ = {driver, memory};
  made.size_bytes_ = size_bytes;
  return made;
}

Result<Staging> Staging::create(const Context& context, const Options& options) {
  Staging made;
  made.driver_ = &context.driver();
  for (int i = 0; i < options.pieces; ++i) {
    auto memory = PinnedBuffer::allocate(context, options.piece_bytes);
    if (!memory) return memory.error();
    auto used = Event::create(context);
    if (!used) return used.error();
    made.pieces_.push_back({std::move(*memory), std::move(*used)});
  }
  return made;
}

Status Staging::await(Piece& piece) {
  piece.filled = 0;
  if (!piece.busy) return Unit{};
  piece.busy = false;
  return piece.used.synchronize();
}

Status Staging::upload(api::CUdeviceptr to, const void* from, std::size_t size_bytes, const Stream& stream) {
  constexpr std::size_t kAlign = 256;  // where pinned memory begins
  const auto* source = static_cast<const std::byte*>(from);
  for (std::size_t at = 0; at < size_bytes;) {
    if (pieces_[next_].filled >= pieces_[next_].memory.size_bytes()) {
      next_ = (next_ + 1) % pieces_.size();
      if (auto status = await(pieces_[next_]); !status) return status;
    }
    Piece& piece = pieces_[next_];
    const std::size_t bytes = std::min(piece.memory.size_bytes() - piece.filled, size_bytes - at);
    std::byte* const place = piece.memory.data() + piece.filled;
    std::memcpy(place, source + at, bytes);
    const auto queued = driver_->memcpy_htod_async(to + at, place, bytes, stream.get());
    if (auto status = check(*driver_, queued, "cuMemcpyHtoDAsync"); !status) return status;
    if (auto status = piece.used.record(stream.get()); !status) return status;
    piece.busy = true;
    piece.filled += (bytes + kAlign - 1) / kAlign * kAlign;
    at += bytes;
  }
  return Unit{};
}

Status Staging::download(void* to, api::CUdeviceptr from, std::size_t size_bytes, const Stream& stream) {
  auto* target = static_cast<std::byte*>(to);
  const std::size_t piece_bytes = pieces_.front().memory.size_bytes();
  const std::size_t count = (size_bytes + piece_bytes - 1) / piece_bytes;
  const std::size_t ahead = pieces_.size();
  const auto bytes_of = [&](std::size_t i) { return std::min(piece_bytes, size_bytes - i * piece_bytes); };
  // Transfer i is queued while the host still copies transfer i - ahead + 1.
  for (std::size_t i = 0; i < count + ahead; ++i) {
    Piece& piece = pieces_[i % ahead];
    if (i >= ahead && i - ahead < count) {
      if (auto status = await(piece); !status) return status;
      std::memcpy(target + (i - ahead) * piece_bytes, piece.memory.data(), bytes_of(i - ahead));
    }
    if (i >= count) continue;
    if (auto status = await(piece); !status) return status;  // an upload may still read it
    const auto queued =
        driver_->memcpy_dtoh_async(piece.memory.data(), from + i * piece_bytes, bytes_of(i), stream.get());
    if (auto status = check(*driver_, queued, "cuMemcpyDtoHAsync"); !status) return status;
    if (auto status = piece.used.record(stream.get()); !status) return status;
    piece.busy = true;
  }
  return Unit{};
}

Status copy_on_device(const Driver& driver, api::CUdeviceptr to, api::CUdeviceptr from,
                      std::size_t size_bytes, api::CUstream stream) {
  if (size_bytes == 0) return Unit{};
  return check(driver, driver.memcpy_dtod_async(to, from, size_bytes, stream), "cuMemcpyDtoDAsync");
}

namespace {

// The driver has no pattern of 8 bytes: the halves of the first words in two strided fills, then copies that
// double what there is.
Status fill_words(const Driver& driver, api::CUdeviceptr to, std::uint64_t bits, std::size_t size_bytes,
                  api::CUstream stream) {
  constexpr std::size_t kWord = sizeof bits, kHalf = kWord / 2;
  constexpr std::size_t kStrided = std::size_t{64} << 10;  // chosen, not measured
  std::size_t done = std::min(size_bytes, kStrided);
  for (const std::size_t half : {std::size_t{0}, std::size_t{1}}) {
    const auto value = static_cast<unsigned>(bits >> (32 * half));
    const auto filled = driver.memset_d2_d32_async(to + half * kHalf, kWord, value, 1, done / kWord, stream);
    if (Status s = check(driver, filled, "cuMemsetD2D32Async"); !s) return s;
  }
  while (done < size_bytes) {
    const std::size_t more = std::min(done, size_bytes - done);
    if (Status s = copy_on_device(driver, to + done, to, more, stream); !s) return s;
    done += more;
  }
  return Unit{};
}

}  // namespace

Status fill(const Driver& driver, api::CUdeviceptr to, backends::FillPattern pattern, std::size_t size_bytes,
            api::CUstream stream) {
  if (size_bytes == 0) return Unit{};
  const backends::FillPattern p = backends::narrowest(pattern);
  switch (p.width) {
    case 1:
      return check(driver, driver.memset_d8_async(to, static_cast<unsigned char>(p.bits), size_bytes, stream),
                   "cuMemsetD8Async");
    case 2:
      return check(driver,
                   driver.memset_d16_async(to, static_cast<unsigned short>(p.bits), size_bytes / 2, stream),
                   "cuMemsetD16Async");
    case 4:
      return check(driver, driver.memset_d32_async(to, static_cast<unsigned>(p.bits), size_bytes / 4, stream),
                   "cuMemsetD32Async");
    default:
      return fill_words(driver, to, p.bits, size_bytes, stream);
  }
}

}  // namespace tilewright::cuda
