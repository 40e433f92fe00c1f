// tw tokenize: text as token shards, a part of its documents held out for validation.
#include <tilewright/base/error.h>
#include <tilewright/base/thread_pool.h>
#include <tilewright/nn/permutation.h>
#include <tilewright/nn/token_shards.h>
#include <tilewright/nn/tokenizer.h>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>

#include "base/interrupt.h"
#include "base/plain_message.h"
#include "tw/command/commands.h"
#include "tw/command/number_checks.h"
#include "tw/command/output.h"
#include "tw/train/tokenize_input.h"

namespace tilewright::tw {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Files of fewer tokens would be more, for a text of some size, than a folder is good for.
constexpr Index kLeastShard = 1000;

struct TokenizeInput {
  std::vector<std::string> inputs;
  std::string tokenizer, pattern, end_of_text, out, field = "text";
  Index shard_tokens = nn::TokenShardOptions{}.shard_tokens;
  double validation = 0.005;
  std::uint64_t seed = 0;
  int threads = 0;
  OutputOptions output;
};

// One side of the division: its shards are begun with its first document.
struct Part {
  std::string name;
  nn::TokenShardOptions options;
  std::optional<nn::TokenShardWriter> writer = {};
  std::uint64_t documents = 0;

  void add(const std::vector<std::int32_t>& tokens) {
    if (!writer) writer.emplace(options);
    writer->add(tokens);
    ++documents;
  }
  Index tokens() const { return writer ? writer->tokens() : 0; }
};

// A folder that takes its name in the end, and is gone without that.
class NewFolder {
 public:
  explicit NewFolder(const std::string& path) : path_(path) {
    // A name that ends in a slash has no last part.
    if (path_.filename().empty()) path_ = path_.parent_path();
    std::error_code error;
    if (fs::exists(path_, error) && (!fs::is_directory(path_, error) || !fs::is_empty(path_, error)))
      throw Error(fmt::format("--out {}: it is there, and no empty folder", path));
    temporary_ = path_;
    temporary_ += fmt::format(".{}.tmp", ::getpid());
    if (!fs::create_directories(temporary_, error))
      throw Unavailable(fmt::format("--out {}: {} cannot be made: {}", path, temporary_.string(),
                                    error ? error.message() : "it is there"));
  }
  ~NewFolder() {
    std::error_code error;
    if (!temporary_.empty()) fs::remove_all(temporary_, error);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  std::string inside(const std::string& name) const { return (temporary_ / name).string(); }
  void publish() {
    fs::rename(temporary_, path_);
    temporary_.clear();
  }

 private:
  fs::path path_, temporary_;
};

struct LoadedTokenizer {
  nn::Tokenizer tokenizer;
  std::int32_t end_of_text;
};

// "TEXT" names a token that there is, "TEXT=NUMBER" one that the file has not.
LoadedTokenizer load(const TokenizeInput& in) {
  nn::TokenizerOptions options{.pattern = in.pattern};
  std::string text = in.end_of_text;
  const std::size_t sign = text.rfind('=');
  std::int32_t number = 0;
  if (sign != std::string::npos && sign > 0) {
    const auto [end, error] = std::from_chars(text.data() + sign + 1, text.data() + text.size(), number);
    if (error == std::errc{} && end == text.data() + text.size()) {
      text.resize(sign);
      options.special.push_back({text, number});
    }
  }
  nn::Tokenizer tokenizer = nn::load_tokenizer(in.tokenizer, options);
  if (!text.empty()) {
    if (const auto token = tokenizer.find(text)) return {tokenizer, *token};
    throw Error(
        fmt::format("--end-of-text {}: the tokenizer has no such token; --end-of-text '{}=NUMBER' adds "
                    "it, {} is the next number",
                    text, text, tokenizer.size()));
  }
  // GPT's, Llama 3's, Llama 2's and Gemma's.
  for (const char* usual : {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"})
    if (const auto token = tokenizer.find(usual)) return {tokenizer, *token};
  throw Error(
      fmt::format("{} has no end-of-text token of a usual name: --end-of-text TEXT says which it is, "
                  "and --end-of-text '<|endoftext|>={}' adds one",
                  in.tokenizer, tokenizer.size()));
}

std::string progress_text(std::uint64_t done, std::uint64_t all, double seconds) {
  const auto mega = [](std::uint64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  std::string text = fmt::format("{:.0f} of {:.0f} MB", mega(done), mega(all));
  if (done == 0) return text;
  const double rate = mega(done) / std::max(seconds, 1e-3);
  return text + fmt::format(", {:.1f} MB/s, {}", rate, time_left_text(mega(all - done) / rate));
}

// The number of `all` that validate: the part that was asked for, at least one unless that is 0. Throws Error
// if none would be left.
Index held_out_of(Index all, double part, const char* what) {
  Index count = std::llround(part * static_cast<double>(all));
  if (part > 0) count = std::max<Index>(count, 1);
  if (count >= all)
    throw Error(
        fmt::format("--validation {}: {} of {} {} would validate, and none be left to learn; "
                    "--validation 0 holds none out",
                    part, count, all, what));
  return count;
}

// The documents that validate, chosen by a permutation, so that they are as many as was asked for. A single
// document is divided.
class HeldOut {
 public:
  HeldOut(std::uint64_t documents, double part, std::uint64_t seed)
      : order_(static_cast<Index>(documents), seed, 0),
        count_(documents > 1 ? held_out_of(static_cast<Index>(documents), part, "documents") : 0),
        divided_(documents == 1 ? part : 0) {}
  bool operator()(std::uint64_t document) const { return order_(static_cast<Index>(document)) < count_; }
  // How many of the last tokens of a single document validate.
  Index last_of(std::size_t tokens) const {
    return divided_ > 0 ? held_out_of(static_cast<Index>(tokens), divided_, "tokens") : 0;
  }

 private:
  nn::Permutation order_;
  Index count_;
  double divided_;
};

struct Done {
  std::uint64_t bytes = 0;
  double seconds = 0;
  bool interrupted = false;
};

// Documents are encoded side by side and written in their order.
Done encode_all(DocumentReader& reader, const LoadedTokenizer& loaded, const TokenizeInput& in,
                const HeldOut& held_out, Part& train, Part& validation) {
  constexpr std::size_t kBytesAtOnce = 1 << 20;  // a thread: below a tenth of a second between two looks
  ProgressLine progress("tw tokenize", in.output.progress());
  ThreadPool pool(in.threads, {.pin = false});
  const auto threads = static_cast<std::size_t>(pool.size());
  const auto begin = std::chrono::steady_clock::now();
  Done done;
  std::uint64_t number = 0;
  while (!InterruptGuard::interrupted()) {
    done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (progress.is_due()) progress.step(progress_text(done.bytes, reader.bytes(), done.seconds));
    const std::vector<Document> documents = reader.next(4096, kBytesAtOnce * threads);
    if (documents.empty()) return done;
    std::vector<std::vector<std::int32_t>> tokens(documents.size());
    pool.parallel_for(
        static_cast<Index>(documents.size()),
        [&](Index first, Index last, int) {
          for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) try {
              tokens[i] = loaded.tokenizer.encode(document_text(documents[i], in.field));
            } catch (const Error& e) {
              const std::string said = without_place(e);
              throw Error(said.starts_with(documents[i].path)
                              ? said
                              : fmt::format("{}: {}", documents[i].path, said));
            }
        },
        1);
    for (std::size_t i = 0; i < documents.size(); ++i) {
      if (const Index last = held_out.last_of(tokens[i].size()); last > 0) {
        validation.add({tokens[i].end() - last, tokens[i].end()});
        tokens[i].resize(tokens[i].size() - static_cast<std::size_t>(last));
      }
      (held_out(number++) ? validation : train).add(tokens[i]);
      done.bytes += documents[i].bytes.size();
    }
  }
  done.interrupted = true;
  return done;
}

Json to_json(const Part& part) { return {{"tokens", part.tokens()}, {"documents", part.documents}}; }

void tokenize(const TokenizeInput& in) {
  check_output(in.output);
  const LoadedTokenizer loaded = load(in);
  DocumentReader reader(in.inputs);
  const std::uint64_t documents = reader.count();
  if (documents == 0) throw Error("the files have no documents");
  const HeldOut held_out(documents, in.validation, in.seed);
  const InterruptGuard guard;  // until the folder has its name
  NewFolder folder(in.out);
  const auto part = [&](const char* name) {
    return Part{.name = name,
                .options = {.folder = folder.inside(name),
                            .vocabulary = loaded.tokenizer.size(),
                            .end_of_text = loaded.end_of_text,
                            .shard_tokens = in.shard_tokens}};
  };
  Part train = part("train"), validation = part("validation");
  const Done done = encode_all(reader, loaded, in, held_out, train, validation);
  if (done.interrupted) {
    if (!in.output.quiet) fmt::print(stderr, "tw tokenize: interrupted; nothing was stored\n");
    throw CLI::RuntimeError(130);
  }
  for (Part* each : {&train, &validation})
    if (each->writer) each->writer->finish();
  folder.publish();
  const Index tokens = train.tokens() + validation.tokens();
  if (in.output.as_json()) {
    const Json json = {{"out", in.out},
                       {"bytes", done.bytes},
                       {"tokens", tokens},
                       {"vocabulary", loaded.tokenizer.size()},
                       {"end_of_text", loaded.end_of_text},
                       {"train", to_json(train)},
                       {"validation", to_json(validation)},
                       {"seconds", done.seconds}};
    write_results(in.output, json.dump(2) + "\n");
    return;
  }
  std::string text;
  for (const Part* each : {&train, &validation})
    if (each->documents > 0)
      text += fmt::format("{:10}  {:12} tokens of {} document{}\n", each->name, each->tokens(),
                          each->documents, each->documents == 1 ? "" : "s");
  text += fmt::format("vocabulary {}, end of text {}; {:.2f} bytes a token, {:.1f} MB/s\n",
                      loaded.tokenizer.size(), loaded.end_of_text,
                      static_cast<double>(done.bytes) / static_cast<double>(tokens),
                      static_cast<double>(done.bytes) / 1e6 / std::max(done.seconds, 1e-3));
  write_results(in.output, text);
}

}  // namespace

void add_tokenize(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("tokenize", "Write text as token shards, to train from");
  auto in = std::make_shared<TokenizeInput>();
  sub->add_option("input", in->inputs,
                  "Files of text (.txt, each a document), of a JSON object a line (.jsonl), folders of both")
      ->required()
      ->type_name("INPUT");
  sub->add_option("--tokenizer", in->tokenizer, "A tokenizer.json, or a tiktoken file")
      ->required()
      ->type_name("FILE");
  sub->add_option("--out", in->out, "The folder to make: train/ and validation/ with shards")
      ->required()
      ->type_name("FOLDER");
  sub->add_option("--pattern", in->pattern,
                  "How text is cut, for a tiktoken file: gpt2, cl100k, o200k or a regular expression")
      ->type_name("PATTERN");
  sub->add_option(
         "--end-of-text", in->end_of_text,
         "The token behind each document: its text; TEXT=NUMBER adds one (default: by its usual name)")
      ->type_name("TOKEN");
  sub->add_option("--field", in->field, "The text's field in the objects of .jsonl files")->type_name("NAME");
  sub->add_option("--validation", in->validation,
                  "The part of the documents that is held out, of a single one its end; 0: none")
      ->check(share());
  sub->add_option("--seed", in->seed, "Seed that decides which documents are held out");
  sub->add_option("--shard-tokens", in->shard_tokens,
                  fmt::format("Tokens of a file, {} at least; each is brought to the disk by itself, which "
                              "takes milliseconds",
                              kLeastShard))
      ->check(at_least(kLeastShard));
  sub->add_option("--threads", in->threads, "CPU threads (default: every allowed core)");
  add_output_options(*sub, in->output, "an object");
  sub->callback([in] { tokenize(*in); });
}

}  // namespace tilewright::tw
