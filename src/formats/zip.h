// ZIP archives by libzip, as far as .npz needs them: entries that are stored or deflated, ZIP64 included.
#pragma once

#include "formats/bytes.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

struct zip;  // libzip's archive, zip_t

namespace tilewright::formats {

enum class ZipMethod : std::uint16_t { stored = 0, deflated = 8 };

struct ZipEntry {
  std::string name;
  ZipMethod method = ZipMethod::stored;
  std::uint64_t packed_bytes = 0, bytes = 0;  // as the directory says; no more than the file's size allows
};

class ZipReader {
 public:
  // Throws Error: what is wrong with the archive. `file` stays as long as the reader.
  explicit ZipReader(Bytes file);

  const std::vector<ZipEntry>& entries() const { return entries_; }  // in the order of the directory
  // Throws Error where an entry's bytes are not what the directory says.
  std::vector<std::byte> unpack(std::size_t entry) const;

 private:
  struct Discard {
    void operator()(zip* archive) const;
  };
  std::unique_ptr<zip, Discard> archive_;
  std::vector<ZipEntry> entries_;
};

// What becomes an entry: `head`, and behind it what `tail()` gives, of `tail_bytes`. It is called when the
// entry is written, and what it gives is let go before the next.
struct ZipMember {
  std::string name;
  ZipMethod method = ZipMethod::stored;
  std::string head;
  std::uint64_t tail_bytes = 0;
  std::function<KeptBytes()> tail;
};

// Writes an archive through `write`, which is told from where on: an entry's header again when its size is
// known. What `tail` and `write` throw, this throws; and Error for a name that is no UTF-8.
void write_zip(const std::vector<ZipMember>& members,
               const std::function<void(std::uint64_t offset, Bytes bytes)>& write);

}  // namespace tilewright::formats
