// What measurements and checks need beside the values of a tensor: where its memory lies, its raw bytes, and
// a way to spoil them.
#pragma once

#include "runtime/device.h"

#include <tilewright/tensor/tensor.h>

#include <cstddef>
#include <functional>
#include <span>

namespace tilewright::detail {

std::size_t storage_bytes(const Tensor& t);
void* storage_address(const Tensor& t);          // the device's
const std::byte* host_storage(const Tensor& t);  // null when the host cannot read it in place

// Fill or read a tensor's memory, after all work launched so far, and return when that is done.
Status fill_storage(const Tensor& t, std::uint8_t byte);  // other handles of the tensor see it
Status read_storage(const Tensor& t, void* to);
// Shows the bytes in pieces, the first ones first, each only for as long as `visit` takes: all at once, in
// place, where the host can read them; otherwise copied, kPieceBytes at a time, into the same memory.
using BytesVisitor = std::function<void(std::span<const std::byte> bytes, std::size_t first)>;
inline constexpr std::size_t kPieceBytes = std::size_t{32} << 20;
Status read_in_pieces(const Tensor& t, const BytesVisitor& visit);

// The backend of an opened device: its clock, its target. Throws Error when it cannot be opened.
backends::Backend& backend_of(Context& context, const std::string& device);

std::shared_ptr<runtime::Device> device_of(Context& context, const std::string& device);
// Whether the memory of a device of this name is the host's.
bool is_host(const std::string& device);
// The folder that the context caches in; empty: none.
std::string cache_directory(const Context& context);

}  // namespace tilewright::detail
