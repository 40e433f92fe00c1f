// Opening backends and owning their memory.
#include "runtime/device.h"

#include "backends/reference/reference_backend.h"

#include <tilewright/tile/plan.h>
#include <tilewright/version.h>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

namespace tilewright::runtime {

namespace {

// The folder this library (or the program it is linked into) was loaded from.
std::string own_folder() {
  Dl_info where{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &where) == 0 || !where.dli_fname) return ".";
  std::error_code ignored;
  const auto path = std::filesystem::canonical(where.dli_fname, ignored);
  if (!ignored && path.has_parent_path()) return path.parent_path().string();
  // A program started through PATH is known by its bare name: ask the kernel.
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return ignored ? "." : program.parent_path().string();
}

// The folders in which the loader looks for a name without one: the RUNPATH of this library or program,
// LD_LIBRARY_PATH, the system's.
std::vector<std::string> loader_folders() {
  Dl_info where{};
  void* own = nullptr;
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &where) != 0 && where.dli_fname)
    own = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (!own) own = dlopen(nullptr, RTLD_LAZY);
  std::vector<std::string> folders;
  Dl_serinfo size{};
  if (own && dlinfo(own, RTLD_DI_SERINFOSIZE, &size) == 0) {
    std::vector<std::max_align_t> memory(size.dls_size / sizeof(std::max_align_t) + 1);
    auto* info = reinterpret_cast<Dl_serinfo*>(memory.data());
    *info = size;
    if (dlinfo(own, RTLD_DI_SERINFO, info) == 0)
      for (unsigned i = 0; i < info->dls_cnt; ++i)
        folders.push_back(std::filesystem::path(info->dls_serpath[i].dls_name).lexically_normal().string());
  }
  if (own) dlclose(own);
  return folders;
}

// The files that may be a backend, in the order in which they are tried.
std::vector<std::string> backend_files(const std::string& kind, const std::string& asked_folder) {
  const std::string file = fmt::format("libtw_{}.so", kind);
  if (!asked_folder.empty()) return {asked_folder + "/" + file};
  const std::string own = own_folder();
  return {
      own + "/" + file,             // as they are built, or copied together
      own + "/tilewright/" + file,  // as they are installed: beside libtilewright.so in a folder of their own
      file,                         // wherever the loader looks: the program's RUNPATH, LD_LIBRARY_PATH
  };
}

// The library, or why none of the files is one. A file that is there and cannot be opened ends the search:
// what it lacks is what is wrong.
Result<void*> open_backend_library(const std::string& kind, const std::string& asked_folder) {
  std::string tried;
  for (const std::string& file : backend_files(kind, asked_folder)) {
    // Never closed: LLVM's and the driver's threads and destructors outlive any moment one could pick.
    if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    const std::string why = dlerror();  // "FILE: cannot open shared object file: …" of what is not there
    std::error_code ignored;
    const bool is_path = file.find('/') != std::string::npos;
    if (is_path ? std::filesystem::exists(file, ignored) : !why.starts_with(file))
      return failure(Failure::Kind::not_found,
                     fmt::format("device {}: its backend could not be opened: {}", kind, why));
    tried += (tried.empty() ? "" : ", ") + file;
  }
  // Whoever runs a program puts the file where it is looked for; whoever writes one may say where that is.
  constexpr std::string_view kWaysOut =
      "put it into one of these folders, or name its own in LD_LIBRARY_PATH or "
      "ContextOptions::library_directory";
  const std::string folders = asked_folder.empty() ? fmt::format(" by the loader's path ({}); {}",
                                                                 fmt::join(loader_folders(), ", "), kWaysOut)
                                                   : ", the folder of ContextOptions::library_directory";
  return failure(Failure::Kind::not_found,
                 fmt::format("device {}: its backend was not found; looked for {}{}", kind, tried, folders));
}

// The version must be ours, to the letter: what passes between the two are C++ objects.
Result<backends::BackendEntry> load_entry(const std::string& kind, const std::string& asked_folder) {
  auto library = open_backend_library(kind, asked_folder);
  if (!library) return library.error();
  void* entry = dlsym(*library, "tilewright_open_backend");
  void* version = dlsym(*library, "tilewright_backend_version");
  Dl_info where{};
  const bool known = entry && dladdr(entry, &where) != 0 && where.dli_fname;
  const std::string path = known ? where.dli_fname : fmt::format("libtw_{}.so", kind);
  if (!entry || !version)
    return failure(Failure::Kind::not_found,
                   fmt::format("device {}: {} is not a Tilewright backend", kind, path));
  const std::string_view found = reinterpret_cast<backends::BackendVersion>(version)();
  if (found != library_version())
    return failure(Failure::Kind::not_found, fmt::format("device {}: {} is of version {}, this library of {}",
                                                         kind, path, found, library_version()));
  return reinterpret_cast<backends::BackendEntry>(entry);
}

}  // namespace

