// Masks before the loop: which blocks a pass walks, as scalars of the kernel.
#include "passes/emit/emit_block_bounds.h"
#include "passes/emit/emitter.h"
#include "passes/masks/block_bounds.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

namespace tilewright::passes {

using tile::Value;

void Emitter::restrict_loop(const ReductionPass& pass) {
  const LoopSpace space(nest_, shape_);
  const LoopRange range = needed_blocks(s_.graph, space, pass.exprs);
  if (shape_.block_bounds >= 0 && !found_)
    found_ = load_block_bounds(s_, *find_block_bounds(s_.graph, nest_, shape_), shape_);
  const bool found = found_.has_value();
  if (!found && range == LoopRange{0, s_.extent(walked_)}) return;
  const std::optional<double> share = found ? std::nullopt : walked_share(range, space);
  note_ += note_.empty() ? "masks leave " : "; ";
  note_ += share ? fmt::format("{:.0f} % of a loop's blocks of {}", 100 * *share, space.block(walked_))
                 : fmt::format("of a loop's blocks of {} those that values decide", space.block(walked_));
  part_ = {f_.bound_operand(range.lower), f_.bound_operand(range.upper)};
  if (found) {
    part_ = {range.lower == Bound(0) ? found_->first : tile::max(found_->first, part_->first),
             range.upper == Bound(s_.extent(walked_)) ? found_->end : tile::min(found_->end, part_->second)};
  }
  if (!part_->first.is_literal()) k_.name_value(part_->first.value, "first");
  if (!part_->second.is_literal()) k_.name_value(part_->second.value, "end");
}

void Emitter::note_known_blocks() {
  if (!found_) return;
  for (const BlockBounds::Mask& m : found_->masks)
    if (const std::optional<Value> mask = f_.written(m.condition))
      known_blocks_.push_back({mask->id(), m.keeps, found_->whole_first.id(), found_->whole_end.id()});
}

tile::Operand FrameValues::bound_operand(const Bound& b) {
  return b.is_constant() ? tile::Operand(b.range().low) : tile::Operand(bound(b));
}

Value FrameValues::bound(const Bound& b) {
  if (b.is_constant()) return k_.literal_int(DType::i64, b.range().low);
  const auto part = [&](std::size_t i) { return bound_operand(b.parts()[i]); };
  switch (b.kind()) {
    case Bound::Kind::constant:
      break;
    case Bound::Kind::start:
      return s_.start(b.place());
    case Bound::Kind::value: {
      Value v = k_.cast(value(b.place()), DType::i64);
      TW_CHECK(v.rank() == 0, "a bound is a scalar");
      return tile::max(tile::min(v, kMostValue), -kMostValue);
    }
    case Bound::Kind::sum:
      return part(0) + part(1);
    case Bound::Kind::scaled:
      return part(0) * b.number();
    case Bound::Kind::floor_div: {
      // Division in a kernel truncates.
      Value a = bound(b.parts()[0]);
      if (b.parts()[0].range().low < 0) a = tile::where(a < Index{0}, a - (b.number() - 1), a);
      const Value blocks = a / b.number();
      k_.name_value(blocks, "blocks");
      return blocks;
    }
    case Bound::Kind::min:
      return tile::min(part(0), part(1));
    case Bound::Kind::max:
      return tile::max(part(0), part(1));
    case Bound::Kind::choose:
      return tile::where(bound(b.parts()[0]) >= Index{0}, bound(b.parts()[1]), part(2));
  }
  TW_CHECK(false, "a bound of no kind");  // constants are done
}

}  // namespace tilewright::passes
