// .npy files: header and elements.
#include "base/safe_file.h"
#include "formats/in_file.h"
#include "formats/mapped_file.h"
#include "formats/npy_array.h"
#include "formats/npy_header.h"

#include <tilewright/formats/npy.h>

#include <algorithm>

namespace tilewright {

namespace formats {

std::unique_ptr<const NpyArray> read_npy(Bytes file) {
  const NpyHeader header = parse_npy_header(file);
  const std::uint64_t size = size_of(header.shape, header.dtype);
  auto out = std::make_unique<NpyArray>();
  out->array = {.dtype = header.dtype,
                .shape = header.shape,
                .elements = part(file, header.bytes, size, "its elements"),
                .order = header.order};
  if (const std::uint64_t rest = file.size() - header.bytes - size; rest > 0)
    throw Error(fmt::format("{} bytes are left behind the elements of {} {}", rest, name(header.dtype),
                            to_string(header.shape)));
  const std::size_t element = size_bytes(header.dtype);
  if (header.endian == std::endian::big && element > 1) {
    out->swapped = text(out->array.elements);
    for (std::size_t at = 0; at < out->swapped.size(); at += element)
      std::reverse(out->swapped.data() + at, out->swapped.data() + at + element);
    out->array.elements = bytes_of(out->swapped);
  }
  return out;
}

}  // namespace formats

Tensor load_npy(Context& context, const std::string& path, const Location& where) {
  using namespace formats;
  return in_file("load_npy", path, where, [&] {
    const auto file = MappedFile::open(path);
    return copy_of(context, read_npy(file->bytes())->array, where);
  });
}

void save_npy(const std::string& path, const Tensor& tensor, const Location& where) {
  using namespace formats;
  in_file("save_npy", path, where, [&] {
    const std::string header = npy_header(tensor.dtype(where), tensor.shape(where));
    const KeptBytes elements = host_elements(tensor, where);
    SafeFile file = SafeFile::create(path).value();
    file.write(header).value();
    file.write(elements.bytes).value();
    file.finish().value();
    file.publish().value();
  });
}

}  // namespace tilewright
