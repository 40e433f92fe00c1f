// Every claim of a header is held against the file before anything is read by it; see safetensors_header.h.
#include "formats/safetensors_header.h"

#include "formats/host_array.h"
#include "formats/in_file.h"
#include "formats/json.h"

#include <algorithm>
#include <limits>

namespace tilewright::formats {

namespace {

using nlohmann::json;

constexpr std::string_view kMetadata = "__metadata__";
constexpr std::uint64_t kMostHeader = 100'000'000;  // of the format's own readers
constexpr std::size_t kAlignment = 256;             // of what follows: as all buffers (tile::kBufferAlign)

struct TypeRow {
  std::string_view name;
  int bits;
  std::optional<DType> dtype;
};
constexpr TypeRow kTypes[] = {
    {"F64", 64, DType::f64},
    {"F32", 32, DType::f32},
    {"F16", 16, DType::f16},
    {"BF16", 16, DType::bf16},
    {"F8_E4M3", 8, DType::f8e4m3},
    {"F8_E5M2", 8, DType::f8e5m2},
    {"I64", 64, DType::i64},
    {"I32", 32, DType::i32},
    {"I8", 8, DType::i8},
    {"U8", 8, DType::u8},
    {"BOOL", 8, DType::boolean},
    {"U64", 64, std::nullopt},
    {"U32", 32, std::nullopt},
    {"U16", 16, std::nullopt},
    {"I16", 16, std::nullopt},
    {"C64", 64, std::nullopt},
    {"F8_E8M0", 8, std::nullopt},
    {"F8_E4M3FNUZ", 8, std::nullopt},
    {"F8_E5M2FNUZ", 8, std::nullopt},
    {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},
    {"F4", 4, std::nullopt},
};

const TypeRow& type_called(const std::string& name) {
  for (const TypeRow& row : kTypes)
    if (row.name == name) return row;
  throw Error(fmt::format("the format has no type \"{}\"", name));
}

std::string_view type_name(DType dtype) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == dtype) return row.name;
  TW_CHECK(false, "a dtype has no row");
}

const json& member(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) throw Error(fmt::format("it has no \"{}\"", key));
  return *found;
}

// Numbers of a list, none negative.
std::vector<std::uint64_t> numbers(const json& list, std::string_view what) {
  std::vector<std::uint64_t> out;
  if (!list.is_array()) throw Error(fmt::format("its {} is no list", what));
  for (const json& n : list) {
    if (!n.is_number_unsigned())
      throw Error(fmt::format("its {} has an element that is no whole number from 0 on", what));
    out.push_back(n.get<std::uint64_t>());
  }
  return out;
}

// Elements of a type, whose size in bits may be no whole byte.
std::uint64_t bytes_of_type(const TypeRow& type, const Shape& shape) {
  if (type.dtype) return size_of(shape, *type.dtype);
  const std::uint64_t elements = size_of(shape, DType::u8), bits = static_cast<std::uint64_t>(type.bits);
  if (elements * bits % 8 != 0)
    throw Error(fmt::format("its {} elements of {} bits fill no whole bytes", elements, bits));
  return elements * bits / 8;
}

SafetensorsEntry entry_of(const std::string& name, const json& value, std::uint64_t data_bytes) {
  if (!value.is_object()) throw Error("its description is no object");
  const json& type_text = member(value, "dtype");
  if (!type_text.is_string()) throw Error("its dtype is no string");
  const TypeRow& type = type_called(type_text.get<std::string>());
  std::vector<Index> extents;
  for (const std::uint64_t n : numbers(member(value, "shape"), "shape")) {
    if (n > static_cast<std::uint64_t>(std::numeric_limits<Index>::max()))
      throw Error(fmt::format("its shape has an extent of {}", n));
    extents.push_back(static_cast<Index>(n));
  }
  SafetensorsEntry entry{.info = {name, std::string(type.name), Shape(std::move(extents))},
                         .dtype = type.dtype};
  const std::vector<std::uint64_t> offsets = numbers(member(value, "data_offsets"), "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    throw Error("its data_offsets are not a beginning and an end behind it");
  if (offsets[1] > data_bytes)
    throw Error(fmt::format(
        "it ends at byte {} of the elements, which are {} bytes: the file is cut short, or its header lies",
        offsets[1], data_bytes));
  entry.begin = offsets[0];
  entry.bytes = offsets[1] - offsets[0];
  if (const std::uint64_t wanted = bytes_of_type(type, entry.info.shape); wanted != entry.bytes)
    throw Error(fmt::format("{} {} takes {} bytes, its data_offsets are {} apart", type.name,
                            to_string(entry.info.shape), wanted, entry.bytes));
  return entry;
}

Metadata metadata_of(const json& value) {
  Metadata out;
  if (!value.is_object()) throw Error("its __metadata__ is no object");
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) throw Error(fmt::format("its __metadata__ has \"{}\", which is no string", key));
    out.emplace_back(key, text.get<std::string>());
  }
  return out;
}

