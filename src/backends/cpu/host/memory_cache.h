// MemoryCache: host memory for tensors. Freed blocks are kept for the next allocation of their size, because
// the first touch of a fresh page costs more than a kernel's whole pass over it.
#pragma once

#include <tilewright/base/error.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace tilewright::cpu {

class MemoryCache {
 public:
  // At most `kept_bytes` of freed memory are kept.
  explicit MemoryCache(std::size_t kept_bytes) : limit_(kept_bytes) {}
  ~MemoryCache();
  MemoryCache(const MemoryCache&) = delete;
  MemoryCache& operator=(const MemoryCache&) = delete;

  // Aligned to 256 bytes; from 4 MiB on to 2 MiB, in huge pages where the system has them.
  Result<void*> allocate(std::size_t bytes);
  void release(void* address, std::size_t bytes);
  std::size_t kept_bytes() const;
  // The size that is really taken for a request.
  static std::size_t rounded(std::size_t bytes);

 private:
  void trim();
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> free_;
  std::size_t kept_ = 0;
  std::size_t limit_;
};

}  // namespace tilewright::cpu
