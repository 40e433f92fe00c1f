// FrameValues: a LoopNest's values as tiles of one frame.
#pragma once

#include "passes/emit/frame.h"
#include "passes/masks/bound.h"

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace tilewright::passes {

class FrameValues : public Frame {
 public:
  FrameValues(EmitState& state, const TileAxes& frame, const FrameLoops& loops)
      : Frame(state, frame, loops), values_(state.nest.exprs.size()), have_(state.nest.exprs.size(), 0) {}

  tile::Value value(int expr);
  std::optional<tile::Value> written(int expr) const;  // if its value is there
  tile::Value computed(int expr);                      // in the type arithmetic uses
  void set(int expr, tile::Value v);
  void set_in_body(int expr, tile::Value v);  // for the loop body that is being written
  // From this level on values change with every loop body, until they are said to rest again.
  void moving_from(int level) { moving_level_ = level; }
  void rest() { moving_level_ = kNoLevel; }
  // Computes, before the loops, what expr `of` is made of and no loop changes: reductions below `level` are
  // done.
  void hoist(int of, int level);
  // In a loop's body, what expr `of` loads beside its dots: it comes while these are multiplied.
  void load_beside_dots(int of);
  void hoist_dot_operands();  // the same for all inner dots
  // An operand of a dot as a tile of this frame's shape, in the type `operand_dtype`.
  tile::Value dot_operand(int expr, DType operand_dtype);

  tile::Value variable(int v);  // its values: a scalar, or a tile along its axis
  tile::Value index_value(const IndexExpr& e);
  tile::Value dynamic_index(const IndexExpr& offset, const std::vector<std::pair<int, Index>>& dynamic);
  tile::Value bound(const Bound& b);  // a scalar (emit_bounds.cpp)
  tile::Operand bound_operand(const Bound& b);
  // What stands inside the space, for tiles that overhang it; the tile's reduced variable apart.
  std::optional<tile::Value> overhang_mask();
  // The start of a block at clamped numbers, as one more dimension. None if there are no such numbers, or if
  // they vary within the tile.
  std::optional<Picked> placed(const std::vector<std::pair<int, Index>>& dynamic);

 private:
  tile::Value compute(int s);
  tile::Value reduce(const Expr& m);
  tile::Value epilogue_reduction(const Expr& m);
  tile::Value div_mod(const IndexExpr::DivMod& d);
  tile::Value load(int s);
  tile::Value load_block(int s, const std::optional<Picked>& picked, const std::optional<Pages>& pages);
  std::optional<tile::Value> load_from_page(int s);
  FrameValues& scalars();
  FrameValues& turned();
  bool is_of_places(int s) const;
  std::optional<tile::Value> load_picked_row(int s);
  tile::Value gather(const Expr& m);

  tile::Value inner_dot(int s);
  bool feeds_exponential(int dot) const;
  bool is_deep(int dot) const;  // its depth is walked in blocks, by a loop of its own
  FrameValues& operand_frame(int dot, int side);

  static constexpr int kForever = -1;
  static constexpr int kNoLevel = 1 << 20;
  struct Walked {
    tile::Value value;
    int body = 0;
  };
  struct Widened {
    tile::ValueId narrow = -1;
    tile::Value wide;
    int body = 0;
  };
  // What is written in a loop's body is there in that body alone, whether it changes or not.
  int lifetime(bool changes) const { return changes || s_.in_loop() ? s_.body() : kForever; }
  bool is_there(int body) const { return body == kForever || s_.is_open(body); }

  std::vector<tile::Value> values_;
  std::vector<int> have_;  // 0: not yet; kForever; else the loop body it belongs to
  std::map<int, Widened> widened_;
  std::map<int, Walked> index_;                                                 // by variable
  std::map<std::pair<int, int>, std::unique_ptr<FrameValues>> operand_frames_;  // by inner dot and side
  std::unique_ptr<FrameValues> scalars_;  // what is the same for the whole tile
  std::unique_ptr<FrameValues> turned_;   // rows and columns have changed places
  int moving_level_ = kNoLevel;
};

}  // namespace tilewright::passes
