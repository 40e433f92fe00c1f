// A 128-bit content hash (XXH3) for cache keys: fast, stable between runs and machines, not cryptographic.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>

#pragma GCC visibility push(default)
namespace tilewright {

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};

std::string to_hex(const Hash128& hash);  // 32 digits, as `xxh128sum` prints them

// The hash of `size` bytes, of a text's characters.
Hash128 hash_bytes(const void* data, std::size_t size);
inline Hash128 hash_bytes(std::string_view text) { return hash_bytes(text.data(), text.size()); }

// Collects the parts of a key. Texts and ranges enter with their length, so {"ab","c"} and {"a","bc"} differ.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  // Takes what was added so far; the one that was moved from may only be destroyed or assigned to.
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  Hasher& add_raw(const void* data, std::size_t size);  // no length: for data of a fixed size
  Hasher& add(std::string_view text);
  Hasher& add(const char* text) { return add(std::string_view(text)); }
  Hasher& add(double value);  // by its bits: 0.0 and -0.0 differ
  Hasher& add(const Hash128& hash) { return add(hash.high).add(hash.low); }

  // Integers, enums and bool of every width enter as 64 bits, the same number in any type gives the same
  // hash.
  template <class T>
    requires std::integral<T> || std::is_enum_v<T>
  Hasher& add(T value) {
    const auto wide = static_cast<std::int64_t>(value);
    return add_raw(&wide, sizeof wide);
  }

  template <std::ranges::sized_range R>
    requires(!std::convertible_to<R, std::string_view>)
  Hasher& add(const R& range) {
    add(std::ranges::size(range));
    for (const auto& element : range) add(element);
    return *this;
  }

  Hash128 digest() const;  // of all that was added so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright

template <>
struct std::hash<tilewright::Hash128> {
  std::size_t operator()(const tilewright::Hash128& value) const noexcept { return value.low; }
};
#pragma GCC visibility pop
