// The rounds of back-to-back dots. Each product is handed to the tensor cores as soon as its operands are
// there, and waited for where a step touches it. Where rounds overlap (tile::Rounds::overlapped), the first
// products of a round and the last one of the round before are handed over together, and the steps between
// the first and the last run beside the last one.
#include "backends/cuda/analysis/b2b_plan.h"
#include "backends/cuda/machine/fitted.h"
#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/print/pipelines/wgmma_b2b.h"

#include <algorithm>
#include <functional>

namespace tilewright::cuda {

void WgmmaB2b::declare_parts(const Step& loop) {
  for (const B2bDot& d : b2b_->dots) {
    if (d.loop != loop.op || d.a >= 0) continue;
    const auto parts = parts_.find(loops_.storage(d.op->operands[0]));
    if (parts == parts_.end() || !declared_parts_.insert(parts->second.name).second) continue;
    const Registers& r = parts->second;
    const TileFrame& f = layouts_.frame(r.layout);
    if (is_f8(r.dtype))
      out_.line("ByteOperand<{}, {}, {}> {};", r.type, f.row_steps() / 2, f.col_steps() / 4, r.name);
    else
      out_.write(registers_.declaration(r));
  }
}

// Prints conversions from f32 to what the tensor cores read.
void WgmmaB2b::print_parts(const B2bDot& d) {
  const Registers narrow = left(d), wide = registers_.buffer(d.op->operands[0]);
  need("convert");
  need("memory");
  if (is_f8(narrow.dtype)) return out_.line("to_bytes({}, {});", narrow.name, wide.name);
  registers_.for_registers(narrow, [&] {
    out_.line("{} = from_f32<{}>({});", registers_.at(narrow), narrow.dtype, registers_.at(wide));
  });
}

// Prints zeros over the unused part of a block: each warpgroup writes them all, and its next dot reads them.
void WgmmaB2b::zero_unused(const B2bDot& d) {
  if (!blocks_.zero_unused(d, kWarpgroup, [&](int block) { return layout(d, block); })) return;
  out_.write("bulk_store_fence();");
  out_.write("warpgroup_sync(group);");
}

// A loop that only multiplies: while the tensor cores work on one round's blocks, those before are given
// back.
void WgmmaB2b::print_pipeline(const Step& loop, const std::vector<const B2bDot*>& dots) {
  const Op& op = *loop.op;
  std::set<int> blocks;
  for (const B2bDot* d : dots)
    for (int block : {d->a, d->b})
      if (!blocks_.is_resident(block) && !joins(block)) blocks.insert(block);
  const auto release = [&] {
    for (int block : blocks)
      out_.line("release_previous<1>({});", pipelines_[static_cast<std::size_t>(block)].state);
  };
  const std::string lower = expressions_.scalar(op.operands[0]).text,
                    upper = expressions_.scalar(op.operands[1]).text, i = names_.value(op.blocks[0].args[0]);
  if (schedule_.threads > kWarpgroup) out_.line("keep_step<{}>();", schedule_.threads);
  open_dot_loop(op);
  ++loop_depth_;
  for (const Step& s : loop.body[0])
    if (s.kind == Step::Kind::scalar) k_.print_step(s);
  for (const B2bDot* d : dots) wait(*d);
  for (const B2bDot* d : dots) issue(*d, d->loop_from_zero ? fmt::format("{} > {}", i, lower) : "true");
  out_.line("wgmma_wait<{}>();", dots.size());
  out_.open_if_needed("if ({} > {})", i, lower);
  release();
  out_.close();
  for (int block : blocks) out_.line("{}.next();", pipelines_[static_cast<std::size_t>(block)].state);
  --loop_depth_;
  out_.close();
  out_.write("wgmma_wait<0>();");
  for (const B2bDot* d : dots) out_.line("wgmma_pin({});", registers_.buffer(d->op->results[0]).name);
  const bool runs = runs_always(op);
  if (!runs) out_.open_if_needed("if ({} < {})", lower, upper);
  release();
  if (!runs) out_.close();
}

// Registers of a thread beside the sums of a loop, the products of one of its rounds, the largest operand
// that is made of these, and kB2bOtherRegisters.
Index WgmmaB2b::registers_left(const Step& loop) {
  std::set<tile::ValueId> seen;
  Index taken = kB2bOtherRegisters, operand = 0;
  for (const B2bDot& d : b2b_->dots) {
    if (d.loop != loop.op || !seen.insert(loops_.storage(d.op->results[0])).second) continue;
    taken += layouts_.frame(registers_.buffer(d.op->results[0]).layout).elements_per_thread();
    if (d.a < 0) {
      const Registers a = left(d);
      const auto bytes = static_cast<Index>(size_bytes(a.dtype));
      operand = std::max(operand, layouts_.frame(a.layout).elements_per_thread() * bytes / 4);
    }
  }
  return register_share().multiplying - taken - operand;
}

// Loads of a round's steps that stand along one axis, and ask for nothing that the round computes.
std::vector<ElementPrinter::LoadAhead> WgmmaB2b::loads_ahead(const Step& loop) {
  std::set<tile::ValueId> computed;
  for (const Step& s : loop.body[0]) {
    if (s.op) computed.insert(s.op->results.begin(), s.op->results.end());
    for (const printer::Instr& in : s.loop.body) computed.insert(in.value);
  }
  std::set<const Op*> taken;
  const auto may = [&](const Op& load) {
    const auto waits = [&](tile::ValueId v) { return computed.count(v) > 0; };
    return b2b_->to_threads.count(&load) == 0 &&
           std::none_of(load.operands.begin(), load.operands.end(), waits) && taken.insert(&load).second;
  };
  std::vector<ElementPrinter::LoadAhead> all;
  Index registers = registers_left(loop);
  for (const Step& s : loop.body[0]) {
    if (s.kind != Step::Kind::elements) continue;
    std::vector<ElementPrinter::LoadAhead> found = k_.elements().loads_ahead(s.loop, may, registers);
    std::move(found.begin(), found.end(), std::back_inserter(all));
  }
  return all;
}

// What the round of this index loads.
void WgmmaB2b::print_ahead(std::vector<ElementPrinter::LoadAhead>& loads, const Op& loop,
                           const std::string& index) {
  const tile::ValueId i = loop.blocks[0].args[0];
  const TypedText known = scalars_[i];
  out_.open_block();
  const std::string name = out_.local(names_.value(i));
  out_.line("const {0} {1} = {0}({2});", expressions_.type_of(i), name, index);
  scalars_[i] = {name, expressions_.type_of(i)};
  for (ElementPrinter::LoadAhead& load : loads) k_.elements().loads().print_filling(load.loop, load.instr);
  out_.close();
  scalars_[i] = known;
}

// What the first round loads of those that `rounds` counts and `loop` has the steps of.
void WgmmaB2b::print_first_ahead(std::vector<ElementPrinter::LoadAhead>& loads, const Op& loop,
                                 const Op& rounds) {
  if (loads.empty()) return;
  const std::string from = expressions_.scalar(rounds.operands[0]).text;
  const bool runs = runs_always(rounds);
  if (!runs) out_.open_if_needed("if ({} < {})", from, expressions_.scalar(rounds.operands[1]).text);
  print_ahead(loads, loop, from);
  if (!runs) out_.close();
}

// Memory is asked for a round before it is read: behind the round's products nobody waits for it. Where the
// loop behind has the same rounds without masks, one function prints both.
void WgmmaB2b::print_in_order(const Step& loop) {
  const Op& op = *loop.op;
  const tile::ValueId i = op.blocks[0].args[0];
  std::vector<ElementPrinter::LoadAhead> ahead = loads_ahead(loop);
  for (ElementPrinter::LoadAhead& load : ahead) k_.elements().loads().declare_ahead(load.loop, load.instr);
  print_first_ahead(ahead, op, op);
  // What stands at no place of the loop's index is the same in each round.
  std::erase_if(ahead, [&](const ElementPrinter::LoadAhead& load) {
    const std::vector<tile::ValueId>& starts = load.loop.plan->body[load.instr].op->operands;
    return std::find(starts.begin(), starts.end(), i) == starts.end();
  });
  const Step* next = printed_with(loop);
  const auto following = [&](const Op& of) {
    const std::string index = names_.value(of.blocks[0].args[0]),
                      behind = fmt::format("i64({}) + {}", index, expressions_.scalar(of.operands[2]).text);
    return fmt::format("{0} < {1} ? {0} : {2}", behind, wrapped(expressions_.scalar(of.operands[1])), index);
  };
  if (!next) {
    k_.open_loop(loop);
    print_round_in_order(loop, ahead, following(op));
    k_.elements().loads().forget_ahead();
    k_.close_loop();
    return;
  }
  const std::optional<KnownMasks> masks = shared_masks(loop, *next);
  const std::string body = out_.local("run_round"), index = names_.value(i);
  const DType type = expressions_.type_of(i);
  const std::string after = ahead.empty() ? "" : out_.local("next_" + index);
  out_.open("const auto {} = [&](const {} {}{}, const bool masked)", body, type, index,
            after.empty() ? "" : fmt::format(", const {} {}", type, after));
  scalars_[i] = {index, type};
  ++loop_depth_;
  k_.elements().known_masks() = &*masks;
  print_round_in_order(loop, ahead, after);
  k_.elements().known_masks() = nullptr;
  --loop_depth_;
  out_.close_with("};");
  for (const Step* each : {&loop, next}) {
    if (each == next) print_first_ahead(ahead, op, *each->op);
    k_.open_loop(*each);
    const std::string at = names_.value(each->op->blocks[0].args[0]);
    out_.line("{}({}{}, {});", body, at, after.empty() ? "" : ", " + following(*each->op), each == &loop);
    k_.close_loop();
  }
  k_.elements().loads().forget_ahead();
}

void WgmmaB2b::print_round_in_order(const Step& loop, std::vector<ElementPrinter::LoadAhead>& ahead,
                                    const std::string& next) {
  std::vector<const B2bDot*> under_way;
  const auto begin = [&](const B2bDot& d) {
    if (d.a < 0 && parts_.count(loops_.storage(d.op->operands[0])) > 0) print_parts(d);
    wait(d);
    zero_unused(d);
    issue(d);
    under_way.push_back(&d);
  };
  // Products are done in the order in which they were handed over.
  const auto end = [&](std::size_t count) {
    if (count == 0) return;
    out_.line("wgmma_wait<{}>();", under_way.size() - count);
    for (std::size_t i = 0; i < count; ++i) finish(*under_way[i]);
    under_way.erase(under_way.begin(), under_way.begin() + static_cast<std::ptrdiff_t>(count));
  };
  for (const B2bDot& d : b2b_->dots)
    if (d.loop == loop.op && d.waits_for_blocks()) begin(d);
  for (const Step& step : loop.body[0]) {
    if (step.kind == Step::Kind::dot) {
      const B2bDot& d = *b2b_->find(*step.op);
      if (!d.waits_for_blocks()) begin(d);
      continue;
    }
    std::size_t touched = 0;
    for (std::size_t i = 0; i < under_way.size(); ++i)
      if (touches(loops_, step, *under_way[i])) touched = i + 1;
    end(touched);
    k_.print_step(step);
  }
  if (!ahead.empty()) print_ahead(ahead, *loop.op, next);
  end(under_way.size());
}

// Registers for what a round keeps aside.
WgmmaB2b::NamedRound WgmmaB2b::named_round(const Step& loop) {
  NamedRound round{.steps = &plan_.rounds.of_loop.at(loop.op)};
  for (tile::ValueId v : round.steps->aside) {
    round.aside[v] = registers_.buffer(v);
    round.aside[v].name = names_.unique(registers_.buffer(v).name + "_aside");
  }
  return round;
}

// The operand that the product under way reads, and its sum where that is by itself.
void WgmmaB2b::share_late_registers(const B2bDot& from, const B2bDot& to) {
  for (const auto& [known, other] : {std::pair{from.op->operands[0], to.op->operands[0]},
                                     std::pair{from.op->results[0], to.op->results[0]}}) {
    const tile::ValueId one = loops_.storage(known), same = loops_.storage(other);
    if (one == same) continue;
    buffers_[same] = registers_.buffer(one);
    declared_.insert(same);
    if (const auto parts = parts_.find(one); parts != parts_.end()) parts_[same] = parts->second;
  }
}

WgmmaB2b::RoundBounds WgmmaB2b::print_round_bounds(const Op& loop) {
  const tile::ValueId i = loop.blocks[0].args[0];
  const std::string name = names_.value(i);
  RoundBounds bounds{name, expressions_.type_of(i), expressions_.scalar(loop.operands[0]),
                     out_.local(name + "_end"), out_.local(name + "_step")};
  if (!runs_once(loop))
    out_.line("const i64 {} = {}, {} = {};", bounds.end, expressions_.scalar(loop.operands[1]).text,
              bounds.by, expressions_.scalar(loop.operands[2]).text);
  scalars_[i] = {bounds.index, bounds.type};
  return bounds;
}

// A round, which begins while the last product of the one before waits to be handed over. As a function of
// `begins` it may be the first of all, which has none before it.
void WgmmaB2b::print_overlapping_round(const NamedRound& named, bool may_begin) {
  const B2bRound& round = *named.steps;
  const auto behind_another = [&](const std::function<void()>& print) {
    if (may_begin) out_.open_if_needed("if (!begins)");
    print();
    if (may_begin) out_.close();
  };
  open_round(round);
  if (rounds(schedule_) == tile::Rounds::fa3_pingpong)
    behind_another([&] { out_.write("pingpong_wait(group);"); });
  issue_first(round);
  behind_another([&] {
    wait(*round.late);
    issue(*round.late);
    if (rounds(schedule_) == tile::Rounds::fa3_pingpong)
      out_.line("pingpong_signal<{}>(group);", warpgroups());
    out_.write("wgmma_wait<1>();");
  });
  if (may_begin) out_.write("if (begins) wgmma_wait<0>();");
  print_rest(round);
  behind_another([&] {
    out_.write("wgmma_wait<0>();");
    finish(*round.late);
    print_adding(named);
  });
  print_sums(named);
  print_late_used_parts(*round.late);
}

// The last product of a round is handed over in the next one, which knows nothing of this round's masks.
void WgmmaB2b::print_late_used_parts(const B2bDot& late) {
  if (!late.has_used_parts) return;
  wait(late);
  zero_unused(late);
}

// The masks of a loop whose body serves the next one's rounds, too: they differ in nothing else, and carry
// the same values on in the same registers. Threads read blocks of memory that the loop fetches in both or in
// none.
std::optional<KnownMasks> WgmmaB2b::shared_masks(const Step& loop, const Step& next) const {
  const std::vector<const B2bDot*> own = dots_of(loop), others = dots_of(next);
  const auto multiply_alike = [](const B2bDot* a, const B2bDot* b) {
    return a->a == b->a && a->b == b->b && a->a_k_major == b->a_k_major && a->b_k_major == b->b_k_major &&
           a->from_zero == b->from_zero && a->has_used_parts == b->has_used_parts;
  };
  if (!std::equal(own.begin(), own.end(), others.begin(), others.end(), multiply_alike)) return std::nullopt;
  for (std::size_t i = 0; i < loop.op->results.size(); ++i)
    if (loops_.storage(loop.op->results[i]) != loops_.storage(next.op->results[i])) return std::nullopt;
  std::optional<KnownMasks> masks = known_masks(kernel_, *loop.op, *next.op);
  const auto is_fetched = [&](const Op* load) { return b2b_->to_threads.count(load) > 0; };
  if (masks && std::any_of(masks->loads.begin(), masks->loads.end(), is_fetched)) return std::nullopt;
  return masks;
}

void WgmmaB2b::print_overlapping(const Step& loop) {
  const NamedRound named = named_round(loop);
  const B2bRound& round = *named.steps;
  const B2bDot& late = *round.late;
  std::optional<NamedRound> more;
  const Step* next = plan_.rounds.next_of(loop);
  if (next) {
    more = named_round(*next);
    auto kept = named.aside.begin();
    for (auto& [v, r] : more->aside) r.name = (kept++)->second.name;
  }
  for (const auto& [v, r] : named.aside) out_.write(registers_.declaration(r));
  const RoundBounds bounds = print_round_bounds(*loop.op);
  const bool runs = runs_always(*loop.op);
  if (!runs) out_.open_if_needed("if ({} < {})", bounds.from.text, bounds.end);
  ++loop_depth_;
  const std::optional<KnownMasks> masks = next ? shared_masks(loop, *next) : std::nullopt;
  const std::string body = out_.local("run_round"), masked = masks ? ", true" : "";
  out_.open("const auto {} = [&](const {} {}, const bool begins{})", body, bounds.type, bounds.index,
            masks ? ", const bool masked" : "");
  k_.elements().known_masks() = masks ? &*masks : nullptr;
  print_overlapping_round(named, true);
  k_.elements().known_masks() = nullptr;
  out_.close_with("};");
  out_.line("{}({}({}), true{});", body, bounds.type, bounds.from.text, masked);
  // The compiler does not see that a loop which begins behind its end has no rounds: a copy of the body.
  if (!runs_once(*loop.op)) {
    const std::string i = out_.local(bounds.index + "_i");
    out_.open("for (i64 {0} = {1} + {2}; {0} < {3}; {0} += {2})", i, wrapped(bounds.from), bounds.by,
              bounds.end);
    out_.line("{}({}({}), false{});", body, bounds.type, i, masked);
    out_.close();
  }
  if (next && more) {
    const RoundBounds others = print_round_bounds(*next->op);
    const std::string j = out_.local(others.index + "_i");
    const bool once = runs_once(*next->op);
    if (once)
      out_.open_block(), out_.line("const i64 {} = {};", j, others.from.text);
    else
      out_.open("for (i64 {0} = {1}; {0} < {2}; {0} += {3})", j, others.from.text, others.end, others.by);
    if (masks) {
      out_.line("{}({}({}), false, false);", body, bounds.type, j);
    } else {
      out_.line("const {0} {1} = {0}({2});", others.type, others.index, j);
      print_overlapping_round(*more, false);
    }
    out_.close();
  }
  --loop_depth_;
  wait(late);
  issue(late);
  out_.write("wgmma_wait<0>();");
  finish(late);
  print_adding(named);
  if (!runs) out_.close();
}

// The blocks of the first products, which wait for nothing else.
void WgmmaB2b::open_round(const B2bRound& round) {
  for (const Step* s : round.scalars) k_.print_step(*s);
  for (const Step* s : round.first) wait(*b2b_->find(*s->op));
}

void WgmmaB2b::issue_first(const B2bRound& round) {
  for (const Step* s : round.first) {
    const B2bDot& d = *b2b_->find(*s->op);
    zero_unused(d);
    issue(d);
  }
}

// What is computed on them once they are there.
void WgmmaB2b::print_rest(const B2bRound& round) {
  for (const Step* s : round.first) finish(*b2b_->find(*s->op));
  for (const Step* s : round.between) k_.print_step(*s);
}

// Adds the last product of the round before.
void WgmmaB2b::print_adding(const NamedRound& round) {
  std::map<tile::ValueId, Registers> own;
  for (const auto& [v, r] : round.aside) own[v] = std::exchange(buffers_[v], r);
  for (const Step* s : round.steps->adding) k_.print_step(*s);
  for (const auto& [v, r] : own) buffers_[v] = r;
}

// What waits for the last product of the round before: its sum is rescaled, its operand replaced.
void WgmmaB2b::print_sums(const NamedRound& round) {
  for (const Step* s : round.steps->sums) k_.print_step(*s);
  for (const auto& [v, r] : round.aside)
    registers_.for_registers(r, [&, from = registers_.buffer(v), to = r] {
      out_.line("{} = {};", registers_.at(to), registers_.at(from));
    });
  print_parts(*round.steps->late);
  for (const Step* s : round.steps->after) k_.print_step(*s);
}

}  // namespace tilewright::cuda
