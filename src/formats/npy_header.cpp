// The dict's text is what Python's literals allow, of which three keys are known; see npy_header.h.
#include "formats/npy_header.h"

#include <charconv>
#include <optional>
#include <vector>

namespace tilewright::formats {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionBytes = 2, kAlignment = 64;

struct DescrRow {
  std::string_view name;  // without the byte order
  DType dtype;
};
constexpr DescrRow kTypes[] = {{"f8", DType::f64}, {"f4", DType::f32},    {"f2", DType::f16},
                               {"i8", DType::i64}, {"i4", DType::i32},    {"i1", DType::i8},
                               {"u1", DType::u8},  {"b1", DType::boolean}};
constexpr std::string_view kBfloat16 = "<V2";  // a raw array of NumPy's own is "|V2"

// Why an array of this type is no tensor.
std::string refusal(std::string_view descr) {
  const char kind = descr.size() > 1 ? descr[1] : '?';
  const char* why = "a type that no tensor has";
  if (kind == 'O') why = "Python objects, which only Python reads";
  if (kind == 'U' || kind == 'S') why = "text";
  if (kind == 'M' || kind == 'm') why = "times";
  if (kind == 'c') why = "complex numbers, which no tensor has";
  if (kind == 'V')
    why =
        "raw bytes: 8-bit floats of ml_dtypes look so, whichever they are; save them as safetensors, or view "
        "them as "
        "uint8";
  if (kind == 'i' || kind == 'u' || kind == 'f')
    why = "numbers of a size that no tensor has: convert them first";
  return fmt::format("its elements are '{}', {}", descr, why);
}

// Walks the text of the dict.
class Dict {
 public:
  explicit Dict(std::string_view text) : text_(text) {}

  NpyHeader parse() {
    expect('{');
    while (!take('}')) {
      const std::string_view key = string();
      expect(':');
      value_of(key);
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (at_ != text_.size()) fail("its end");
    if (!descr_ || !order_ || !shape_)
      throw Error("its header lacks one of 'descr', 'fortran_order' and 'shape'");
    NpyHeader header{.order = *order_, .shape = std::move(*shape_)};
    take_type(*descr_, header);
    return header;
  }

 private:
  [[noreturn]] void fail(std::string_view wanted) const {
    throw Error(fmt::format("its header is no dict of NumPy's: at byte {} of the text there should be {}",
                            at_, wanted));
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("'{}'", c));
  }
  bool take_word(std::string_view word) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  std::string_view string() {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') fail("a string");
    const std::size_t begin = at_ + 1, end = text_.find(quote, begin);
    if (end == std::string_view::npos) fail("a string that ends");
    const std::string_view inside = text_.substr(begin, end - begin);
    // No key and no type that is known here has any of these.
    for (const char c : inside)
      if (c == '\\' || c < ' ' || c > '~') fail("a string of plain characters");
    at_ = end + 1;
    return inside;
  }
  Index integer() {
    skip_spaces();
    Index value = 0;
    const char* begin = text_.data() + at_;
    const auto [rest, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) throw Error("its shape has an extent beyond 64 bits");
    if (error != std::errc()) fail("an integer");
    at_ += static_cast<std::size_t>(rest - begin);
    (void)take_word("L");  // as Python 2 wrote it
    return value;
  }
  Shape tuple() {
    expect('(');
    std::vector<Index> extents;
    while (!take(')')) {
      extents.push_back(integer());
      if (take(',')) continue;
      if (extents.size() == 1) fail("',': a tuple of one has one");
      expect(')');
      break;
    }
    return Shape(std::move(extents));
  }
  template <class T>
  static void once(std::optional<T>& slot, T value, std::string_view key) {
    if (slot) throw Error(fmt::format("its header has '{}' twice", key));
    slot = std::move(value);
  }
  void value_of(std::string_view key) {
    if (key == "descr") {
      skip_spaces();
      if (at_ < text_.size() && text_[at_] == '[')
        throw Error(
            "its elements are records of several fields, which no tensor has: save each field by itself");
      once(descr_, string(), key);
    } else if (key == "fortran_order") {
      const bool is_true = take_word("True");
      if (!is_true && !take_word("False")) fail("True or False");
      once(order_, is_true ? Order::column_major : Order::row_major, key);
    } else if (key == "shape") {
      once(shape_, tuple(), key);
    } else {
      throw Error(fmt::format("its header has an unknown key, '{}'", key));
    }
  }
  static void take_type(std::string_view descr, NpyHeader& header) {
    if (descr == kBfloat16) {
      header.dtype = DType::bf16;
      return;
    }
    const char order = descr.empty() ? ' ' : descr[0];
    if (order == '<' || order == '>' || order == '|' || order == '=') {
      header.endian = order == '>' ? std::endian::big : std::endian::little;
      for (const DescrRow& row : kTypes)
        if (row.name == descr.substr(1)) {
          header.dtype = row.dtype;
          return;
        }
    }
    throw Error(refusal(descr));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::optional<std::string_view> descr_;
  std::optional<Order> order_;
  std::optional<Shape> shape_;
};

}  // namespace

NpyHeader parse_npy_header(Bytes file) {
  if (!text(file).starts_with(kMagic))
    throw Error("it is no .npy file: it does not begin with \"\\x93NUMPY\"");
  const auto major = number<std::uint8_t>(file, kMagic.size(), "its version");
  if (major < 1 || major > 3) throw Error(fmt::format("its version is {}; 1 to 3 are known", major));
  const std::size_t at = kMagic.size() + kVersionBytes;
  const std::size_t length_bytes = major == 1 ? sizeof(std::uint16_t) : sizeof(std::uint32_t);
  const std::uint64_t length = major == 1 ? number<std::uint16_t>(file, at, "its header's length")
                                          : number<std::uint32_t>(file, at, "its header's length");
  NpyHeader header = Dict(text(part(file, at + length_bytes, length, "its header"))).parse();
  header.bytes = at + length_bytes + static_cast<std::size_t>(length);
  return header;
}

std::string npy_header(DType dtype, const Shape& shape) {
  std::string descr;
  if (dtype == DType::bf16) descr = kBfloat16;
  for (const DescrRow& row : kTypes)
    if (row.dtype == dtype) descr = fmt::format("{}{}", size_bytes(dtype) == 1 ? '|' : '<', row.name);
  if (descr.empty())
    throw Error(
        fmt::format("the format has no name for {}: save it as safetensors, or cast it first", name(dtype)));
  std::string extents;
  for (const Index extent : shape) extents += fmt::format("{}{}", extents.empty() ? "" : ", ", extent);
  if (shape.rank() == 1) extents += ",";
  std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, extents);
  const std::size_t before = kMagic.size() + kVersionBytes + sizeof(std::uint16_t);
  const std::size_t whole = (before + dict.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  dict.resize(whole - before - 1, ' ');
  dict += '\n';
  std::string header(kMagic);
  header += '\1';
  header += '\0';
  append(header, static_cast<std::uint16_t>(dict.size()));
  return header + dict;
}

}  // namespace tilewright::formats
