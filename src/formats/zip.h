// ZIP archives, as far as .npz needs them: entries that are stored or deflated, ZIP64 included.
// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
#pragma once

#include "formats/bytes.h"

#include <functional>
#include <string>
#include <vector>

namespace tilewright::formats {

enum class ZipMethod : std::uint16_t { stored = 0, deflated = 8 };

struct ZipEntry {
  std::string name;
  ZipMethod method = ZipMethod::stored;
  std::uint32_t checksum = 0;  // CRC-32 of the unpacked bytes
  std::uint64_t packed_bytes = 0, bytes = 0;
  std::uint64_t begin = 0;  // of the packed bytes in the file
};

// The entries in the order of the directory. Throws Error: what is wrong with the archive.
std::vector<ZipEntry> read_zip(Bytes file);
// Calls `read` with the bytes of an entry; throws Error where they are not what the directory says.
void unpack(Bytes file, const ZipEntry& entry, const std::function<void(Bytes)>& read);

// Writes an archive front to back through `write`.
class ZipWriter {
 public:
  explicit ZipWriter(std::function<void(Bytes)> write) : write_(std::move(write)) {}
  // The parts are one entry's bytes.
  void add(const std::string& name, ZipMethod method, const std::vector<Bytes>& parts);
  void finish();

 private:
  void put(Bytes bytes);
  std::function<void(Bytes)> write_;
  std::vector<ZipEntry> entries_;  // `begin` is that of the local header
  std::uint64_t at_ = 0;
};

}  // namespace tilewright::formats
