// Frame: which loop variables the axes of a tile walk, and where its blocks of memory lie. With rows every
// tile has rank 2, with unit axes where it does not vary, so that the builder's broadcasting does the rest;
// without rows tiles have rank 1.
#pragma once

#include "passes/emit/emit_state.h"
#include "passes/nest/pages.h"

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

class Frame {
 public:
  Frame(EmitState& state, const TileAxes& axes, const FrameLoops& loops)
      : s_(state), k_(state.k), frame_(axes), loops_(loops) {}

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

 protected:
  const Expr& expr(int s) const { return s_.nest.exprs[static_cast<std::size_t>(s)]; }
  Index block(int v) const { return v == frame_.row ? frame_.rows : v == frame_.column ? frame_.columns : 1; }
  bool reduces_rows() const;
  bool is_read_turned(Index row_stride, Index column_stride, DType dtype) const;
  bool begins_inside(const Expr& load) const;
  bool varies(tile::Value v, int along) const;  // the tile, along the axis of a variable of the tile

  EmitState& s_;
  tile::Builder& k_;
  TileAxes frame_;
  FrameLoops loops_;
};

}  // namespace tilewright::passes
