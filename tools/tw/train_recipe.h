// Recipes of `tw train`: a model with the numbers that its training is known to work with.
#pragma once

#include <tilewright/nn/gpt2.h>
#include <tilewright/nn/optimizer.h>
#include <tilewright/nn/schedule.h>

#include <string>

namespace tilewright::tw {

struct TrainRecipe {
  std::string name;
  nn::GPT2Config model;  // but for the vocabulary, which is the text's
  Index rows = 0;        // of a batch
  double dropout = 0;
  nn::ScheduleOptions schedule;
  nn::AdamWOptions optimizer;
  double most_norm = 1;      // of a gradient
  Index report_every = 250;  // steps
  Index validation_batches = 0;
};

// The character model of a page of text (6 layers, 384 wide, 256 bytes of context), or its small form for two
// cores (4 layers, 128 wide, 64 bytes). Throws Error for a name that no recipe has.
TrainRecipe train_recipe(const std::string& name, bool small);

}  // namespace tilewright::tw
