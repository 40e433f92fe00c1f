// Device: a backend that was found and opened, by the name users write: "cpu", "cuda:0", "reference".
#pragma once

#include "backends/backend.h"
#include "runtime/device_name.h"

#include <tilewright/base/allocator.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

namespace tilewright::runtime {

class Device {
 public:
  // Opens the backend's shared library: of `library_dir`, or of the places that
  // ContextOptions::library_directory names. A Failure says what is missing, and where it was looked for.
  // `allocator`: where buffers take their memory from, if not from the backend.
  static Result<std::shared_ptr<Device>> open(const std::string& name, backends::BackendOptions options = {},
                                              const std::string& library_dir = "",
                                              std::shared_ptr<Allocator> allocator = nullptr);

  const std::string& name() const { return name_; }
  backends::Backend& backend() const { return *backend_; }
  const tile::Target& target() const { return backend_->target(); }
  // Host and device share memory: no copies are needed to read or write.
  bool is_host() const { return is_host_; }

  // Memory of at least one byte for work launched here, and back again: later work may get it then.
  Result<void*> allocate(std::size_t bytes) const;
  void release(void* address, std::size_t bytes) const;
  // Bytes that were allocated and not released, now and at most since the device was opened or reset_peak().
  std::size_t bytes_in_use() const { return in_use_; }
  std::size_t peak_bytes() const { return peak_; }
  void reset_peak() const { peak_ = in_use_.load(); }

 private:
  Device(const DeviceName& name, std::unique_ptr<backends::Backend> backend,
         std::shared_ptr<Allocator> allocator)
      : name_(name.full()),
        is_host_(name.is_host()),
        allocator_(std::move(allocator)),
        backend_(std::move(backend)) {}
  Result<void*> take(std::size_t bytes) const;  // without counting it
  std::string name_;
  bool is_host_;
  mutable std::atomic<std::size_t> in_use_ = 0, peak_ = 0;
  std::shared_ptr<Allocator> allocator_;  // null: the backend's own memory
  std::unique_ptr<backends::Backend> backend_;
};

// Memory of a device; freed when the last owner goes. Elements start at `data()`. It may be another's, who is
// told by the end of `Foreign::owner` that nobody here uses it any more.
class Buffer {
 public:
  struct Foreign {
    std::shared_ptr<void> owner;
    bool read_only = false;
  };
  static Result<std::shared_ptr<Buffer>> allocate(const std::shared_ptr<Device>& device, std::size_t bytes);
  // `data` as it is. It must stay until the last owner of the buffer goes and the work launched by then is
  // done, which is when `foreign.owner` is let go.
  static std::shared_ptr<Buffer> borrow(const std::shared_ptr<Device>& device, void* data, std::size_t bytes,
                                        Foreign foreign);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  Device& device() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }
  bool is_borrowed() const { return foreign_.has_value(); }
  bool is_read_only() const { return foreign_ && foreign_->read_only; }
  // Whether some byte is in both, and whether all are: two buffers may be the same borrowed memory.
  bool overlaps(const Buffer& other) const;
  bool is_same_memory(const Buffer& other) const;
  Status write(const void* from, std::size_t bytes);  // from the host; done on return
  // To the host, after all work launched so far: so many bytes from `offset` on.
  Status read(void* to, std::size_t bytes, std::size_t offset = 0) const;
  Status fill(backends::FillPattern pattern);  // all of it, behind the work launched so far

 private:
  Buffer(std::shared_ptr<Device> device, void* data, std::size_t bytes)
      : device_(std::move(device)), data_(data), bytes_(bytes) {}
  std::shared_ptr<Device> device_;
  void* data_;
  std::size_t bytes_;
  std::optional<Foreign> foreign_;  // none: the memory is the device's, and is given back to it
};

}  // namespace tilewright::runtime
