// A text as bytes, shards as windows in an order of their own.
#include "tw/train/train_data.h"

#include <tilewright/base/error.h>
#include <tilewright/base/hash.h>
#include <tilewright/nn/token_shards.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "tw/command/subject.h"
#include "tw/train/train_seeds.h"

namespace tilewright::tw {

namespace {

namespace fs = std::filesystem;

using Tokens = std::vector<std::int32_t>;

// --- a text

TrainData data_of_text(const std::string& path, const std::string& text, const TrainRecipe& recipe,
                       std::uint64_t seed) {
  const Index length = recipe.model.context;
  const std::size_t least = 10 * (static_cast<std::size_t>(length) + 1);
  if (text.size() < least)
    throw Error(
        fmt::format("--data {}: the text has {} bytes; recipe '{}' needs at least {}: ten times its context "
                    "of {}",
                    path, text.size(), recipe.name, least, length));
  TrainData data{.hash = to_hex(hash_bytes(text)),
                 .unit = "byte",
                 .name = "the text",
                 .bytes = nn::ByteVocabulary(text),
                 .beginning = text.substr(0, 1)};
  data.vocabulary = data.bytes->size();
  const Tokens tokens = data.bytes->encode(text);
  const auto cut = tokens.begin() + static_cast<std::ptrdiff_t>(tokens.size() * 9 / 10);
  const auto learnt = std::make_shared<const Tokens>(tokens.begin(), cut),
             held_back = std::make_shared<const Tokens>(cut, tokens.end());
  data.learnt = [=, own = seed_of(seed, Stream::batches)](Context& ctx, Index rows, std::uint64_t number) {
    return nn::random_batch(ctx, *learnt, rows, length, own, number);
  };
  data.held_back = [=, own = seed_of(seed, Stream::validation)](Context& ctx, Index rows,
                                                                std::uint64_t number) {
    return nn::shuffled_batch(ctx, *held_back, {.rows = rows, .length = length, .seed = own}, number);
  };
  data.held_back_windows = nn::window_count(*held_back, length);
  data.places = [=, batch = data.learnt](Context& ctx, Index rows, std::uint64_t number) {
    const Tokens drawn = batch(ctx, rows, number).tokens.to_vector<std::int32_t>();
    std::vector<Index> places;
    for (auto row = drawn.begin(); row != drawn.end(); row += length)
      places.push_back(std::search(learnt->begin(), learnt->end(), row, row + length) - learnt->begin());
    return places;
  };
  return data;
}

// --- shards

// How a folder of shards is made, for errors.
std::string how_to_make(const std::string& from) {
  return fmt::format("`tw tokenize {} --tokenizer FILE --out FOLDER` makes one", from);
}

nn::TokenShards shards_of(const std::string& path, const char* part, const TrainRecipe& recipe) {
  const std::string folder = (fs::path(path) / part).string();
  if (!fs::is_directory(folder))
    throw Error(
        fmt::format("--data {}: it has no folder {}/; recipe '{}' learns from a folder with train/ and "
                    "validation/ in it, and {}, with documents held out unless --validation is 0",
                    path, part, recipe.name, how_to_make("TEXT")));
  nn::TokenShards shards(folder);
  const Index length = recipe.model.context;
  if (nn::window_count(shards, length) < 1)
    throw Error(
        fmt::format("--data {}: {} has {} tokens, and a row of recipe '{}' is {} with the one that follows "
                    "each: tokenize more text, or more of it for {} (tw tokenize --validation)",
                    path, folder, shards.size(), recipe.name, length + 1, part));
  return shards;
}

TrainData data_of_shards(const std::string& path, const TrainRecipe& recipe, std::uint64_t seed) {
  const nn::TokenShards learnt = shards_of(path, "train", recipe),
                        held_back = shards_of(path, "validation", recipe);
  if (learnt.vocabulary() != held_back.vocabulary())
    throw Error(
        fmt::format("--data {}: train/ has a vocabulary of {} tokens and validation/ one of {}: "
                    "both are to be of one tokenizer",
                    path, learnt.vocabulary(), held_back.vocabulary()));
  if (learnt.vocabulary() > recipe.model.vocabulary)
    throw Error(
        fmt::format("--data {}: the shards have a vocabulary of {} tokens, past the {} of recipe '{}': "
                    "tokenize the text with the tokenizer of GPT-2",
                    path, learnt.vocabulary(), recipe.model.vocabulary, recipe.name));
  const auto of = [&](const nn::TokenShards& shards, Stream stream) {
    return [=, length = recipe.model.context](Context& ctx, Index rows, std::uint64_t number) {
      return nn::shuffled_batch(ctx, shards, {.rows = rows, .length = length, .seed = seed_of(seed, stream)},
                                number);
    };
  };
  return {.hash = to_hex(Hasher().add(learnt.checksum()).add(held_back.checksum()).digest()),
          .vocabulary = learnt.vocabulary(),
          .unit = "token",
          .name = (fs::path(path) / "train").string(),
          .learnt = of(learnt, Stream::batches),
          .held_back = of(held_back, Stream::validation),
          .held_back_windows = nn::window_count(held_back, recipe.model.context),
          .places = [=, length = recipe.model.context](Context& /*ctx*/, Index rows, std::uint64_t number) {
            return nn::shuffled_places(
                learnt, {.rows = rows, .length = length, .seed = seed_of(seed, Stream::batches)}, number);
          }};
}

TrainData data_at(const std::string& path, const TrainRecipe& recipe, std::uint64_t seed) {
  const bool is_folder = fs::is_directory(path);
  if (recipe.reads == TrainRecipe::Reads::shards) {
    if (!is_folder && fs::exists(path))
      throw Error(fmt::format("--data {} is a file; recipe '{}' learns from a folder of token shards: {}",
                              path, recipe.name, how_to_make(path)));
    if (!is_folder) throw Error(fmt::format("--data {}: there is no such folder", path));
    return data_of_shards(path, recipe, seed);
  }
  if (is_folder)
    throw Error(
        fmt::format("--data {} is a folder; recipe '{}' learns the bytes of a text: --data FILE, or "
                    "`tw train gpt2` where the folder has token shards",
                    path, recipe.name));
  const std::string text = read_text(path);
  if (text.starts_with("TWTOKENS"))  // a shard's first bytes
    throw Error(
        fmt::format("--data {} is a token shard; recipe '{}' learns the bytes of a text: give it the "
                    "text, or the folder with the shards to `tw train gpt2`",
                    path, recipe.name));
  if (text.empty()) throw Error(fmt::format("--data {}: the file is empty", path));
  return data_of_text(path, text, recipe, seed);
}

}  // namespace

TrainData train_data(const std::string& path, const TrainRecipe& recipe, std::uint64_t seed) {
  TrainData data = data_at(path, recipe, seed);
  data.path = path;
  return data;
}

}  // namespace tilewright::tw
