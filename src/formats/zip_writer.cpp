// Writing by libzip: it asks the members for their bytes one after the other, and a function takes what it
// writes. What either throws must not pass through C: it is kept, and thrown behind it. See zip.h.
#include "formats/zip.h"

#include <zip.h>

#include <algorithm>
#include <exception>

namespace tilewright::formats {

namespace {

using Write = std::function<void(std::uint64_t offset, Bytes bytes)>;

// One side of libzip's callbacks: `error` is what libzip is told, `thrown` what really happened.
struct Side {
  zip_error_t error{};
  std::exception_ptr* thrown = nullptr;

  zip_int64_t fail(int code) {
    ::zip_error_set(&error, code, 0);
    return -1;
  }
  template <class Body>
  zip_int64_t tried(int code, Body body) {
    try {
      return body();
    } catch (...) {
      *thrown = std::current_exception();
      return fail(code);
    }
  }
};

// What libzip reads for an entry.
struct MemberSide : Side {
  const ZipMember* member = nullptr;
  KeptBytes tail;
  Bytes parts[2];  // what is left of head and tail

  zip_int64_t open() {
    return tried(ZIP_ER_OPEN, [&] {
      tail = member->tail();
      parts[0] = bytes_of(member->head);
      parts[1] = tail.bytes;
      return 0;
    });
  }
  zip_int64_t read(std::byte* to, std::uint64_t room) {
    std::uint64_t done = 0;
    for (Bytes& part : parts) {
      const std::size_t some = std::min<std::uint64_t>(part.size(), room - done);
      std::copy_n(part.begin(), some, to + done);
      part = part.subspan(some);
      done += some;
    }
    return static_cast<zip_int64_t>(done);
  }
  zip_int64_t close() {
    tail = {};
    return 0;
  }
  zip_int64_t stat(zip_stat_t& to) const {
    ::zip_stat_init(&to);
    to.size = member->head.size() + member->tail_bytes;  // whether it takes ZIP64 is known before it is read
    to.valid = ZIP_STAT_SIZE;
    return sizeof to;
  }

  static zip_int64_t call(void* self, void* data, zip_uint64_t size, zip_source_cmd_t command) {
    MemberSide& side = *static_cast<MemberSide*>(self);
    switch (command) {
      case ZIP_SOURCE_OPEN:
        return side.open();
      case ZIP_SOURCE_READ:
        return side.read(static_cast<std::byte*>(data), size);
      case ZIP_SOURCE_CLOSE:
        return side.close();
      case ZIP_SOURCE_STAT:
        return side.stat(*static_cast<zip_stat_t*>(data));
      case ZIP_SOURCE_ERROR:
        return ::zip_error_to_data(&side.error, data, size);
      case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_READABLE;
      case ZIP_SOURCE_FREE:
        return 0;
      default:
        return side.fail(ZIP_ER_OPNOTSUPP);
    }
  }
};

// What libzip writes the archive to, which was empty before.
struct ArchiveSide : Side {
  const Write* write = nullptr;
  std::uint64_t at = 0, end = 0;

  zip_int64_t put(const void* data, zip_uint64_t size) {
    return tried(ZIP_ER_WRITE, [&] {
      (*write)(at, {static_cast<const std::byte*>(data), static_cast<std::size_t>(size)});
      at += size;
      end = std::max(end, at);
      return static_cast<zip_int64_t>(size);
    });
  }
  zip_int64_t seek(void* data, zip_uint64_t size) {
    const zip_int64_t to = ::zip_source_seek_compute_offset(at, end, data, size, &error);
    if (to < 0) return -1;
    at = static_cast<std::uint64_t>(to);
    return 0;
  }