// All bytes belong to one tensor each.
void check_covered(const std::vector<SafetensorsEntry>& entries, std::uint64_t data_bytes) {
  std::uint64_t end = 0;
  const std::string* before = nullptr;
  for (const SafetensorsEntry& e : entries) {
    if (e.begin < end) throw Error(fmt::format("tensors \"{}\" and \"{}\" overlap", *before, e.info.name));
    if (e.begin > end)
      throw Error(
          fmt::format("{} bytes in front of tensor \"{}\" belong to none", e.begin - end, e.info.name));
    end = e.begin + e.bytes;
    before = &e.info.name;
  }
  if (end != data_bytes)
    throw Error(fmt::format("{} bytes behind the last tensor belong to none", data_bytes - end));
}

}  // namespace

SafetensorsHeader parse_safetensors(Bytes file) {
  constexpr std::size_t kLengthBytes = 8;
  const auto length = number<std::uint64_t>(file, 0, "its header's length");
  if (length > kMostHeader)
    throw Error(fmt::format("it is no safetensors file: its header would have {} bytes, and {} is the most",
                            length, kMostHeader));
  const std::string_view header = text(part(file, kLengthBytes, length, "its header"));
  if (!header.starts_with('{')) throw Error("it is no safetensors file: its header does not begin with '{'");
  const std::uint64_t data = kLengthBytes + length, data_bytes = file.size() - data;
  const json root = parse_json(header, "its header");
  SafetensorsHeader out;
  for (const auto& [name, value] : root.items()) {
    if (name == kMetadata) {
      out.metadata = metadata_of(value);
      continue;
    }
    of_tensor(name, [&, &name = name, &value = value] {
      out.entries.push_back(entry_of(name, value, data_bytes));
    });
  }
  // Tensors of no bytes stand in front of the one that begins there.
  std::sort(out.entries.begin(), out.entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.begin, a.bytes, a.info.name) < std::tie(b.begin, b.bytes, b.info.name);
  });
  check_covered(out.entries, data_bytes);
  for (SafetensorsEntry& e : out.entries) e.begin += data;
  return out;
}

std::string safetensors_header(const std::vector<Described>& tensors, const Metadata& metadata) {
  std::string text = "{";
  const auto add = [&](std::string_view key, const std::string& value) {
    text += fmt::format("{}{}:{}", text.size() > 1 ? "," : "", key, value);
  };
  if (!metadata.empty()) {
    std::string members;
    for (const auto& [key, value] : metadata)
      members += fmt::format("{}{}:{}", members.empty() ? "" : ",", json_string(key), json_string(value));
    add("\"__metadata__\"", "{" + members + "}");
  }
  std::uint64_t at = 0;
  for (const Described& t : tensors) {
    if (t.name == kMetadata) throw Error("a tensor cannot be called \"__metadata__\"");
    const std::uint64_t end = at + size_of(t.shape, t.dtype);
    add(json_string(t.name), fmt::format(R"({{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                                         type_name(t.dtype), to_string(t.shape), at, end));
    at = end;
  }
  text += "}";
  std::string length;
  const std::size_t whole = (sizeof(std::uint64_t) + text.size() + kAlignment - 1) / kAlignment * kAlignment;
  text.resize(whole - sizeof(std::uint64_t), ' ');
  if (text.size() > kMostHeader)
    throw Error(fmt::format("the header would have {} bytes, and {} is the most", text.size(), kMostHeader));
  append(length, std::uint64_t{text.size()});
  return length + text;
}

}  // namespace tilewright::formats
