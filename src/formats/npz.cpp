// .npz files: an .npy for each tensor.
#include "base/safe_file.h"
#include "formats/in_file.h"
#include "formats/mapped_file.h"
#include "formats/named_check.h"
#include "formats/npy_array.h"
#include "formats/npy_header.h"
#include "formats/npz_names.h"

#include <tilewright/formats/npz.h>

namespace tilewright {

namespace formats {

namespace {
constexpr std::string_view kSuffix = ".npy";
}

std::vector<std::string> npz_names(const ZipReader& archive) {
  std::vector<std::string> out;
  for (const ZipEntry& e : archive.entries()) {
    if (!e.name.ends_with(kSuffix)) throw Error(fmt::format("entry \"{}\" is no .npy file", e.name));
    out.push_back(e.name.substr(0, e.name.size() - kSuffix.size()));
  }
  check_names(std::vector<std::string_view>(out.begin(), out.end()));
  return out;
}

namespace {

void check_name(const std::string& name) {
  constexpr std::size_t kMost = 65000;  // a ZIP's names have 16 bits for their length
  if (name.empty() || name.size() > kMost || name.find('\0') != std::string::npos)
    throw Error(fmt::format("a name has 1 to {} bytes, none of them 0", kMost));
}

ZipMember member_of(const NamedTensor& t, const NpzOptions& options, const Location& where) {
  const DType dtype = t.tensor.dtype(where);
  const Shape shape = t.tensor.shape(where);
  return {.name = t.name + std::string(kSuffix),
          .method = options.compress ? ZipMethod::deflated : ZipMethod::stored,
          .head = npy_header(dtype, shape),
          .tail_bytes = size_of(shape, dtype),
          .tail = [&t, where] { return of_tensor(t.name, [&] { return host_elements(t.tensor, where); }); }};
}

}  // namespace

}  // namespace formats

NamedTensors load_npz(Context& context, const std::string& path, const Location& where) {
  using namespace formats;
  return in_file("load_npz", path, where, [&] {
    const auto file = MappedFile::open(path);
    const ZipReader archive(file->bytes());
    const std::vector<std::string> names = npz_names(archive);
    NamedTensors out;
    for (std::size_t i = 0; i < names.size(); ++i)
      of_tensor(names[i], [&] {
        const std::vector<std::byte> npy = archive.unpack(i);
        out.push_back({names[i], copy_of(context, read_npy(npy)->array, where)});
      });
    return out;
  });
}

void save_npz(const std::string& path, const NamedTensors& tensors, const NpzOptions& options,
              const Location& where) {
  using namespace formats;
  in_file("save_npz", path, where, [&] {
    check_names(tensors);
    for (const NamedTensor& t : tensors) check_name(t.name);
    std::vector<ZipMember> members;
    members.reserve(tensors.size());
    for (const NamedTensor& t : tensors)
      of_tensor(t.name, [&] { members.push_back(member_of(t, options, where)); });
    SafeFile file = SafeFile::create(path).value();
    write_zip(members, [&](std::uint64_t offset, Bytes bytes) { file.write_at(offset, bytes).value(); });
    file.finish().value();
    file.publish().value();
  });
}

}  // namespace tilewright
