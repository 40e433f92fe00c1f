// A training step of GPT-2 (A. Radford et al., Language Models are Unsupervised Multitask Learners, 2019) as
// one graph: loss, gradient, and the update of every parameter by AdamW (I. Loshchilov, F. Hutter, Decoupled
// Weight Decay Regularization, 2019).
#pragma once

#include "ir/graph.h"

namespace tilewright::test {

struct TrainingStep {
  int layers = 2;
  Index batch = 4, time = 1024, channels = 768, heads = 12, vocabulary = 50304;
  // Operand type of the matmuls; parameters and their moments are f32.
  DType compute = DType::f32;
  bool checkpointed = false;  // each layer is a call of checkpoint()
};

// Outputs: the loss, then each parameter, first and second moment after the step.
ir::Graph graph_of(const TrainingStep& step);

}  // namespace tilewright::test
