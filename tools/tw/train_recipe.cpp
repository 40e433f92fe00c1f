// Recipes of `tw train`.
#include "tw/train_recipe.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

namespace tilewright::tw {

TrainRecipe train_recipe(const std::string& name, bool small) {
  if (name != "char")
    throw Error(fmt::format("there is no recipe '{}'; known: char, a model of the bytes of a text", name));
  TrainRecipe recipe{
      .name = small ? "char, small" : "char",
      .model = {.context = 256, .width = 384, .layers = 6, .heads = 6, .bias = false},
      .rows = 64,
      .dropout = 0.2,
      .schedule = {.rate = 1e-3, .last_rate = 1e-4, .warmup = 100, .steps = 5000},
      .optimizer = {.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1},
      .validation_batches = 100,
  };
  if (small) {
    recipe.model = {.context = 64, .width = 128, .layers = 4, .heads = 4, .bias = false};
    recipe.rows = 12;
    recipe.dropout = 0;
    recipe.schedule.steps = 2000;
  }
  return recipe;
}

}  // namespace tilewright::tw
