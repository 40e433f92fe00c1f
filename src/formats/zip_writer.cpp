// Local headers, entries and the directory; sizes beyond 32 bits as ZIP64 has them. See zip.h.
#include "formats/zip.h"
#include "formats/zip_records.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

namespace tilewright::formats {

using namespace zip;

namespace {

constexpr std::uint16_t kVersion = 20, kVersion64 = 45;  // of the format, in tenths
constexpr std::uint16_t kDate = 33;                      // 1980-01-01: the same tensors give the same file

struct EndDeflate {
  void operator()(z_stream* s) const { ::deflateEnd(s); }
};

std::string deflated(const std::vector<Bytes>& parts) {
  z_stream stream{};
  constexpr int kRawDeflate = -15, kUsualMemory = 8;
  if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kRawDeflate, kUsualMemory,
                     Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error("zlib could not be started");
  const std::unique_ptr<z_stream, EndDeflate> end(&stream);
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::string out, piece(kPiece, '\0');
  const auto run = [&](Bytes in, int flush) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    stream.avail_in = static_cast<uInt>(in.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream.avail_out = static_cast<uInt>(kPiece);
      ::deflate(&stream, flush);
      out.append(piece.data(), kPiece - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  for (Bytes rest : parts)
    for (; !rest.empty(); rest = rest.subspan(std::min(kPiece, rest.size())))
      run(rest.first(std::min(kPiece, rest.size())), Z_NO_FLUSH);
  run({}, Z_FINISH);
  return out;
}

std::uint32_t narrow(std::uint64_t wide) {
  return wide < kElsewhere ? static_cast<std::uint32_t>(wide) : kElsewhere;
}

// What both headers of an entry say of it, up to the extra field's size.
void append_common(std::string& to, const ZipEntry& e, std::uint16_t version, std::size_t extra_bytes) {
  append(to, version);
  append(to, kUtf8);
  append(to, static_cast<std::uint16_t>(e.method));
  append(to, std::uint16_t{0});  // midnight
  append(to, kDate);
  append(to, e.checksum);
  append(to, narrow(e.packed_bytes));
  append(to, narrow(e.bytes));
  append(to, static_cast<std::uint16_t>(e.name.size()));
  append(to, static_cast<std::uint16_t>(extra_bytes));
}

std::string extra_of(const std::vector<std::uint64_t>& numbers) {
  std::string extra;
  if (numbers.empty()) return extra;
  append(extra, kExtra64);
  append(extra, static_cast<std::uint16_t>(8 * numbers.size()));
  for (const std::uint64_t n : numbers) append(extra, n);
  return extra;
}

}  // namespace

void ZipWriter::put(Bytes bytes) {
  write_(bytes);
  at_ += bytes.size();
}

void ZipWriter::add(const std::string& name, ZipMethod method, const std::vector<Bytes>& parts) {
  ZipEntry e{.name = name, .method = method, .begin = at_};
  uLong sum = 0;
  for (const Bytes p : parts) {
    if (p.empty()) continue;  // of no address zlib begins anew
    sum = ::crc32_z(sum, reinterpret_cast<const Bytef*>(p.data()), p.size());
    e.bytes += p.size();
  }
  e.checksum = static_cast<std::uint32_t>(sum);
  std::string packed;
  std::vector<Bytes> written = parts;
  if (method == ZipMethod::deflated) {
    packed = deflated(parts);
    written = {bytes_of(packed)};
  }
  e.packed_bytes = method == ZipMethod::deflated ? packed.size() : e.bytes;
  const bool is_64 = e.bytes >= kElsewhere || e.packed_bytes >= kElsewhere;
  const std::string extra = is_64 ? extra_of({e.bytes, e.packed_bytes}) : "";
  ZipEntry shown = e;
  if (is_64) shown.bytes = shown.packed_bytes = kElsewhere;  // a local header has both there, or none
  std::string header;
  append(header, kLocal);
  append_common(header, shown, is_64 ? kVersion64 : kVersion, extra.size());
  put(bytes_of(header + name + extra));
  for (const Bytes p : written) put(p);
  entries_.push_back(std::move(e));
}

void ZipWriter::finish() {
  const std::uint64_t begin = at_;
  for (const ZipEntry& e : entries_) {
    std::vector<std::uint64_t> wide;
    for (const std::uint64_t n : {e.bytes, e.packed_bytes, e.begin})
      if (n >= kElsewhere) wide.push_back(n);
    const std::string extra = extra_of(wide);
    std::string record;
    append(record, kCentral);
    append(record, kVersion64);  // made by, on no system in particular
    append_common(record, e, wide.empty() ? kVersion : kVersion64, extra.size());
    append(record, std::uint16_t{0});  // no comment, on the first disk, without attributes
    append(record, std::uint16_t{0});
    append(record, std::uint16_t{0});
    append(record, std::uint32_t{0});
    append(record, narrow(e.begin));
    put(bytes_of(record + e.name + extra));
  }
  const std::uint64_t bytes = at_ - begin, count = entries_.size();
  std::string end;
  if (count >= kElsewhere16 || bytes >= kElsewhere || begin >= kElsewhere) {
    append(end, kEnd64);
    append(end, static_cast<std::uint64_t>(kEnd64Bytes - 12));
    append(end, kVersion64);
    append(end, kVersion64);
    append(end, std::uint64_t{0});  // of disk 0, both
    for (const std::uint64_t n : {count, count, bytes, begin}) append(end, n);
    append(end, kLocator64);
    append(end, std::uint32_t{0});
    append(end, at_);
    append(end, std::uint32_t{1});
  }
  append(end, kEnd);
  append(end, std::uint32_t{0});
  const auto count16 = static_cast<std::uint16_t>(std::min<std::uint64_t>(count, kElsewhere16));
  append(end, count16);
  append(end, count16);
  append(end, narrow(bytes));
  append(end, narrow(begin));
  append(end, std::uint16_t{0});
  put(bytes_of(end));
}

}  // namespace tilewright::formats