  static zip_int64_t call(void* self, void* data, zip_uint64_t size, zip_source_cmd_t command) {
    ArchiveSide& side = *static_cast<ArchiveSide*>(self);
    switch (command) {
      case ZIP_SOURCE_WRITE:
        return side.put(data, size);
      case ZIP_SOURCE_SEEK_WRITE:
        return side.seek(data, size);
      case ZIP_SOURCE_TELL_WRITE:
        return static_cast<zip_int64_t>(side.at);
      case ZIP_SOURCE_STAT:
        ::zip_stat_init(static_cast<zip_stat_t*>(data));
        return sizeof(zip_stat_t);
      case ZIP_SOURCE_ERROR:
        return ::zip_error_to_data(&side.error, data, size);
      case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_WRITABLE;
      case ZIP_SOURCE_OPEN:
      case ZIP_SOURCE_CLOSE:
      case ZIP_SOURCE_BEGIN_WRITE:
      case ZIP_SOURCE_COMMIT_WRITE:
      case ZIP_SOURCE_ROLLBACK_WRITE:
      case ZIP_SOURCE_FREE:
        return 0;
      default:
        return side.fail(ZIP_ER_OPNOTSUPP);
    }
  }
};

struct Discard {
  void operator()(zip_t* archive) const { ::zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, Discard>;

Archive open_archive(ArchiveSide& side) {
  zip_source_t* const source = ::zip_source_function_create(&ArchiveSide::call, &side, nullptr);
  Archive archive(source ? ::zip_open_from_source(source, ZIP_CREATE | ZIP_TRUNCATE, nullptr) : nullptr);
  if (archive) return archive;  // the source is the archive's
  ::zip_source_free(source);
  throw Error("libzip could not be started");
}

void add(zip_t* archive, MemberSide& side) {
  constexpr zip_uint32_t kUsualLevel = 6;            // zlib's, where libzip takes the slowest
  constexpr zip_uint16_t kMidnight = 0, kDate = 33;  // 1980-01-01: the same tensors give the same file
  const ZipMember& m = *side.member;
  const auto must = [&](bool done) {
    if (!done) throw Error(fmt::format("entry \"{}\" cannot be added: {}", m.name, ::zip_strerror(archive)));
  };
  zip_source_t* const source = ::zip_source_function(archive, &MemberSide::call, &side);
  must(source != nullptr);
  const zip_int64_t added = ::zip_file_add(archive, m.name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (added < 0) ::zip_source_free(source);  // else it is the archive's
  if (added < 0 && ::zip_error_code_zip(::zip_get_error(archive)) == ZIP_ER_INVAL)
    throw Error(fmt::format(
        "entry \"{}\" cannot be called so: a name in a ZIP archive is UTF-8 without control characters",
        m.name));
  must(added >= 0);
  const auto index = static_cast<zip_uint64_t>(added);
  must(::zip_set_file_compression(archive, index, static_cast<zip_int32_t>(m.method), kUsualLevel) == 0);
  must(::zip_file_set_dostime(archive, index, kMidnight, kDate, 0) == 0);
}

// libzip writes no archive without entries: its last record alone.
void write_empty(const Write& write) {
  constexpr char kEnd[22] = {'P', 'K', 5, 6};
  write(0, bytes_of({kEnd, sizeof kEnd}));
}

}  // namespace

void write_zip(const std::vector<ZipMember>& members, const Write& write) {
  if (members.empty()) return write_empty(write);
  std::exception_ptr thrown;
  ArchiveSide side{{.thrown = &thrown}, &write};
  std::vector<MemberSide> sides(members.size());
  Archive archive = open_archive(side);
  for (std::size_t i = 0; i < members.size(); ++i) {
    sides[i].thrown = &thrown;
    sides[i].member = &members[i];
    add(archive.get(), sides[i]);
  }
  zip_t* const closed = archive.release();
  if (::zip_close(closed) == 0) return;
  archive.reset(closed);  // it could not be, and is still there
  if (thrown) std::rethrow_exception(thrown);
  throw Error(fmt::format("the archive could not be made: {}", ::zip_strerror(archive.get())));
}

}  // namespace tilewright::formats
