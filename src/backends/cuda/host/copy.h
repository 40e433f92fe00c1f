// Moving bytes: between host and device through pinned memory, on the device, and filling.
#pragma once

#include <cstddef>
#include <vector>

#include "backends/cuda/host/context.h"
#include "backends/fill_pattern.h"

namespace tilewright::cuda {

// Page-locked host memory: the device reads and writes it at full bus speed, without a copy by the driver.
class PinnedBuffer {
 public:
  static Result<PinnedBuffer> allocate(const Context& context, std::size_t size_bytes);
  std::byte* data() const { return static_cast<std::byte*>(memory_.get()); }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  Owned<void*, &Driver::mem_free_host> memory_;
  std::size_t size_bytes_ = 0;
};

// Copies of ordinary (pageable) host memory through a ring of pinned pieces, so that filling one piece
// overlaps with the transfer of the one before. Small uploads lie behind one another in a piece, so that none
// of them waits for those before it, which the device comes to behind all work queued by then. For one thread
// at a time.
class Staging {
 public:
  struct Options {
    std::size_t piece_bytes = std::size_t{4}
                              << 20;  // large enough to reach the bus' rate, small enough for L2/L3
    int pieces = 3;
  };
  static Result<Staging> create(const Context& context) { return create(context, Options{}); }
  static Result<Staging> create(const Context& context, const Options& options);

  // When it returns, `from` may be reused; the copy is ordered on `stream`.
  Status upload(api::CUdeviceptr to, const void* from, std::size_t size_bytes, const Stream& stream);
  // Waits: when it returns, `to` holds what `from` held at this point of `stream`.
  Status download(void* to, api::CUdeviceptr from, std::size_t size_bytes, const Stream& stream);

 private:
  struct Piece {
    PinnedBuffer memory;
    Event used;              // recorded after the last transfer that touches it
    bool busy = false;       // an event was recorded since it was last waited for
    std::size_t filled = 0;  // bytes that transfers may still read
  };
  Status await(Piece& piece);

  const Driver* driver_ = nullptr;
  std::vector<Piece> pieces_;
  std::size_t next_ = 0;  // the piece that uploads fill
};

Status copy_on_device(const Driver& driver, api::CUdeviceptr to, api::CUdeviceptr from,
                      std::size_t size_bytes, api::CUstream stream);
// `size_bytes` are whole patterns, and `to` is aligned for one.
Status fill(const Driver& driver, api::CUdeviceptr to, backends::FillPattern pattern, std::size_t size_bytes,
            api::CUstream stream);

}  // namespace tilewright::cuda
