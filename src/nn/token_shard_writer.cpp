// Token shards, written: the header is known last and stands first.
#include <tilewright/nn/token_shards.h>

#include "base/safe_file.h"
#include "nn/token_shard_header.h"

#include <fmt/format.h>

#include <filesystem>
#include <limits>

namespace tilewright::nn {

namespace {

constexpr Index kU16Vocabulary = 1 << 16;
constexpr std::size_t kWriteBytes = 1 << 20;  // at once

void must_work(const Status& status, const std::string& path) {
  if (!status) throw Error(fmt::format("{}: {}", path, status.error().message));
}

}  // namespace

struct TokenShardWriter::Impl {
  TokenShardOptions options;
  TokenShardHeader header;  // of the shard that is open
  std::optional<SafeFile> file;
  std::string path;     // of that shard
  Hasher sum;           // of what was written of it
  std::string waiting;  // to be written
  Index shards = 0, total = 0;

  void begin_shard() {
    path = fmt::format("{}/{:05}.tokens", options.folder, shards++);
    Result<SafeFile> made = SafeFile::create(path, {.make_folders = true});
    if (!made) throw Error(fmt::format("{}: {}", path, made.error().message));
    file.emplace(std::move(made).value());
    header.count = header.documents = 0;
    waiting.reserve(kWriteBytes + sizeof(std::uint32_t));
    sum = Hasher();
    must_work(file->write(std::string(kShardHeaderBytes, '\0')), path);
  }

  void write_waiting() {
    sum.add_raw(waiting.data(), waiting.size());
    must_work(file->write(waiting), path);
    waiting.clear();
  }

  void end_shard() {
    write_waiting();
    header.checksum = sum.digest();
    must_work(file->write_at(0, formats::bytes_of(to_bytes(header))), path);
    must_work(file->finish(), path);
    must_work(file->publish(), path);
    file.reset();
  }

  void put(std::uint32_t token) {
    if (!file) begin_shard();
    if (header.width == 2)
      formats::append(waiting, static_cast<std::uint16_t>(token));
    else
      formats::append(waiting, token);
    ++header.count;
    ++total;
    if (token == header.end_of_text) ++header.documents;
    if (waiting.size() >= kWriteBytes) write_waiting();
    if (static_cast<Index>(header.count) == options.shard_tokens) end_shard();
  }
};

TokenShardWriter::TokenShardWriter(const TokenShardOptions& options, const Location& where)
    : impl_(std::make_unique<Impl>()) {
  if (options.vocabulary < 1 || options.vocabulary > std::numeric_limits<std::int32_t>::max() ||
      options.shard_tokens < 1)
    throw Error(fmt::format("TokenShardWriter: a vocabulary of {}, {} tokens a shard: both must be positive",
                            options.vocabulary, options.shard_tokens),
                where);
  if (options.end_of_text && (*options.end_of_text < 0 || *options.end_of_text >= options.vocabulary))
    throw Error(fmt::format("TokenShardWriter: the end-of-text token {} is not in the vocabulary of {}",
                            *options.end_of_text, options.vocabulary),
                where);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options.folder, error))
    if (entry.path().extension() == ".tokens")
      throw Error(fmt::format("TokenShardWriter: {} has shards already, {} among them; give a new folder",
                              options.folder, entry.path().filename().string()),
                  where);
  impl_->options = options;
  impl_->header.width = options.vocabulary <= kU16Vocabulary ? 2 : 4;
  impl_->header.vocabulary = static_cast<std::uint32_t>(options.vocabulary);
  if (options.end_of_text) impl_->header.end_of_text = static_cast<std::uint32_t>(*options.end_of_text);
}

TokenShardWriter::~TokenShardWriter() = default;
TokenShardWriter::TokenShardWriter(TokenShardWriter&& from) noexcept = default;

void TokenShardWriter::add(const std::vector<std::int32_t>& document, const Location& where) {
  const Index vocabulary = impl_->options.vocabulary;
  for (std::size_t i = 0; i < document.size(); ++i)
    if (document[i] < 0 || document[i] >= vocabulary)
      throw Error(fmt::format("add: token {} of the document is {}, and the vocabulary has {}", i,
                              document[i], vocabulary),
                  where);
  try {
    for (const std::int32_t token : document) impl_->put(static_cast<std::uint32_t>(token));
    if (impl_->header.end_of_text) impl_->put(*impl_->header.end_of_text);
  } catch (const Error& e) {
    throw Error(fmt::format("add: {}", e.what()), where);
  }
}

void TokenShardWriter::finish(const Location& where) {
  if (impl_->total == 0)
    throw Error(fmt::format("finish: nothing was added, and {} would have no shards", impl_->options.folder),
                where);
  try {
    if (impl_->file) impl_->end_shard();
  } catch (const Error& e) {
    throw Error(fmt::format("finish: {}", e.what()), where);
  }
}

Index TokenShardWriter::tokens() const { return impl_->total; }

}  // namespace tilewright::nn
