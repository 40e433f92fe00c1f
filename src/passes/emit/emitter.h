// Emitter: the state of writing one program as a kernel: the grid and the loops in tile_emitter.cpp, what the
// loops accumulate in emit_reductions.cpp, what is stored in emit_stores.cpp.
#pragma once

#include "passes/emit/emit_block_bounds.h"
#include "passes/emit/frame_values.h"
#include "passes/emit/tile_emitter.h"
#include "passes/masks/loop_range.h"
#include "passes/nest/online.h"
#include "passes/nest/tile_shape.h"

#include <functional>
#include <map>

namespace tilewright::passes {

class Emitter {
 public:
  Emitter(const ir::Graph& graph, const LoopNest& nest, const TileShape& shape, const std::string& name,
          const std::vector<Temporary>& temporaries)
      : nest_(nest),
        shape_(shape),
        s_(graph, nest, name, temporaries),
        k_(s_.k),
        dot_(nest.dot()),
        walked_(walked_variable(nest, shape)),
        f_(s_, loop_frame(), {shape.looped, walked_, shape.inner_depth, shape.inner_unit}),
        columns_(s_, {walked_, shape.column, shape.depth, shape.columns, true, true}, {true, walked_}),
        result_(s_, result_frame(), {shape.looped, -1}),
        out_(dot_ >= 0 ? result_ : f_) {
    s_.any_size = shape.any_size;
  }

  EmittedKernel run();

 private:
  const Expr& expr(int s) const { return nest_.exprs[at(s)]; }
  bool has_rows() const { return shape_.row >= 0 || nest_.has_dots(); }
  // Rows and columns of the result are blocks that dots multiply.
  bool has_dot_blocks() const { return dot_ >= 0 || nest_.accumulates_scaled(); }
  // What stands in the loops: with a dot its operand a, rows × depth, whose other operand, depth × columns,
  // and whose result, rows × columns, have frames of their own.
  TileAxes loop_frame() const;
  TileAxes result_frame() const {
    return {shape_.row, shape_.column, shape_.rows, shape_.columns, has_rows()};
  }
  Index block(int v) const;

  void declare_constants();

  // --- the grid
  struct Part {
    int variable;  // -1: the split
    Index extent, block;
  };

  // Scalar start of every variable: from the program id, or 0 for a reduced one that fits the tile.
  void choose_starts();
  // The rows of a tile that no loop walks may be reduced, too.
  bool holds_whole(int v) const { return !shape_.looped && v == shape_.row && nest_.reduced[at(v)]; }

  std::vector<int> nearest_first() const;
  std::vector<int> column_variables() const;
  void add_grid_axis(std::vector<Part> parts);

  // --- what is stored
  void store(const ProgramOutput& o);

  // Programs that differ only in variables an output does not walk would all write it, as those of the blocks
  // of columns would what depends on the rows: the first of them does.
  std::optional<tile::Value> is_first_of_its_writers(const ProgramOutput& o);

  void scatter_output(const ProgramOutput& o, DType dtype);

  void accumulate(const ProgramOutput& o);

  tile::Value scan_block(int s, const tile::Value& before);

  // This program's parts of epilogue reductions.
  void store_epilogue_reductions();
  tile::Value place_of_block(int v);

  // --- loops over the reduced variables

  // The blocks of the walked variable that a pass needs.
  void restrict_loop(const ReductionPass& pass);
  // Masks of the loop's body that is written, and where a kernel before this one found that they hold.
  void note_known_blocks();

  // What does not change inside the loop stands before it.
  void hoist(int level);

  // In a program with a dot, other values may belong to the frame of the result.
  void hoist(const ReductionPass& pass);

  // What a reduction is carried in from block to block.
  DType carried_dtype(const Expr& m) const;
  tile::Value literal(DType dtype, tile::Monoid monoid, const std::vector<Index>& shape);

  tile::Value combine(tile::Monoid monoid, tile::Value a, tile::Value b);

  // The operand's tile shape inside the loop: it may not vary along the parallel tile axis.
  std::vector<Index> accumulator_shape(bool whole) const;

