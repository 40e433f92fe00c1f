// Temporaries share memory when their lifetimes do not meet: first fit, largest first.
#include "passes/plan/plan_memory.h"

#include <algorithm>

namespace tilewright::passes {

using tile::Plan;
using tile::PlanBuffer;
using tile::PlanStep;

namespace {

constexpr Index kAlign = 256;  // what Backend::allocate promises for whole buffers

struct Life {
  int buffer;
  int first = -1, last = -1;  // times
  Index bytes = 0;
  Index offset = 0;
};

void touch(std::vector<Life>& lives, int buffer, int time) {
  Life& l = lives[static_cast<std::size_t>(buffer)];
  if (l.first < 0) l.first = time;
  l.last = time;
}

}  // namespace

void plan_memory(Plan& plan) {
  plan.arena_bytes = 0;
  std::vector<Life> lives(plan.buffers.size());
  for (std::size_t b = 0; b < lives.size(); ++b) lives[b].buffer = static_cast<int>(b);
  int time = 0;  // steps that may run at once have one
  for (const PlanStep& step : plan.steps) {
    if (!step.beside_previous) ++time;
    for (const tile::ViewBinding& v : step.views) touch(lives, v.buffer, time);
    for (int b : {step.buffer, step.from})
      if (b >= 0) touch(lives, b, time);
  }
  std::vector<Life> placed, todo;
  for (Life l : lives) {
    const PlanBuffer& b = plan.buffers[static_cast<std::size_t>(l.buffer)];
    if (b.role != PlanBuffer::Role::temporary || l.first < 0) continue;
    l.bytes = round_up(std::max<Index>(b.elements * static_cast<Index>(size_bytes(b.dtype)), 1), kAlign);
    todo.push_back(l);
  }
  std::stable_sort(todo.begin(), todo.end(), [](const Life& a, const Life& b) { return a.bytes > b.bytes; });
  for (Life& l : todo) {
    std::vector<std::pair<Index, Index>> busy;  // [from, to) of what is alive at the same time
    for (const Life& p : placed)
      if (p.first <= l.last && l.first <= p.last) busy.push_back({p.offset, p.offset + p.bytes});
    std::sort(busy.begin(), busy.end());
    l.offset = 0;
    for (auto [from, to] : busy) {
      if (l.offset + l.bytes <= from) break;
      l.offset = std::max(l.offset, to);
    }
    placed.push_back(l);
    plan.buffers[static_cast<std::size_t>(l.buffer)].arena_offset = l.offset;
    plan.arena_bytes = std::max(plan.arena_bytes, l.offset + l.bytes);
  }
}

}  // namespace tilewright::passes
