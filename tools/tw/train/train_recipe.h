// Recipes of `tw train`: a model with the numbers that its training is known to work with.
#pragma once

#include <tilewright/nn/gpt2.h>
#include <tilewright/nn/optimizer.h>
#include <tilewright/nn/schedule.h>

#include <span>
#include <string>
#include <string_view>

namespace tilewright::tw {

struct TrainRecipe {
  enum class Reads : unsigned char { text, shards };
  std::string name;
  Reads reads = Reads::text;
  nn::GPT2Config model;  // its vocabulary: of a text that of its bytes, of shards the most that it may be
  Index rows = 0;        // of a batch
  Index parts = 1;       // that a batch is computed in, unless --accumulate says another number
  double dropout = 0;
  nn::ScheduleOptions schedule;
  nn::AdamWOptions optimizer;
  double most_norm = 1;          // of a gradient
  Index report_every = 250;      // steps
  Index validation_batches = 0;  // at most: all that is held back may be less
};

// "char", "gpt2".
std::span<const std::string_view> train_recipe_names();

// The recipe of this name, or its small form, for two cores:
//   char  the character model of a page of text (6 layers, 384 wide, 256 bytes of context); small: 4 layers,
//         128 wide, 64 bytes
//   gpt2  GPT-2 of 124 million parameters (Radford et al., 2019), with the batches and the schedule of the
//         model of that size of GPT-3 (Brown et al., arXiv 2005.14165, table 2.1); small: 4 layers, 128
//         wide, 128 tokens
// Throws Error for a name that no recipe has.
TrainRecipe train_recipe(const std::string& name, bool small);

}  // namespace tilewright::tw
