// MappedFile: a file's bytes in memory, which the system reads when they are looked at.
#pragma once

#include "formats/bytes.h"

#include <memory>
#include <string>

namespace tilewright::formats {

// The bytes stay as long as the object does, also where the file is replaced or removed meanwhile. A file
// that is shortened in place takes them away: reading them then ends the process, as the system has it.
class MappedFile {
 public:
  // Throws Error: it cannot be opened or is no regular file.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  Bytes bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

 private:
  MappedFile(void* data, std::size_t size) : data_(data), size_(size) {}
  void* data_;
  std::size_t size_;
};

}  // namespace tilewright::formats
