// Bytes of a file, and the little-endian numbers in them. What is read lies inside, or is an Error.
#pragma once

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tilewright::formats {

static_assert(std::endian::native == std::endian::little,
              "elements are read and written as they lie in memory");

using Bytes = std::span<const std::byte>;

// Bytes, and what keeps them.
struct KeptBytes {
  Bytes bytes;
  std::shared_ptr<const void> owner;
};

// `count` bytes from `offset` on. `what` they are is said where the file ends before.
inline Bytes part(Bytes bytes, std::uint64_t offset, std::uint64_t count, std::string_view what) {
  if (offset > bytes.size() || count > bytes.size() - offset)
    throw Error(fmt::format("it is cut short: {} would be {} bytes from byte {} on, and there are {} in all",
                            what, count, offset, bytes.size()));
  return bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(count));
}

template <std::unsigned_integral T>
T number(Bytes bytes, std::uint64_t offset, std::string_view what) {
  T value = 0;
  std::memcpy(&value, part(bytes, offset, sizeof value, what).data(), sizeof value);
  return value;
}

inline std::string_view text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

template <std::unsigned_integral T>
void append(std::string& to, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof value);
}

}  // namespace tilewright::formats
