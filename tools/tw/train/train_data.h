// What a training learns from: the bytes of a text, or token shards; batches of it by their number.
#pragma once

#include <tilewright/nn/batches.h>
#include <tilewright/nn/text_data.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tw/train/train_recipe.h"

namespace tilewright::tw {

// All functions may be called by several threads at once. A batch of r rows begins where r times its number
// rows have gone before, so that the parts of a batch have its rows.
struct TrainData {
  std::string hash;  // other data has another
  Index vocabulary = 0;
  std::string unit;       // "byte", "token"
  std::string name;       // "the text", "tokens/train"
  std::string path = {};  // as --data said it
  std::function<nn::Batch(Context& ctx, Index rows, std::uint64_t number)> learnt, held_back;
  Index held_back_windows = 0;  // that held_back has each once before it repeats one
  // The places at which the rows of a learnt batch begin, which nn::Batch does not say.
  std::function<std::vector<Index>(Context& ctx, Index rows, std::uint64_t number)> places;
  // The names of tokens that are bytes, and how the text begins.
  std::optional<nn::ByteVocabulary> bytes = {};
  std::string beginning = {};
};

// The data of `--data path` for a recipe: the bytes of a file, whose last tenth validates, or the shards in
// path/train and path/validation. Throws Error where it is not what the recipe learns from, where it is
// shorter than a row, and where it has tokens that the recipe's model has not.
TrainData train_data(const std::string& path, const TrainRecipe& recipe, std::uint64_t seed);

}  // namespace tilewright::tw
