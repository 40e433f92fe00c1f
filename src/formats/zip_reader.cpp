// The directory at the end of an archive, and unpacking; see zip.h.
#include "formats/zip.h"
#include "formats/zip_records.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

namespace tilewright::formats {

using namespace zip;

namespace {

constexpr std::string_view kDirectory = "its directory";

struct Directory {
  std::uint64_t entries = 0, begin = 0, bytes = 0;
};

// The last record of the file, in front of a comment.
std::size_t find_end(Bytes file) {
  if (file.size() >= kEndBytes) {
    const std::size_t last = file.size() - kEndBytes, first = last > kMostComment ? last - kMostComment : 0;
    for (std::size_t at = last + 1; at-- > first;)
      if (number<std::uint32_t>(file, at, kDirectory) == kEnd &&
          at + kEndBytes + number<std::uint16_t>(file, at + 20, kDirectory) == file.size())
        return at;
  }
  throw Error("it is no ZIP archive, or is cut short: its directory's end is not there");
}

Directory find_directory(Bytes file) {
  const std::size_t end = find_end(file);
  Directory d{number<std::uint16_t>(file, end + 10, kDirectory),
              number<std::uint32_t>(file, end + 16, kDirectory),
              number<std::uint32_t>(file, end + 12, kDirectory)};
  const bool is_64 =
      end >= kLocator64Bytes && number<std::uint32_t>(file, end - kLocator64Bytes, kDirectory) == kLocator64;
  std::uint64_t limit = end;
  if (is_64) {
    const auto at = number<std::uint64_t>(file, end - kLocator64Bytes + 8, kDirectory);
    if (number<std::uint32_t>(file, at, kDirectory) != kEnd64)
      throw Error("its ZIP64 directory's end is not there");
    (void)part(file, at, kEnd64Bytes, kDirectory);
    d = {number<std::uint64_t>(file, at + 32, kDirectory), number<std::uint64_t>(file, at + 48, kDirectory),
         number<std::uint64_t>(file, at + 40, kDirectory)};
    limit = at;
  }
  if (d.begin > limit || d.bytes != limit - d.begin)
    throw Error(fmt::format(
        "its directory, {} bytes from byte {} on, does not end at byte {} where its end record is", d.bytes,
        d.begin, limit));
  return d;
}

// Takes the numbers that do not fit their fields from the extra field.
struct Extra64 {
  Bytes fields;
  std::size_t at = 0;
  Extra64(Bytes extra, const std::string& name) {
    for (std::size_t i = 0; i + 4 <= extra.size();) {
      const auto id = number<std::uint16_t>(extra, i, "an extra field");
      const auto size = number<std::uint16_t>(extra, i + 2, "an extra field");
      if (id == kExtra64)
        fields = part(extra, i + 4, size, fmt::format("entry \"{}\": an extra field", name));
      i += 4 + std::size_t{size};
    }
  }
  std::uint64_t wide(std::uint32_t narrow) {
    if (narrow != kElsewhere) return narrow;
    at += 8;
    return number<std::uint64_t>(fields, at - 8, "a ZIP64 size");
  }
};

// One record of the directory; `local` is where the entry's own header is.
ZipEntry read_record(Bytes file, std::uint64_t at, std::uint64_t& next, std::uint64_t& local) {
  if (number<std::uint32_t>(file, at, kDirectory) != kCentral)
    throw Error(fmt::format("its directory has no entry at byte {}", at));
  (void)part(file, at, kCentralBytes, kDirectory);
  const auto u16 = [&](std::uint64_t field) { return number<std::uint16_t>(file, at + field, kDirectory); };
  const auto u32 = [&](std::uint64_t field) { return number<std::uint32_t>(file, at + field, kDirectory); };
  ZipEntry e;
  e.name = text(part(file, at + kCentralBytes, u16(28), kDirectory));
  if (u16(8) & kEncrypted) throw Error(fmt::format("entry \"{}\" is encrypted", e.name));
  const std::uint16_t method = u16(10);
  if (method != 0 && method != 8)
    throw Error(fmt::format("entry \"{}\" is packed by method {}; stored (0) and deflated (8) are known",
                            e.name, method));
  e.method = static_cast<ZipMethod>(method);
  e.checksum = u32(16);
  Extra64 extra(part(file, at + kCentralBytes + u16(28), u16(30), kDirectory), e.name);
  e.bytes = extra.wide(u32(24));
  e.packed_bytes = extra.wide(u32(20));
  local = extra.wide(u32(42));
  next = at + kCentralBytes + u16(28) + u16(30) + u16(32);
  return e;
}

// Behind the entry's own header, whose name is the directory's.
void find_bytes(Bytes file, ZipEntry& e, std::uint64_t local) {
  const std::string header = fmt::format("the header of entry \"{}\"", e.name);
  if (number<std::uint32_t>(file, local, header) != kLocal)
    throw Error(fmt::format("entry \"{}\" does not begin at byte {}", e.name, local));
  (void)part(file, local, kLocalBytes, header);
  const auto name_bytes = number<std::uint16_t>(file, local + 26, header);
  const auto extra_bytes = number<std::uint16_t>(file, local + 28, header);
  if (text(part(file, local + kLocalBytes, name_bytes, header)) != e.name)
    throw Error(fmt::format("entry \"{}\" has another name in its own header", e.name));
  e.begin = local + kLocalBytes + name_bytes + extra_bytes;
  (void)part(file, e.begin, e.packed_bytes, fmt::format("entry \"{}\"", e.name));
  if (e.method == ZipMethod::stored && e.packed_bytes != e.bytes)
    throw Error(fmt::format("entry \"{}\" is stored, and its sizes differ: {} and {}", e.name, e.packed_bytes,
                            e.bytes));
}

void check_apart(const std::vector<ZipEntry>& entries, const std::vector<std::uint64_t>& locals,
                 std::uint64_t end) {
  std::vector<std::size_t> order(entries.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return locals[a] < locals[b]; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const ZipEntry& e = entries[order[i]];
    if (e.begin + e.packed_bytes > (i + 1 < order.size() ? locals[order[i + 1]] : end))
      throw Error(fmt::format("entry \"{}\" overlaps what lies behind it", e.name));
  }
}

void check_sum(std::uint32_t sum, const ZipEntry& e) {
  if (sum != e.checksum)
    throw Error(
        fmt::format("entry \"{}\" is damaged: its CRC-32 is {:08x}, not {:08x}", e.name, sum, e.checksum));
}

std::uint32_t crc_of(Bytes bytes) {
  return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

struct EndInflate {
  void operator()(z_stream* s) const { ::inflateEnd(s); }
};

// zlib counts in 32 bits: both sides are given piece by piece.
std::string inflated(Bytes packed, const ZipEntry& e) {
  // No deflated byte stands for more than 1032 (zlib's maximum): a size beyond that is a lie that costs
  // memory.
  constexpr std::uint64_t kMostRatio = 1032;
  if (e.bytes / kMostRatio > e.packed_bytes)
    throw Error(
        fmt::format("entry \"{}\" cannot be {} bytes, packed into {}", e.name, e.bytes, e.packed_bytes));
  std::string out(static_cast<std::size_t>(e.bytes), '\0');
  z_stream stream{};
  constexpr int kRawDeflate = -15;
  if (::inflateInit2(&stream, kRawDeflate) != Z_OK) throw Error("zlib could not be started");
  const std::unique_ptr<z_stream, EndInflate> end(&stream);
  constexpr std::size_t kPiece = std::size_t{1} << 30;
  std::size_t read = 0, written = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    const std::size_t in = std::min(kPiece, packed.size() - read),
                      room = std::min(kPiece, out.size() - written);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + read));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    state = ::inflate(&stream, Z_NO_FLUSH);  // Z_BUF_ERROR where it can go no further
    read += in - stream.avail_in;
    written += room - stream.avail_out;
  }
  if (state != Z_STREAM_END || read != packed.size() || written != out.size())
    throw Error(fmt::format("entry \"{}\" is damaged: its {} packed bytes do not give {}", e.name,
                            packed.size(), e.bytes));
  return out;
}

}  // namespace

std::vector<ZipEntry> read_zip(Bytes file) {
  const Directory directory = find_directory(file);
  std::vector<ZipEntry> entries;
  std::vector<std::uint64_t> locals;
  std::uint64_t at = directory.begin;
  const std::uint64_t end = directory.begin + directory.bytes;
  while (at < end) {
    std::uint64_t next = 0, local = 0;
    ZipEntry e = read_record(file, at, next, local);
    find_bytes(file, e, local);
    entries.push_back(std::move(e));
    locals.push_back(local);
    at = next;
  }
  if (at != end || entries.size() != directory.entries)
    throw Error(fmt::format("its directory has {} entries in its bytes, and says {}", entries.size(),
                            directory.entries));
  check_apart(entries, locals, directory.begin);
  return entries;
}

void unpack(Bytes file, const ZipEntry& entry, const std::function<void(Bytes)>& read) {
  const Bytes packed = part(file, entry.begin, entry.packed_bytes, entry.name);
  if (entry.method == ZipMethod::stored) {
    check_sum(crc_of(packed), entry);
    return read(packed);
  }
  const std::string whole = inflated(packed, entry);
  check_sum(crc_of(bytes_of(whole)), entry);
  read(bytes_of(whole));
}

}  // namespace tilewright::formats
