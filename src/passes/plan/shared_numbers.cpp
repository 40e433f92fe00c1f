// Kernels compared without their numbers, and the one with parameters that takes their place.
#include "passes/plan/shared_numbers.h"

#include "passes/plan/kernel_pair.h"
#include "passes/plan/shared_text.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tilewright::passes {

using tile::Block;
using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

// The values of a kernel that decide where it reads and writes, and how often: all that these are computed
// from.
class PlaceValues {
 public:
  explicit PlaceValues(const Kernel& kernel) : kernel_(kernel), of_places_(kernel.values.size(), false) {
    mark_uses(kernel.body);
    // A value is marked before what it is computed from: ops are looked at from the last to the first, and
    // once more as long as a loop hands a mark on.
    while (std::exchange(again_, false)) hand_on(kernel.body);
  }
  bool contains(ValueId id) const { return of_places_[static_cast<std::size_t>(id)]; }

 private:
  void mark(ValueId id) {
    if (contains(id)) return;
    of_places_[static_cast<std::size_t>(id)] = true;
    again_ = true;
  }
  void mark_all(const std::vector<ValueId>& ids, std::size_t first = 0) {
    for (std::size_t i = first; i < ids.size(); ++i) mark(ids[i]);
  }

  bool compares_integers(const Op& op) const {
    return op.kind == OpKind::apply && tile::info(op.prim).to_bool &&
           !is_float(kernel_.type(op.operands[0]).dtype);
  }

  void mark_uses(const Block& block) {
    for (const Op& op : block.ops) {
      switch (op.kind) {
        case OpKind::load:
        case OpKind::gather:
          mark_all(op.operands);
          break;
        case OpKind::store:
        case OpKind::scatter:
        case OpKind::atomic_add:
        case OpKind::random:  // the counter is a place: numbers of one word lie side by side
          mark_all(op.operands, 1);
          break;
        case OpKind::loop:
          mark_all({op.operands[0], op.operands[1], op.operands[2]});
          break;
        case OpKind::branch:
          mark(op.operands[0]);
          break;
        default:
          if (compares_integers(op)) mark_all(op.operands);
      }
      for (const Block& inner : op.blocks) mark_uses(inner);
    }
  }

  void hand_on(const Block& block) {
    for (auto op = block.ops.rbegin(); op != block.ops.rend(); ++op) {
      if (op->kind == OpKind::random) continue;  // a comparison of random numbers says nothing of places
      bool marked = false;
      for (const ValueId result : op->results) marked = marked || contains(result);
      for (const Block& inner : op->blocks)
        for (const ValueId arg : inner.args) marked = marked || contains(arg);
      // What a loop or a branch hands out, or carries from round to round, is yielded inside.
      if (marked) mark_all(op->operands);
      for (const Block& inner : op->blocks) {
        if (marked && !inner.ops.empty()) mark_all(inner.ops.back().operands);
        hand_on(inner);
      }
    }
  }

  const Kernel& kernel_;
  std::vector<bool> of_places_;
  bool again_ = true;
};

bool may_be_argument(DType dtype) {
  return dtype == DType::i64 || dtype == DType::f32 || dtype == DType::f64;
}

// The constants that may become parameters are taken out of the ops; true: there are any.
bool take_out_numbers(const Kernel& kernel, const PlaceValues& places, Block& block) {
  bool any = false;
  for (Op& op : block.ops) {
    if (op.kind == OpKind::constant && !places.contains(op.results[0]) &&
        may_be_argument(kernel.type(op.results[0]).dtype)) {
      op.number = {};
      any = true;
    }
    for (Block& inner : op.blocks) any = take_out_numbers(kernel, places, inner) || any;
  }
  return any;
}

std::size_t hash_of_ops(const Kernel& kernel) {
  std::size_t hash = kernel.values.size();
  const auto mix = [&hash](std::size_t value) { hash = hash * 1099511628211U + value; };  // FNV's prime
  tile::for_each_op(kernel.body, [&](const Op& op) {
    mix(static_cast<std::size_t>(op.kind));
    mix(static_cast<std::size_t>(op.prim));
  });
  return hash;
}

// Kernels of a plan that are equal but for numbers.
struct Likes {
  Kernel without_numbers;
  std::vector<std::size_t> kernels;
};

std::vector<Likes> differing_in_numbers(const tile::Plan& plan, const std::vector<std::size_t>& kernels) {
  std::vector<Likes> all;
  for (const std::size_t k : kernels) {
    Kernel bare = plan.kernels[k];
    if (!take_out_numbers(plan.kernels[k], PlaceValues(plan.kernels[k]), bare.body)) continue;
    const auto found = std::find_if(all.begin(), all.end(), [&](const Likes& likes) {
      take_names(bare, likes.without_numbers);
      return bare == likes.without_numbers;
    });
    if (found == all.end())
      all.push_back({std::move(bare), {k}});
    else
      found->kernels.push_back(k);
  }
  return all;
}

std::optional<std::vector<std::int64_t>> arguments_if_any(const Kernel& general, const Kernel& kernel) {
  try {
    return arguments_of(general, kernel);
  } catch (const Differs&) {
    return std::nullopt;
  }
}

// One kernel for all of them, no two of which are equal.
void share(tile::Plan& plan, const std::vector<std::size_t>& kernels,
           std::vector<std::vector<std::int64_t>>& arguments) {
  std::vector<Kernel> own;
  own.reserve(kernels.size());
  for (const std::size_t k : kernels) own.push_back(plan.kernels[k]);
  for (Kernel& kernel : own) take_names(kernel, own[0]);
  if (own.size() < 2) return;
  const Kernel general = general_kernel(own[0], own[1]).kernel;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    // One that differs from the first in numbers in which the second does not keeps its own.
    std::optional<std::vector<std::int64_t>> found = arguments_if_any(general, own[i]);
    if (!found) continue;
    arguments[kernels[i]] = std::move(*found);
    plan.kernels[kernels[i]] = general;
  }
}

}  // namespace

void share_numbers(tile::Plan& plan) {
  // Equal kernels are one already, and a kernel that no other resembles keeps its numbers: neither is looked
  // into.
  std::unordered_map<std::size_t, std::vector<std::size_t>> alike;  // by their ops, the first of equal ones
  std::vector<std::size_t> first_equal(plan.kernels.size());
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    std::vector<std::size_t>& others = alike[hash_of_ops(plan.kernels[k])];
    const auto same = std::find_if(others.begin(), others.end(),
                                   [&](std::size_t other) { return plan.kernels[other] == plan.kernels[k]; });
    first_equal[k] = same == others.end() ? k : *same;
    if (same == others.end()) others.push_back(k);
  }
  std::vector<std::vector<std::int64_t>> arguments(plan.kernels.size());
  for (const auto& [hash, kernels] : alike)
    if (kernels.size() > 1)
      for (const Likes& likes : differing_in_numbers(plan, kernels)) share(plan, likes.kernels, arguments);
  for (std::size_t k = 0; k < plan.kernels.size(); ++k)
    if (const std::size_t first = first_equal[k]; first != k) {
      plan.kernels[k] = plan.kernels[first];
      arguments[k] = arguments[first];
    }
  for (tile::PlanStep& step : plan.steps) {
    if (step.kind != tile::PlanStep::Kind::launch) continue;
    const auto& own = arguments[static_cast<std::size_t>(step.kernel)];
    step.scalars.insert(step.scalars.end(), own.begin(), own.end());
  }
}

}  // namespace tilewright::passes