  // Several levels in one loop: no whole tiles are carried, since each level needs the one before complete.
  bool accumulates_tiles(const ReductionPass& pass) const;

  // A sum over several variables, taken apart: a factor of its terms that the innermost loop does not change
  // is multiplied by what that loop has summed. All sums of a pass have one, or none is taken apart.
  struct Terms {
    int walked, resting;  // exprs
  };
  void find_terms(const ReductionPass& pass);
  std::vector<tile::Value> add_scaled(const std::vector<tile::Value>& before,
                                      const std::vector<tile::Value>& sums);
  tile::Value initial_sum(const Expr& outer_dot);
  std::vector<tile::Value> initial_values(const ReductionPass& pass);
  void reduction_pass(const ReductionPass& pass);
  // The same of partial results: those of one split after another.
  void merge_pass(const ReductionPass& pass);
  void set_results(const ReductionPass& pass, const std::vector<tile::Value>& last);

  using Moved =
      std::map<int, std::pair<tile::Value, tile::Value>>;  // reduction → its old value and its new one

  std::vector<tile::Value> accumulate_block(const ReductionPass& pass,
                                            const std::vector<tile::Value>& carried);

  // What this block adds to a reduction: nothing outside the space.
  tile::Value block_operand(const Expr& m) { return block_operand(m, m.operands[0]); }
  tile::Value block_operand(const Expr& m, int operand);

  // The place of an extreme is carried beside the extreme so far.
  struct Placed {
    tile::Value extreme, place;
  };
  DType place_dtype(const ReductionPass& pass) const;
  Placed better_of(const Expr& m, const Placed& before, const Placed& here);
  Placed placed_block(const ReductionPass& pass, const Expr& m);
  Placed first_extreme(const Expr& m, const Placed& carried);

  // A maximum of nothing so far is -inf, from which no difference can be taken: what is subtracted is 0 then.
  tile::Value finite(const Expr& m, tile::Value v);

  // Reductions of one level often need the same factor.
  tile::Value factor(const Change& c, const Moved& moved);

  tile::Value change(const Change& c, const Moved& moved);

  std::pair<tile::Value, tile::Value> ends(const Change& c, const Moved& moved);

  using Body = std::function<std::vector<tile::Value>(const std::vector<tile::Value>&)>;

  std::vector<tile::Value> loop_over_reduced(const std::vector<tile::Value>& initial, const Body& body);

  std::vector<tile::Value> nest(const std::vector<int>& outer, std::size_t depth,
                                const std::vector<tile::Value>& initial, const Body& body);

  void store_outputs_looped();

  // The place of one split's partial results.
  void add_dim(int v, Frame::Access& to, std::vector<tile::Builder::SizeArg>& extents);
  Frame::Access partial(const SharedPart& part, int temporary, tile::Value split);
  tile::Value load_partial(int s, tile::Value split);
  void only_where(tile::Value condition, const std::function<void()>& write);
  void store_partials();

  const LoopNest& nest_;
  const TileShape& shape_;
  EmitState s_;
  tile::Builder& k_;
  const int dot_;  // expr, or -1
  const int walked_;
  FrameValues f_;                 // in the loops
  FrameValues columns_, result_;  // of a dot: operand b, and what it gives
  FrameValues& out_;              // what is stored
  tile::Value split_;
  std::vector<Terms> terms_;             // of each sum of the pass that is written
  std::map<int, tile::Value> extremes_;  // of reductions that give their places
  std::map<int, tile::Value> places_;    // of this program's block among those of a variable
  std::string note_;
  // The part that the loop over the walked variable covers, where that is not all of it.
  std::optional<std::pair<tile::Operand, tile::Operand>> part_;
  std::optional<LoadedBounds> found_;  // by a kernel before this one
  std::vector<KnownBlocks> known_blocks_;
  std::vector<std::tuple<const Change*, const Moved*, tile::Value>>
      factors_;  // of the loop body that is being written
  std::vector<std::vector<std::pair<tile::Builder::SizeArg, Index>>> grid_;
};

}  // namespace tilewright::passes
