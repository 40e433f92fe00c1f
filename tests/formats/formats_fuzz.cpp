// Damaged files: valid ones are mutated by seed, and read. Whatever the bytes, a reader gives arrays that lie
// inside the file, or an Error; built with sanitizers, it reads no byte beside them.
//   build/formats_fuzz --format npz --seed 17 --seconds 600
#include "formats/json.h"
#include "formats/npy_array.h"
#include "formats/npy_header.h"
#include "formats/npz_names.h"
#include "formats/safetensors_header.h"
#include "formats/safetensors_index.h"
#include "ir/text.h"

#include <tilewright/base/error.h>
#include <tilewright/formats/program.h>
#include <tilewright/nn/tokenizer.h>
#include <tilewright/perf/ceiling_file.h>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "nn/checkpoint_manifest.h"
#include "nn/token_shard_header.h"
#include "support/random_graph.h"
#include "training/small_tokenizer.h"

namespace {

using namespace tilewright;
using namespace tilewright::formats;

struct Counts {
  std::uint64_t read = 0, refused = 0;
};

// Every byte is looked at, which is what a sanitizer judges.
std::uint64_t touched = 0;
void touch(Bytes bytes) {
  for (const std::byte b : bytes) touched += static_cast<std::uint64_t>(b);
}

void must(bool holds, const char* what) {
  if (holds) return;
  fmt::print(stderr, "formats_fuzz: {}\n", what);
  std::abort();
}

void touch_array(const NpyArray& npy) {
  must(npy.array.elements.size() == size_of(npy.array.shape, npy.array.dtype), "an array of another size");
  touch(npy.array.elements);
}

struct Format {
  std::string name;
  std::vector<std::string> valid;
  void (*read)(Bytes);
};

std::string npy_file(DType dtype, const Shape& shape) {
  std::string file = npy_header(dtype, shape);
  for (std::uint64_t i = size_of(shape, dtype); i > 0; --i) file += static_cast<char>(i % 2);
  return file;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  text.replace(text.find(what), what.size(), by);
  return text;
}

std::vector<std::string> npy_files() {
  const std::string plain = npy_file(DType::f32, {3, 5});
  return {plain,
          replaced(plain, "<f4", ">f4"),
          replaced(plain, "False", "True "),
          npy_file(DType::bf16, {7}),
          npy_file(DType::boolean, {2, 1, 3}),
          npy_file(DType::i64, {}),
          npy_file(DType::f64, {0, 4})};
}

std::vector<std::string> npz_files() {
  std::vector<std::string> files;
  const std::vector<std::string> arrays = npy_files();
  for (const ZipMethod method : {ZipMethod::stored, ZipMethod::deflated}) {
    std::vector<ZipMember> members;
    members.reserve(arrays.size());
    for (std::size_t i = 0; i < arrays.size(); ++i)
      members.push_back({fmt::format("a{}.npy", i), method, arrays[i], 0, [] { return KeptBytes{}; }});
    std::string file;
    write_zip(members, [&](std::uint64_t offset, Bytes bytes) {
      file.resize(std::max<std::size_t>(file.size(), offset + bytes.size()));
      file.replace(offset, bytes.size(), text(bytes));
    });
    files.push_back(file);
  }
  return files;
}

std::vector<std::string> safetensors_files() {
  std::vector<std::string> files;
  const auto add = [&](const std::vector<Described>& tensors, const Metadata& metadata) {
    std::string file = safetensors_header(tensors, metadata);
    for (const Described& t : tensors) file.append(size_of(t.shape, t.dtype), '\1');
    files.push_back(file);
  };
  add({}, {});
  add({{"w", DType::f32, {2, 3}}}, {{"format", "pt"}});
  add({{"a", DType::i64, {3}},
       {"e", DType::f32, {0, 7}},
       {"b", DType::bf16, {2, 2}},
       {"c", DType::f8e4m3, {5}}},
      {});
  return files;
}

void read_npz(Bytes file) {
  const ZipReader archive(file);
  for (std::size_t i = npz_names(archive).size(); i-- > 0;) touch_array(*read_npy(archive.unpack(i)));
}

void read_safetensors(Bytes file) {
  for (const SafetensorsEntry& e : parse_safetensors(file).entries)
    touch(part(file, e.begin, e.bytes, "a tensor"));
}

test::SmallTokenizer small_tokenizer() {
  return {.merges = {{"a", "b"}, {"b", "c"}, {"ab", "c"}, {" ", "a"}},
          .model = R"(,"ignore_merges":true)",
          .pre_tokenizer = R"({"type":"Sequence","pretokenizers":[
            {"type":"Split","pattern":{"Regex":"\\s+(?!\\S)|[^\\r\\n\\p{L}]?\\p{L}{1,3}"},"behavior":"Isolated"},
            {"type":"ByteLevel","add_prefix_space":false,"use_regex":true}]})",
          .added = R"([{"id":300,"content":"<|end|>","special":true,"normalized":false}])"};
}

