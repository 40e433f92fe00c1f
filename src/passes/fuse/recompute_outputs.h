// Recomputation where kernels meet: a value that one kernel stores for others, and that arithmetic makes of
// less than it takes in memory, is computed again by its readers. So a norm's backward pass reads the input
// and its statistics, not the f32 values that the forward pass had at hand, and an activation's derivative
// reads what the activation was taken of.
#pragma once

#include "passes/fuse/fuse.h"
#include "passes/fuse/group_plans.h"

namespace tilewright::passes {

// Takes outputs from the fusion's groups where the kernels of a group and of all the readers of one of its
// outputs are predicted to be faster (GroupPlans::price) when the readers compute it. A reader whose matmul
// takes the value as an operand keeps it in memory. The groups stay in an order that respects every
// dependence.
void recompute_outputs(const ir::Graph& graph, GroupPlans& plans, GroupForms& forms, Fusion& fusion);

}  // namespace tilewright::passes
