// Batches: places in the tokens, and the rows from there.
#include <tilewright/base/philox.h>
#include <tilewright/nn/batches.h>
#include <tilewright/nn/permutation.h>

#include <fmt/format.h>

#include <optional>

namespace tilewright::nn {

namespace {

std::vector<Index> random_places(Index tokens, Index rows, Index length, std::uint64_t seed,
                                 std::uint64_t number, const Location& where) {
  if (rows < 1 || length < 1 || tokens <= length)
    throw Error(fmt::format("random_batch: {} tokens give no {} rows of {} with the token that follows each",
                            tokens, rows, length),
                where);
  const auto choices = static_cast<std::uint64_t>(tokens - length);
  std::vector<Index> places;
  for (Index row = 0; row < rows; ++row) {
    const auto words =
        philox4x32(seed, number * static_cast<std::uint64_t>(rows) + static_cast<std::uint64_t>(row));
    const std::uint64_t drawn = std::uint64_t{words[0]} << 32 | words[1];
    places.push_back(static_cast<Index>(drawn % choices));
  }
  return places;
}

// Rows of `length` numbers, one behind the other.
class Rows {
 public:
  Rows(Index rows, Index length) : shape_{rows, length} {
    all_.reserve(static_cast<std::size_t>(rows * length));
  }
  template <class Iterator>
  void add(Iterator first, Iterator last) {
    all_.insert(all_.end(), first, last);
  }
  void add(std::int32_t one) { all_.push_back(one); }
  Tensor tensor(Context& ctx, const Location& where) const {
    return ctx.from(all_, shape_, DType::i32, where);
  }

 private:
  Shape shape_;
  std::vector<std::int32_t> all_;
};

// `read(first, count)` gives tokens. Where `end_of_text` is given, documents and positions are counted.
template <class Read>
Batch batch_at(Context& ctx, const std::vector<Index>& places, Index length,
               std::optional<std::int32_t> end_of_text, Read read, const Location& where) {
  const auto count = static_cast<Index>(places.size());
  Rows tokens(count, length), targets(count, length), documents(count, length), positions(count, length);
  for (const Index place : places) {
    const std::vector<std::int32_t> row = read(place, length + 1);
    tokens.add(row.begin(), row.end() - 1);
    targets.add(row.begin() + 1, row.end());
    if (!end_of_text) continue;
    std::int32_t document = 0, position = 0;
    for (auto token = row.begin(); token != row.end() - 1; ++token) {
      documents.add(document);
      positions.add(position++);
      if (*token != *end_of_text) continue;
      ++document;
      position = 0;
    }
  }
  Batch batch{.tokens = tokens.tensor(ctx, where), .targets = targets.tensor(ctx, where)};
  if (end_of_text) {
    batch.documents = documents.tensor(ctx, where);
    batch.positions = positions.tensor(ctx, where);
  }
  return batch;
}

// Reads tokens in memory.
auto reader_of(const std::vector<std::int32_t>& tokens) {
  return [&tokens](Index first, Index count) {
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(first);
    return std::vector<std::int32_t>(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
}

Index windows_of(Index tokens, Index length) { return length < 1 || tokens < 1 ? 0 : (tokens - 1) / length; }

std::vector<Index> places_of(const char* op, Index tokens, const BatchOptions& options, std::uint64_t number,
                             const Location& where) {
  const Index windows = windows_of(tokens, options.length);
  if (options.rows < 1 || windows < 1)
    throw Error(fmt::format("{}: {} tokens give no {} rows of {} with the token that follows each", op,
                            tokens, options.rows, options.length),
                where);
  std::vector<Index> places;
  const auto all = static_cast<std::uint64_t>(windows), rows = static_cast<std::uint64_t>(options.rows);
  for (std::uint64_t row = number * rows; row < (number + 1) * rows; ++row) {
    const Permutation order(windows, options.seed, row / all, where);
    places.push_back(order(static_cast<Index>(row % all), where) * options.length);
  }
  return places;
}

Batch batch_of(const char* op, Context& ctx, const TokenShards& tokens, const BatchOptions& options,
               std::uint64_t number, std::optional<std::int32_t> end_of_text, const Location& where) {
  return batch_at(
      ctx, places_of(op, tokens.size(), options, number, where), options.length, end_of_text,
      [&](Index first, Index count) { return tokens.read(first, count, where); }, where);
}

}  // namespace

Batch random_batch(Context& ctx, const std::vector<std::int32_t>& tokens, Index rows, Index length,
                   std::uint64_t seed, std::uint64_t number, const Location& where) {
  return batch_at(ctx, random_places(std::ssize(tokens), rows, length, seed, number, where), length,
                  std::nullopt, reader_of(tokens), where);
}

Batch random_batch(Context& ctx, const TokenShards& tokens, Index rows, Index length, std::uint64_t seed,
                   std::uint64_t number, const Location& where) {
  return batch_at(
      ctx, random_places(tokens.size(), rows, length, seed, number, where), length, std::nullopt,
      [&](Index first, Index count) { return tokens.read(first, count, where); }, where);
}

Index window_count(const TokenShards& tokens, Index length) { return windows_of(tokens.size(), length); }

Index window_count(const std::vector<std::int32_t>& tokens, Index length) {
  return windows_of(std::ssize(tokens), length);
}

std::vector<Index> shuffled_places(const TokenShards& tokens, const BatchOptions& options,
                                   std::uint64_t number, const Location& where) {
  return places_of("shuffled_places", tokens.size(), options, number, where);
}

Batch shuffled_batch(Context& ctx, const TokenShards& tokens, const BatchOptions& options,
                     std::uint64_t number, const Location& where) {
  return batch_of("shuffled_batch", ctx, tokens, options, number, std::nullopt, where);
}

Batch shuffled_batch(Context& ctx, const std::vector<std::int32_t>& tokens, const BatchOptions& options,
                     std::uint64_t number, const Location& where) {
  return batch_at(ctx, places_of("shuffled_batch", std::ssize(tokens), options, number, where),
                  options.length, std::nullopt, reader_of(tokens), where);
}

Batch packed_batch(Context& ctx, const TokenShards& tokens, const BatchOptions& options, std::uint64_t number,
                   const Location& where) {
  if (!tokens.end_of_text())
    throw Error("packed_batch: the shards say no end-of-text token, and nothing else tells documents apart",
                where);
  return batch_of("packed_batch", ctx, tokens, options, number, tokens.end_of_text(), where);
}

}  // namespace tilewright::nn