// What `read` gives of a file of these bytes, which is in memory alone.
template <class Read>
auto of_file(Bytes bytes, Read read) {
  struct File {
    int number = ::memfd_create("damaged", 0);
    ~File() { ::close(number); }
  } file;
  must(::write(file.number, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
       "no file in memory");
  return read(fmt::format("/proc/self/fd/{}", file.number));
}

// Encodes with what the file gives.
void read_tokenizer(Bytes bytes, const std::string& pattern) {
  const nn::Tokenizer tokenizer =
      of_file(bytes, [&](const std::string& path) { return nn::load_tokenizer(path, {.pattern = pattern}); });
  for (const std::int32_t token :
       tokenizer.encode("abc ab\xc3\xa9\xff  c<|end|> 12", nn::SpecialTokens::as_tokens))
    must(token >= 0 && token < tokenizer.size(), "a token past the vocabulary");
}

// Texts of random graphs, which have every op between them.
std::vector<std::string> program_files() {
  constexpr std::uint64_t kGraphs = 64;
  std::vector<std::string> files;
  files.reserve(kGraphs);
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed)
    files.push_back(ir::print(
        test::random_graph({.seed = seed, .ops = 6, .matmuls = true, .placed = true, .tame = false})));
  return files;
}

// What is read is written as a text that reads back as the same program.
void read_program(Bytes bytes) {
  const Program program = of_file(bytes, [](const std::string& path) { return load_program(path); });
  const std::string text = program.text();
  must(Program(text).text() == text, "a program whose text is another one's");
  must(!program.inputs().empty(), "a program of no inputs");
}

std::string ceilings_file() {
  return perf::to_json(
      {.name = "here",
       .title = "a machine",
       .measurements = {{"memory_bytes_per_s", 83e9, "copy"}, {"vector.f32", 534e9, "fma"}}});
}

// A checksum that holds, so that what the lines say is looked at.
void read_manifest(Bytes file) {
  constexpr std::string_view kSum = "checksum ";
  std::string all(text(file));
  if (const std::size_t sum = all.rfind(kSum); sum != std::string::npos) {
    const std::string lines = all.substr(0, sum);
    all = fmt::format("{}{}{}\n", lines, kSum, to_hex(hash_bytes(lines)));
  }
  (void)nn::parse_manifest(all).value();
}

// The header's checksum is made right, so that what it says is looked at.
void read_token_shard(Bytes file) {
  std::string bytes(text(file));
  if (bytes.size() >= nn::kShardHeaderBytes) {
    const std::uint64_t sum = hash_bytes(bytes.data(), 56).low;
    bytes.replace(56, 8, std::string(reinterpret_cast<const char*>(&sum), 8));
  }
  const nn::TokenShardHeader header = nn::parse_token_shard(bytes_of(bytes));
  must(header.count * header.width == bytes.size() - nn::kShardHeaderBytes, "tokens that are not there");
}

