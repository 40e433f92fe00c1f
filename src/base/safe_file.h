// SafeFile: a file that is there as a whole or not at all. It is written beside, under a name that ends in
// ".tmp", and takes its own name last: until then, and where something fails, the old file of this name stays
// as it was. Any number of threads and processes may write one file: the last to publish it wins.
#pragma once

#include <tilewright/base/error.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tilewright {

struct SafeFileOptions {
  // Brought to the disk before it takes its name, which outlives the machine's sudden end: without, the file
  // may be there and empty then.
  bool durable = true;
  bool make_folders = false;  // those of its path that are missing
};

class SafeFile {
 public:
  // Failures, as all here, are of kind io and say why, without the path: a folder is not there or may not be
  // written; what is there is no regular file. Of a link the file that it leads to is replaced. An old file's
  // permissions are taken over.
  static Result<SafeFile> create(std::string path, const SafeFileOptions& options = {});
  ~SafeFile();  // without publish(), nothing is left
  SafeFile(SafeFile&& from) noexcept;
  SafeFile& operator=(SafeFile&&) = delete;

  Status write(std::span<const std::byte> bytes);  // behind what was written
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  Status finish();   // no more follows; on the disk where it is durable
  Status publish();  // after finish()

 private:
  SafeFile(std::string path, bool durable) : path_(std::move(path)), durable_(durable) {}
  Status open();
  std::string path_, temporary_;
  bool durable_;
  int file_ = -1;
  std::uint64_t end_ = 0;
};

// A whole file at once; a failure names the path.
Status write_safely(const std::string& path, std::string_view content, const SafeFileOptions& options = {});

}  // namespace tilewright
