// Raw access to tensors.
#include "tensor/storage.h"

#include <algorithm>
#include <memory>

#include "tensor/state.h"

namespace tilewright::detail {

namespace {

std::shared_ptr<runtime::Buffer> buffer_of(const Tensor& t) {
  const std::shared_ptr<ContextState> context = t.defined() ? t.impl()->context.lock() : nullptr;
  OpenMutex gone;
  const std::lock_guard lock(context ? context->mutex : gone);
  if (t.defined() && !t.impl()->donated.empty()) throw Error("this tensor " + donated_text(*t.impl()));
  if (!t.defined() || !t.impl()->buffer) throw Error("this tensor has no memory: it has no value yet");
  return t.impl()->buffer;
}

}  // namespace

std::size_t storage_bytes(const Tensor& t) {
  return static_cast<std::size_t>(t.size()) * size_bytes(t.dtype());
}

void* storage_address(const Tensor& t) { return buffer_of(t)->data(); }

const std::byte* host_storage(const Tensor& t) {
  const std::shared_ptr<runtime::Buffer> buffer = buffer_of(t);
  return buffer->device().is_host() ? static_cast<const std::byte*>(buffer->data()) : nullptr;
}

Status fill_storage(const Tensor& t, std::uint8_t byte) {
  const std::shared_ptr<runtime::Buffer> buffer = buffer_of(t);
  if (Status filled = buffer->fill({byte}); !filled) return filled;
  return buffer->device().backend().synchronize();
}

Status read_storage(const Tensor& t, void* to) { return buffer_of(t)->read(to, storage_bytes(t)); }

Status read_in_pieces(const Tensor& t, const BytesVisitor& visit) {
  const std::shared_ptr<runtime::Buffer> buffer = buffer_of(t);
  const std::size_t bytes = storage_bytes(t);
  if (buffer->device().is_host()) {
    visit({static_cast<const std::byte*>(buffer->data()), bytes}, 0);
    return Unit{};
  }
  const auto room = std::make_unique_for_overwrite<std::byte[]>(std::min(kPieceBytes, bytes));
  for (std::size_t first = 0; first < bytes; first += kPieceBytes) {
    const std::size_t count = std::min(kPieceBytes, bytes - first);
    if (Status read = buffer->read(room.get(), count, first); !read) return read;
    visit({room.get(), count}, first);
  }
  return Unit{};
}

std::shared_ptr<runtime::Device> device_of(Context& context, const std::string& device) {
  const std::lock_guard lock(context.state()->mutex);
  return context.state()->device(device).device;
}
backends::Backend& backend_of(Context& context, const std::string& device) {
  return device_of(context, device)->backend();
}
bool is_host(const std::string& device) { return runtime::parse_device_name(device).value().is_host(); }
std::string cache_directory(const Context& context) { return context.state()->cache.directory(); }

}  // namespace tilewright::detail
