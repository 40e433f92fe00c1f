// Reading by libzip, and what is asked of the sizes before memory is taken for them; see zip.h.
#include "formats/zip.h"

#include <zip.h>

namespace tilewright::formats {

namespace {

std::string text_of(zip_error_t& error) {
  std::string text = ::zip_error_strerror(&error);
  ::zip_error_fini(&error);
  return text;
}

ZipEntry entry_of(zip* archive, zip_uint64_t index) {
  zip_stat_t stat;
  if (::zip_stat_index(archive, index, ZIP_FL_ENC_RAW, &stat) != 0)
    throw Error(fmt::format("entry {} cannot be read: {}", index, ::zip_strerror(archive)));
  const std::string name = stat.name;
  if (stat.encryption_method != ZIP_EM_NONE) throw Error(fmt::format("entry \"{}\" is encrypted", name));
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE)
    throw Error(fmt::format("entry \"{}\" is packed by method {}; stored (0) and deflated (8) are known",
                            name, stat.comp_method));
  return {name, static_cast<ZipMethod>(stat.comp_method), stat.comp_size, stat.size};
}

void check_sizes(const ZipEntry& e) {
  if (e.method == ZipMethod::stored && e.packed_bytes != e.bytes)
    throw Error(fmt::format("entry \"{}\" is stored, and its sizes differ: {} and {}", e.name, e.packed_bytes,
                            e.bytes));
  // No deflated byte stands for more than 1032 (zlib's maximum): a size beyond that is a lie that costs
  // memory.
  constexpr std::uint64_t kMostRatio = 1032;
  if (e.bytes / kMostRatio > e.packed_bytes)
    throw Error(
        fmt::format("entry \"{}\" cannot be {} bytes, packed into {}", e.name, e.bytes, e.packed_bytes));
}

struct CloseEntry {
  void operator()(zip_file_t* file) const { ::zip_fclose(file); }
};

}  // namespace

void ZipReader::Discard::operator()(zip* archive) const { ::zip_discard(archive); }

ZipReader::ZipReader(Bytes file) {
  if (file.empty())
    throw Error("it is no ZIP archive, or is cut short: it is empty");  // libzip would take it
  zip_error_t error;
  ::zip_error_init(&error);
  zip_source_t* source = ::zip_source_buffer_create(file.data(), file.size(), 0, &error);
  if (source) archive_.reset(::zip_open_from_source(source, ZIP_RDONLY, &error));
  if (!archive_) {
    ::zip_source_free(source);
    throw Error(fmt::format("it is no ZIP archive, or is cut short: {}", text_of(error)));
  }
  // The entries by the central directory alone: local headers are read when they are unpacked.
  const auto count = static_cast<zip_uint64_t>(::zip_get_num_entries(archive_.get(), 0));
  std::uint64_t room = file.size();
  for (zip_uint64_t i = 0; i < count; ++i) {
    entries_.push_back(entry_of(archive_.get(), i));
    const ZipEntry& e = entries_.back();
    check_sizes(e);
    if (e.packed_bytes > room)
      throw Error(
          fmt::format("entry \"{}\" is cut short or overlaps others: it would be {} bytes, and there "
                      "are {}, {} of them in entries before it",
                      e.name, e.packed_bytes, file.size(), file.size() - room));
    room -= e.packed_bytes;
  }
}

std::vector<std::byte> ZipReader::unpack(std::size_t entry) const {
  const ZipEntry& e = entries_.at(entry);
  const std::unique_ptr<zip_file_t, CloseEntry> file(::zip_fopen_index(archive_.get(), entry, 0));
  if (!file) throw Error(fmt::format("entry \"{}\" is damaged: {}", e.name, ::zip_strerror(archive_.get())));
  std::vector<std::byte> out(static_cast<std::size_t>(e.bytes));
  std::size_t at = 0;
  zip_int64_t read = 1;
  while (at < out.size() && read > 0) {
    read = ::zip_fread(file.get(), out.data() + at, out.size() - at);
    if (read > 0) at += static_cast<std::size_t>(read);
  }
  // At the end libzip compares the checksum.
  std::byte more;
  if (read >= 0 && at == out.size()) read = ::zip_fread(file.get(), &more, 1);
  if (read < 0) {
    zip_error_t* error = ::zip_file_get_error(file.get());
    if (::zip_error_code_zip(error) == ZIP_ER_CRC)
      throw Error(fmt::format("entry \"{}\" is damaged: its CRC-32 is another", e.name));
    throw Error(fmt::format("entry \"{}\" is damaged: {}", e.name, ::zip_error_strerror(error)));
  }
  if (at != out.size() || read != 0)
    throw Error(fmt::format("entry \"{}\" is damaged: its {} packed bytes do not give {}", e.name,
                            e.packed_bytes, e.bytes));
  return out;
}

}  // namespace tilewright::formats
