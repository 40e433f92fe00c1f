// SafeFile: a file that is there as a whole or not at all. It is written beside, brought to the disk, and
// takes its name last: until then, and where something fails, the old file of this name stays as it was.
#pragma once

#include "formats/bytes.h"

#include <string>

namespace tilewright::formats {

class SafeFile {
 public:
  // Throws Error, as all here: the folder is not there or may not be written. Of a link the file that it
  // leads to is replaced. An old file's permissions are taken over.
  explicit SafeFile(std::string path);
  ~SafeFile();  // without publish(), nothing is left
  SafeFile(const SafeFile&) = delete;
  SafeFile& operator=(const SafeFile&) = delete;

  void write(Bytes bytes);  // behind what was written
  void write_at(std::uint64_t offset, Bytes bytes);
  void write(std::string_view text) { write(bytes_of(text)); }
  void sync();     // what was written is on the disk, and no more follows
  void publish();  // after sync()
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(const char* what);
  std::string path_, temporary_;
  int file_ = -1;
  std::uint64_t end_ = 0;
};

}  // namespace tilewright::formats
