// Opening backends and owning their memory.
#include "runtime/device.h"

#include "backends/reference/reference_backend.h"
#include "runtime/device_name.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

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

Result<backends::BackendEntry> load_entry(const std::string& kind, const std::string& folder) {
  const std::string path = fmt::format("{}/libtw_{}.so", folder, kind);
  // Never closed: LLVM's and the driver's threads and destructors outlive any moment one could pick.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return failure(Failure::Kind::not_found,
                   fmt::format("device {}: its backend could not be opened: {}", kind, dlerror()));
  void* entry = dlsym(library, "tilewright_open_backend");
  if (!entry)
    return failure(Failure::Kind::not_found,
                   fmt::format("device {}: {} is not a Tilewright backend", kind, path));
  return reinterpret_cast<backends::BackendEntry>(entry);
}

}  // namespace

Result<std::shared_ptr<Device>> Device::open(const std::string& name, backends::BackendOptions options,
                                             const std::string& library_dir) {
  const Result<DeviceName> parsed = parse_device_name(name);
  if (!parsed) return parsed.error();
  if (parsed->kind == "reference")
    return std::shared_ptr<Device>(new Device("reference", reference::open_reference_backend()));
  options.ordinal = parsed->ordinal;
  auto entry = load_entry(parsed->kind, library_dir.empty() ? own_folder() : library_dir);
  if (!entry) return entry.error();
  auto backend = (*entry)(options);
  if (!backend) return backend.error();
  return std::shared_ptr<Device>(new Device(parsed->full(), std::move(*backend)));
}

Result<std::shared_ptr<Buffer>> Buffer::allocate(const std::shared_ptr<Device>& device, std::size_t bytes) {
  auto data = device->backend().allocate(std::max<std::size_t>(bytes, 1));
  if (!data) return data.error();
  return std::shared_ptr<Buffer>(new Buffer(device, *data, bytes));
}

Buffer::~Buffer() { device_->backend().release(data_, std::max<std::size_t>(bytes_, 1)); }

Status Buffer::write(const void* from, std::size_t bytes) {
  if (bytes == 0) return Unit{};
  return device_->backend().copy(data_, from, bytes, backends::CopyKind::host_to_device);
}

Status Buffer::fill(backends::FillPattern pattern) {
  if (bytes_ == 0) return Unit{};
  return device_->backend().fill(data_, pattern, bytes_);
}

Status Buffer::read(void* to, std::size_t bytes) const {
  if (bytes == 0) return Unit{};
  return device_->backend().copy(to, data_, bytes, backends::CopyKind::device_to_host);
}

}  // namespace tilewright::runtime
