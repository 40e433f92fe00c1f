// Encodes a file and writes the tokens as 32-bit numbers; tokenizers and tiktoken do the same and compare.
//   build/encode_text TOKENIZER [--pattern P] [--special TEXT=NUMBER]... [--as-tokens] [--time] TEXT TOKENS
#include <tilewright/nn/tokenizer.h>

#include <fmt/format.h>

#include <ctime>
#include <fstream>
#include <iterator>

namespace {

namespace nn = tilewright::nn;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

int run(const std::vector<std::string>& arguments) {
  std::vector<std::string> files;
  nn::TokenizerOptions options;
  nn::SpecialTokens special = nn::SpecialTokens::as_text;
  bool timed = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--pattern") {
      options.pattern = arguments.at(++i);
    } else if (arguments[i] == "--special") {
      const std::string& one = arguments.at(++i);
      const std::size_t sign = one.rfind('=');
      options.special.push_back({one.substr(0, sign), std::stoi(one.substr(sign + 1))});
    } else if (arguments[i] == "--as-tokens") {
      special = nn::SpecialTokens::as_tokens;
    } else if (arguments[i] == "--time") {
      timed = true;
    } else {
      files.push_back(arguments[i]);
    }
  }
  const double begin = cpu_seconds();
  const nn::Tokenizer tokenizer = nn::load_tokenizer(files.at(0), options);
  const double loaded = cpu_seconds();
  const std::string text = read(files.at(1));
  const double before = cpu_seconds();
  const std::vector<std::int32_t> tokens = tokenizer.encode(text, special);
  const double spent = cpu_seconds() - before;
  if (timed)
    fmt::print("loaded in {:.3f} s; {} bytes to {} tokens in {:.3f} s of a core: {:.1f} MB/s\n",
               loaded - begin, text.size(), tokens.size(), spent,
               static_cast<double>(text.size()) / 1e6 / spent);
  std::ofstream out(files.at(2), std::ios::binary);
  out.write(reinterpret_cast<const char*>(tokens.data()),
            static_cast<std::streamsize>(tokens.size() * sizeof(std::int32_t)));
  // Broken UTF-8 comes back repaired; all else as it was.
  std::ofstream back(files.at(2) + ".text", std::ios::binary);
  back << tokenizer.decode(tokens);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    fmt::print(stderr, "encode_text: {}\n", e.what());
    return 1;
  }
}