Result<std::shared_ptr<Device>> Device::open(const std::string& name, backends::BackendOptions options,
                                             const std::string& library_dir,
                                             std::shared_ptr<Allocator> allocator) {
  const Result<DeviceName> parsed = parse_device_name(name);
  if (!parsed) return parsed.error();
  if (options.stream && parsed->is_host())
    return failure(Failure::Kind::invalid,
                   fmt::format("device {} has no streams: ContextOptions::stream is one of a GPU", name));
  if (parsed->kind == "reference")
    return std::shared_ptr<Device>(
        new Device(*parsed, reference::open_reference_backend(), std::move(allocator)));
  options.ordinal = parsed->ordinal;
  auto entry = load_entry(parsed->kind, library_dir);
  if (!entry) return entry.error();
  auto backend = (*entry)(options);
  if (!backend) return backend.error();
  return std::shared_ptr<Device>(new Device(*parsed, std::move(*backend), std::move(allocator)));
}

Result<void*> Device::allocate(std::size_t bytes) const {
  bytes = std::max<std::size_t>(bytes, 1);
  auto address = take(bytes);
  if (!address) {
    if (address.error().kind == Failure::Kind::out_of_memory)
      return failure(Failure::Kind::out_of_memory,
                     fmt::format("{}; {} bytes are in use", address.error().message, bytes_in_use()));
    return address;
  }
  const std::size_t now = in_use_ += bytes;
  for (std::size_t peak = peak_; peak < now && !peak_.compare_exchange_weak(peak, now);) {
  }
  return address;
}

Result<void*> Device::take(std::size_t bytes) const {
  if (!allocator_) return backend_->allocate(bytes);
  const backends::StreamHandle stream = backend_->stream_handle();
  void* address = nullptr;
  std::string why;
  try {
    address = allocator_->allocate(bytes, tile::kBufferAlign, stream);
  } catch (const std::exception& thrown) {
    why = fmt::format(" ({})", thrown.what());
  } catch (...) {
    why = " (it threw something that is no std::exception)";
  }
  if (!address)
    return failure(Failure::Kind::out_of_memory,
                   fmt::format("ContextOptions::allocator has no {} bytes{}", bytes, why));
  if (reinterpret_cast<std::uintptr_t>(address) % tile::kBufferAlign == 0) return address;
  allocator_->release(address, bytes, stream);
  return failure(Failure::Kind::invalid,
                 fmt::format("ContextOptions::allocator gave {}, which is no multiple of {} bytes", address,
                             tile::kBufferAlign));
}

void Device::release(void* address, std::size_t bytes) const {
  bytes = std::max<std::size_t>(bytes, 1);
  in_use_ -= bytes;
  if (allocator_)
    allocator_->release(address, bytes, backend_->stream_handle());
  else
    backend_->release(address, bytes);
}

Result<std::shared_ptr<Buffer>> Buffer::allocate(const std::shared_ptr<Device>& device, std::size_t bytes) {
  auto data = device->allocate(bytes);
  if (!data) return data.error();
  return std::shared_ptr<Buffer>(new Buffer(device, *data, bytes));
}

std::shared_ptr<Buffer> Buffer::borrow(const std::shared_ptr<Device>& device, void* data, std::size_t bytes,
                                       Foreign foreign) {
  std::shared_ptr<Buffer> buffer(new Buffer(device, data, bytes));
  buffer->foreign_ = std::move(foreign);
  return buffer;
}

Buffer::~Buffer() {
  if (foreign_)
    device_->backend().let_go(std::move(foreign_->owner));
  else
    device_->release(data_, bytes_);
}

bool Buffer::overlaps(const Buffer& other) const {
  if (this == &other) return true;
  if (bytes_ == 0 || other.bytes_ == 0 || device_ != other.device_) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(data_),
             other_begin = reinterpret_cast<std::uintptr_t>(other.data_);
  return begin < other_begin + other.bytes_ && other_begin < begin + bytes_;
}

bool Buffer::is_same_memory(const Buffer& other) const {
  return this == &other || (overlaps(other) && data_ == other.data_ && bytes_ == other.bytes_);
}

Status Buffer::write(const void* from, std::size_t bytes) {
  if (bytes == 0) return Unit{};
  return device_->backend().copy(data_, from, bytes, backends::CopyKind::host_to_device);
}

Status Buffer::fill(backends::FillPattern pattern) {
  if (bytes_ == 0) return Unit{};
  return device_->backend().fill(data_, pattern, bytes_);
}

Status Buffer::read(void* to, std::size_t bytes, std::size_t offset) const {
  if (bytes == 0) return Unit{};
  const auto* from = static_cast<const std::byte*>(data_) + offset;
  return device_->backend().copy(to, from, bytes, backends::CopyKind::device_to_host);
}

}  // namespace tilewright::runtime