std::vector<std::string> token_shards() {
  return {nn::to_bytes({.width = 2, .count = 3, .vocabulary = 9, .end_of_text = 8}) + "abcdef",
          nn::to_bytes({.width = 4, .count = 1, .vocabulary = 90'000}) + "abcd"};
}

std::vector<Format> all_formats() {
  return {{"npy", npy_files(), [](Bytes file) { touch_array(*read_npy(file)); }},
          {"npz", npz_files(), read_npz},
          {"safetensors", safetensors_files(), read_safetensors},
          {"index",
           {safetensors_index({{"a", "m-00001-of-00002.safetensors"}, {"b", "m-00002-of-00002.safetensors"}},
                              12)},
           [](Bytes file) { (void)parse_safetensors_index(file); }},
          {"tokenizer_json", {small_tokenizer().json()}, [](Bytes file) { read_tokenizer(file, ""); }},
          {"tiktoken", {small_tokenizer().tiktoken()}, [](Bytes file) { read_tokenizer(file, "cl100k"); }},
          {"tokens", token_shards(), read_token_shard},
          {"program", program_files(), read_program},
          {"manifest", {nn::to_text({{250, true}, {500, false}, {123'456'789'012, false}})}, read_manifest},
          {"ceilings", {ceilings_file()}, [](Bytes file) {
             (void)perf::parse_ceilings(text(file), "a file").value();
           }}};
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

  void mutate(std::string& file, const std::string& other) {
    const std::size_t at = below(file.size() + 1), some = below(17);
    switch (below(9)) {
      case 0:  // a bit
        if (at < file.size()) file[at] = static_cast<char>(file[at] ^ (1 << below(8)));
        return;
      case 1:  // a byte
        if (at < file.size()) file[at] = static_cast<char>(random_());
        return;
      case 2:
        file.resize(at);
        return;
      case 3:
        file.insert(at, some, static_cast<char>(random_()));
        return;
      case 4:
        file.erase(at, some);
        return;
      case 5:  // a number that is at the edge of something
        return number(file, at);
      case 6:  // a piece from elsewhere
        file.insert(at, other.substr(below(other.size() + 1), below(65)));
        return;
      case 7:  // a piece twice, over what was there
        if (at < file.size()) file.replace(at, some, file.substr(below(file.size()), some));
        return;
      default:
        digits(file, at);
    }
  }

 private:
  void number(std::string& file, std::size_t at) {
    constexpr std::uint64_t kEdges[] = {
        0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff, ~std::uint64_t{0}};
    const std::uint64_t value = kEdges[below(std::size(kEdges))] - below(3);
    const std::size_t width = std::size_t{1} << below(4);
    if (at + width <= file.size())
      file.replace(at, width, std::string(reinterpret_cast<const char*>(&value), width));
  }
  // Changes a number in a text.
  void digits(std::string& file, std::size_t at) {
    const std::size_t digit = file.find_first_of("0123456789", at);
    if (digit == std::string::npos) return;
    constexpr const char* kNumbers[] = {"0",
                                        "-1",
                                        "3",
                                        "4294967296",
                                        "9223372036854775807",
                                        "18446744073709551615",
                                        "1e9",
                                        "99999999999999999999",
                                        "[",
                                        "\"x\""};
    file.replace(digit, 1, kNumbers[below(std::size(kNumbers))]);
  }
  std::mt19937_64 random_;
};

// Anything but an Error ends the program, and with it the test.
bool reads(const Format& format, const std::string& file) {
  const std::vector<char> exact(file.begin(), file.end());  // a sanitizer knows its end
  try {
    format.read(std::as_bytes(std::span(exact)));
    return true;
  } catch (const Error& e) {
    must(e.what()[0] != '\0', "an error without a word");
    return false;
  }
}

Counts fuzz(const Format& format, std::uint64_t seed, double seconds) {
  Counts counts;
  for (const std::string& file : format.valid) must(reads(format, file), "a valid file is refused");
  Mutator mutator(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    constexpr int kBetweenClocks = 64;
    for (int i = 0; i < kBetweenClocks; ++i) {
      std::string file = format.valid[mutator.below(format.valid.size())];
      const std::string& other = format.valid[mutator.below(format.valid.size())];
      for (std::size_t times = 1 + mutator.below(4); times > 0; --times) mutator.mutate(file, other);
      ++(reads(format, file) ? counts.read : counts.refused);
    }
  }
  return counts;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Mutates valid files and reads them.");
  std::string wanted = "all", shard = "0/1";
  std::uint64_t seed = 1;
  double seconds = 1;
  app.add_option("--format", wanted,
                 "npy, npz, safetensors, index, tokenizer_json, tiktoken, tokens, program, manifest, "
                 "ceilings, all");
  app.add_option("--seed", seed, "of the mutations");
  app.add_option("--shard", shard, "i/n: of n seeds, beginning with --seed, the i-th");
  app.add_option("--seconds", seconds, "for each format");
  CLI11_PARSE(app, argc, argv);
  seed += std::stoull(shard);
  bool known = false;
  for (const Format& format : all_formats()) {
    if (wanted != "all" && wanted != format.name) continue;
    known = true;
    const Counts counts = fuzz(format, seed, seconds);
    fmt::print("{}: seed {}, {} mutated files refused, {} read\n", format.name, seed, counts.refused,
               counts.read);
    must(counts.refused > 0 && counts.read > 0, "nothing was refused, or nothing read");
  }
  return known ? 0 : 1;
}
