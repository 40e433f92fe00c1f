// Signatures and sizes of a ZIP archive's records, in bytes, and the places of their fields.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewright::formats::zip {

inline constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                               kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
inline constexpr std::size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                             kLocator64Bytes = 20;
inline constexpr std::size_t kMostComment = 0xffff;
// A field with this value is in the ZIP64 extra field (id 1) or record instead.
inline constexpr std::uint32_t kElsewhere = 0xffffffff;
inline constexpr std::uint16_t kElsewhere16 = 0xffff, kExtra64 = 1;
inline constexpr std::uint16_t kEncrypted = 1, kUtf8 = 1 << 11;

}  // namespace tilewright::formats::zip
