// A folder of files in memory through which tensors pass to another process and back.
#pragma once

#include <tilewright/base/error.h>

#include <cstddef>
#include <functional>
#include <string>

namespace tilewright::lab {

// Made under /dev/shm where there is one; removed with all that is in it.
class PeerFolder {
 public:
  PeerFolder();  // throws Error
  ~PeerFolder();
  PeerFolder(const PeerFolder&) = delete;
  PeerFolder& operator=(const PeerFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Makes (or keeps) a file of `size` bytes and calls `use` with its content mapped.
Status with_mapped_file(const std::string& path, std::size_t size,
                        const std::function<Status(void* content)>& use);

}  // namespace tilewright::lab
