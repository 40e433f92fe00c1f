// Recipes of `tw train`.
#include "tw/train/train_recipe.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::tw {

namespace {

TrainRecipe char_recipe(bool small) {
  TrainRecipe recipe{
      .name = "char",
      .model = {.context = 256, .width = 384, .layers = 6, .heads = 6, .bias = false},
      .rows = 64,
      .dropout = 0.2,
      .schedule = {.rate = 1e-3, .last_rate = 1e-4, .warmup = 100, .steps = 5000},
      .optimizer = {.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1},
      .validation_batches = 100,
  };
  if (!small) return recipe;
  recipe.model = {.context = 64, .width = 128, .layers = 4, .heads = 4, .bias = false};
  recipe.rows = 12;
  recipe.dropout = 0;
  recipe.schedule.steps = 2000;
  return recipe;
}

TrainRecipe gpt2_recipe(bool small) {
  TrainRecipe recipe{
      .name = "gpt2",
      .reads = TrainRecipe::Reads::shards,
      .model = {},
      .rows = 512,  // half a million tokens
      .parts = 16,
      // 10 billion tokens; the warm-up takes 375 million of them.
      .schedule = {.rate = 6e-4, .last_rate = 6e-5, .warmup = 715, .steps = 19073},
      .optimizer = {.beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1},
      .validation_batches = 2,
  };
  if (!small) return recipe;
  recipe.model = {.context = 128, .width = 128, .layers = 4, .heads = 4};
  recipe.rows = 8;
  recipe.parts = 1;
  recipe.schedule = {.rate = 1e-3, .last_rate = 1e-4, .warmup = 100, .steps = 2000};
  recipe.validation_batches = 20;
  return recipe;
}

}  // namespace

std::span<const std::string_view> train_recipe_names() {
  static constexpr std::string_view kNames[] = {"char", "gpt2"};
  return kNames;
}

TrainRecipe train_recipe(const std::string& name, bool small) {
  const auto names = train_recipe_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw Error(
        fmt::format("there is no recipe '{}'; known: char, a model of the bytes of a text, and gpt2, of "
                    "token shards",
                    name));
  TrainRecipe recipe = name == "char" ? char_recipe(small) : gpt2_recipe(small);
  if (small) recipe.name += ", small";
  return recipe;
}

}  // namespace tilewright::tw
