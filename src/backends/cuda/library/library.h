// Library: a vendor's library whose calls may take a kernel's place. The tuner alone asks for them: a kernel
// that is not tuned is always one of ours. Another library is one more file here, and a line in
// open_libraries().
#pragma once

#include "backends/backend.h"
#include "backends/cuda/host/driver_api.h"

#include <tilewright/base/error.h>
#include <tilewright/tile/kernel.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tilewright::cuda {

// What a library is given of the device that it runs on, whose context is current wherever it is called.
struct LibraryHost {
  // Device memory that stays until the device is closed.
  std::function<Result<void*>(std::size_t bytes)> allocate;
};

// A kernel as a call that is ready to be made.
class PreparedCall {
 public:
  virtual ~PreparedCall() = default;
  // Queues it; `views` are the addresses of the kernel's views. Calls on one device run in their order.
  virtual Status enqueue(void* const* views, api::CUstream stream) = 0;
  virtual std::string describe() const = 0;
};

class Library {
 public:
  virtual ~Library() = default;
  virtual std::string name() const = 0;     // as tile::LibraryCall has it
  virtual std::string version() const = 0;  // "13.1.0"
  virtual std::string path() const = 0;
  // The number of algorithms worth a measurement for what the kernel computes; 0 if the library does not
  // compute that.
  virtual int algorithms(const tile::Kernel& kernel) = 0;
  // The call as a text: all that distinguishes it from others.
  virtual Result<std::string> print(const tile::Kernel& kernel, int algorithm) = 0;
  virtual Result<std::unique_ptr<PreparedCall>> prepare(const tile::Kernel& kernel, int algorithm) = 0;
};

// Libraries behind the functions of backends::Backend.
class LibrarySet {
 public:
  explicit LibrarySet(std::vector<std::unique_ptr<Library>> all, std::string unusable = "")
      : all_(std::move(all)), unusable_(std::move(unusable)) {}
  const std::vector<std::unique_ptr<Library>>& all() const { return all_; }
  // Why libraries that are there cannot be used; empty: there are none of these.
  const std::string& unusable() const { return unusable_; }

  std::vector<backends::Candidate> candidates(const tile::Kernel& kernel) const;
  Result<backends::Source> print(const tile::Kernel& kernel, const tile::LibraryCall& call) const;
  // There is nothing to compile, and nothing that another text than the printed one could change.
  Result<backends::Binary> compile(const tile::Kernel& kernel, const tile::LibraryCall& call,
                                   const backends::Source& source) const;
  Result<std::unique_ptr<PreparedCall>> prepare(const tile::Kernel& kernel,
                                                const tile::LibraryCall& call) const;

 private:
  Result<Library*> find(const tile::LibraryCall& call) const;
  std::vector<std::unique_ptr<Library>> all_;
  std::string unusable_;
};

// Opens the libraries that this machine has.
LibrarySet open_libraries(const std::vector<std::string>& paths, const LibraryHost& host);

}  // namespace tilewright::cuda
