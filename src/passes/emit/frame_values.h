// FrameValues: a LoopNest's values as tiles of one frame. A frame says which loop variables the axes of a
// tile walk. With rows every tile has rank 2, with unit axes where it does not vary, so that the builder's
// broadcasting does the rest; without rows tiles have rank 1.
#pragma once

#include "passes/emit/emit_state.h"
#include "passes/masks/bound.h"
#include "passes/nest/pages.h"

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace tilewright::passes {

struct TileAxes {
  int row = -1, column = -1;  // variables; -1: nothing walks the axis, its extent is 1
  Index rows = 1, columns = 1;
  bool has_rows = false;
  bool matrix = false;  // an operand of a dot: a block of memory has rank 2 whatever it varies along
};

// What the loops around a frame do to it.
struct FrameLoops {
  bool looped = false;  // reduced variables are walked in blocks: what depends on them lives in one loop body
  int reduced = -1;     // the tile's reduced variable, or -1
  Index depth = kMostInnerDepth, unit = 1;  // of dots inside them: TileShape's inner_depth and inner_unit
};

class FrameValues {
 public:
  FrameValues(EmitState& state, const TileAxes& frame, const FrameLoops& loops)
      : s_(state),
        k_(state.k),
        frame_(frame),
        loops_(loops),
        values_(state.nest.exprs.size()),
        have_(state.nest.exprs.size(), 0) {}

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
  bool is_tile(int v) const { return v >= 0 && (v == frame_.row || v == frame_.column); }
  bool ragged(int v) const;

  int reduced_axis() const { return frame_.has_rows && loops_.reduced == frame_.column ? 1 : 0; }
  // Whether the loop walks an axis of the tile in blocks, or one value of its variable after another.
  bool walks_tile() const { return is_tile(loops_.reduced); }
  // Stretches the reduced axis: a value that does not vary along it still counts once per element.
  tile::Value full(tile::Value v);
  // A reduced tile keeps its unit axis in a frame of rank 2.
  tile::Value keep_rank(tile::Value v) { return frame_.has_rows ? k_.expand(v, reduced_axis()) : v; }
  // The tile shape an output's offset asks for.
  tile::Value fit(tile::Value v, bool rows, bool columns);
  std::vector<Index> whole_shape() const;

  struct Access {
    tile::View view;
    std::vector<tile::Operand> starts;
    int row_dim = -1, column_dim = -1;
    bool bounded = false;
    std::vector<int> dims() const;  // the view dimension each tile axis walks
  };
  // One more, leading dimension of a view, walked by a value instead of a loop variable; or where the
  // dimension of the variable `along` begins.
  struct Picked {
    tile::Value start;
    Index stride;
    Index extent;
    int along = -1;
  };
  struct Block {
    IndexExpr offset;
    BufferSource source;
    DType dtype = DType::f32;
    std::string name;
    std::optional<Picked> picked = {};
    std::optional<Pages> pages = {};  // one variable walks a page
    bool matrix = false;              // both axes, even those that memory does not vary along
  };
  Access block_access(const Block& block);
  // The start of a block at clamped numbers, as one more dimension. None if there are no such numbers, or if
  // they vary within the tile.
  std::optional<Picked> placed(const std::vector<std::pair<int, Index>>& dynamic);

 private:
  const Expr& expr(int s) const { return s_.nest.exprs[static_cast<std::size_t>(s)]; }
  Index block(int v) const { return v == frame_.row ? frame_.rows : v == frame_.column ? frame_.columns : 1; }
  tile::Value compute(int s);
  tile::Value reduce(const Expr& m);
  tile::Value epilogue_reduction(const Expr& m);
  bool reduces_rows() const;
  tile::Value div_mod(const IndexExpr::DivMod& d);
  tile::Value load(int s);
  tile::Value load_block(int s, const std::optional<Picked>& picked, const std::optional<Pages>& pages);
  std::optional<tile::Value> load_from_page(int s);
  FrameValues& scalars();
  FrameValues& turned();
  bool is_read_turned(Index row_stride, Index column_stride, DType dtype) const;
  bool is_of_places(int s) const;
  std::optional<tile::Value> load_picked_row(int s);
  bool begins_inside(const Expr& load) const;
  tile::Value gather(const Expr& m);
  bool varies(tile::Value v, int along) const;  // the tile, along the axis of a variable of the tile

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

  EmitState& s_;
  tile::Builder& k_;
  TileAxes frame_;
  FrameLoops loops_;
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
