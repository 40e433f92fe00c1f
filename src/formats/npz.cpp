// .npz files: an .npy for each tensor.
#include "formats/in_file.h"
#include "formats/mapped_file.h"
#include "formats/named_check.h"
#include "formats/npy_array.h"
#include "formats/npy_header.h"
#include "formats/npz_entries.h"
#include "formats/safe_file.h"

#include <tilewright/formats/npz.h>

namespace tilewright {

namespace formats {

namespace {
constexpr std::string_view kSuffix = ".npy";
}

std::vector<NpzEntry> npz_entries(Bytes file) {
  std::vector<NpzEntry> out;
  NamedTensors names;
  for (ZipEntry& e : read_zip(file)) {
    if (!e.name.ends_with(kSuffix)) throw Error(fmt::format("entry \"{}\" is no .npy file", e.name));
    const std::string name = e.name.substr(0, e.name.size() - kSuffix.size());
    names.push_back({name, {}});
    out.push_back({name, std::move(e)});
  }
  check_names(names);
  return out;
}

}  // namespace formats

NamedTensors load_npz(Context& context, const std::string& path, const Location& where) {
  using namespace formats;
  return in_file("load_npz", path, where, [&] {
    const auto file = MappedFile::open(path);
    NamedTensors out;
    for (const NpzEntry& entry : npz_entries(file->bytes()))
      of_tensor(entry.name, [&] {
        unpack(file->bytes(), entry.packed, [&](Bytes npy) {
          out.push_back({entry.name, copy_of(context, read_npy(npy)->array, where)});
        });
      });
    return out;
  });
}

void save_npz(const std::string& path, const NamedTensors& tensors, const NpzOptions& options,
              const Location& where) {
  using namespace formats;
  in_file("save_npz", path, where, [&] {
    check_names(tensors);
    SafeFile file(path);
    ZipWriter zip([&](Bytes bytes) { file.write(bytes); });
    constexpr std::size_t kMostName = 65000;  // a ZIP's names have 16 bits for their length
    for (const NamedTensor& t : tensors)
      of_tensor(t.name, [&] {
        if (t.name.empty() || t.name.size() > kMostName)
          throw Error(fmt::format("a name has 1 to {} bytes", kMostName));
        const std::string header = npy_header(t.tensor.dtype(where), t.tensor.shape(where));
        const HostElements elements(t.tensor, where);
        zip.add(t.name + std::string(kSuffix), options.compress ? ZipMethod::deflated : ZipMethod::stored,
                {bytes_of(header), elements.bytes()});
      });
    zip.finish();
    file.sync();
    file.publish();
  });
}

}  // namespace tilewright
