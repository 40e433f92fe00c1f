// Walker: the state of one walk of a group from its outputs back to memory, by kind of node: what it begins
// with and arithmetic in walk_group.cpp, views and loads in walk_views.cpp, reductions and dots in
// walk_reductions.cpp.
#pragma once

#include "passes/nest/walk_group.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

namespace tilewright::passes {

using Coordinates = std::vector<IndexExpr>;

// A scan or a sort.
bool takes_whole_row(const ir::Node& n);
// A reduction, a scan or a sort.
bool reduces(const ir::Node& n);
// Elements behind one result; 1 means that there is nothing to reduce, scan or sort.
Index reduced_size(const ir::Graph& graph, const ir::Node& n);

class Walker {
 public:
  Walker(const ir::Graph& graph, const Group& group, Reductions reductions)
      : graph_(graph),
        group_(group),
        reductions_(reductions),
        has_matmul_(std::any_of(group.nodes.begin(), group.nodes.end(), [&](ir::NodeId id) {
          return graph.node(id).op->kind == ir::OpClass::matmul;
        })) {}

  LoopNest run();

 private:
  // What was walked before it turned out that nothing needs it: a choice that positions decide, an index that
  // became a view's.
  void drop_unused();

  // The last matmul of the group; but in a loop of reductions none that one of them reads.
  ir::NodeId outer_matmul();

  // The result of a matmul and its depth, which stays a variable even where it is 1.
  void choose_dot_space(const ir::Node& matmul);

  // The iteration space: a matmul's, that of the first reduction's operand, else the largest output's.
  void choose_space();

  void make_variables();

  // The part of the space an output walks: all of it, its parallel axes, or of a dot's the rows: what was
  // reduced along them stands beside the result.
  Coordinates output_coordinates(ir::NodeId id);

  // Coordinates of an output that is a dot's result with its axes exchanged. None if no axis is exchanged, or
  // if the innermost would move, whose neighbours a tile's stores take together.
  std::optional<Coordinates> exchanged_coordinates(ir::NodeId id);
  std::optional<Coordinates> coordinates_behind(ir::NodeId anchor, ir::NodeId id);

  Coordinates row_coordinates(const Shape& shape) const;

  // Coordinates at which a reduction of a dot's result is left, and those of what it reduces.
  struct EpilogueCoordinates {
    Coordinates all, kept, along;
    Shape reduced;
  };
  EpilogueCoordinates epilogue_coordinates(const ir::Node& n) const;

  // The first epilogue reduction that `id` is made of, or -1.
  ir::NodeId epilogue_reduction_of(ir::NodeId id) const;

  void add_output(ir::NodeId id);

  void add_scatter(ir::NodeId id, const ir::Node& n);

  void add_update(ir::NodeId id, const ir::Node& n);
  int dynamic_slice(const ir::Node& n, const Coordinates& at, int mask);
  // Where the element `at` of a block lies in a buffer of places `whole`, which has room for so many blocks
  // more along each axis.
  struct Placed {
    IndexExpr offset;
    std::vector<std::pair<int, Index>> dynamic;
  };
  Placed placed(const Coordinates& at, ir::NodeId start, const Shape& whole, const Shape& room);

  bool is_member(ir::NodeId id) const {
    return std::binary_search(group_.nodes.begin(), group_.nodes.end(), id);
  }
  int push(Expr expr);
  void inherit(Expr& expr, int operand) const;

  int walk(ir::NodeId id, const Coordinates& at, int mask);

  int compute(ir::NodeId id, const Coordinates& at, int mask);

  int inlined(const ir::Node& n, ir::NodeId id, const Coordinates& at, int mask);

  // Unit axes are dropped and added without arithmetic, the rest goes through the row-major position.
  Coordinates reshape(const Coordinates& at, const Shape& to, const Shape& from) const;

  // Integer constants keep all 64 bits, so they come as Index.
  int constant(DType dtype, const ir::Attr& value, ir::NodeId id);

  int in_range(const IndexExpr& e, Index low, Index high);
  int both(int a, int b);
  // The mask under which a reduction reads `at`, where what is made of it is used under `mask` alone. That
  // one may ask for a place along the reduced axes, of which the reduction needs every element: only
  // coordinates that may lie outside are asked for.
  int inside(const Coordinates& at, const Shape& shape, int mask);

  int pad(const ir::Node& n, const Coordinates& at, int mask);

  int concat(const ir::Node& n, const Coordinates& at, int mask);

  int load(ir::NodeId id, const IndexExpr& offset, int mask);

  int take(const ir::Node& n, const Coordinates& at, int mask);

  int take_along(const ir::Node& n, Coordinates at, int mask);

  // An index made of loop variables alone, which always lies inside: the element is a view's.
  bool is_position_inside(int index, ir::NodeId source, Index axis) const;

  // An index outside [0, extent) reads zero.
  int indirect(ir::NodeId source, Coordinates at, int axis, int index, int mask);
  std::pair<int, IndexExpr> moved_index(int index) const;

  int valid_index(int index, Index extent, const IndexExpr& moved = 0);

  bool depends_on_reduced(const IndexExpr& e) const;

  // A reduction over unit axes is its operand, or the index 0.
  int reduce_nothing(const ir::Node& n, const Coordinates& at, int mask);

  int reduce(const ir::Node& n, ir::NodeId id, const Coordinates& at, int mask);

  int epilogue_reduction(const ir::Node& n, ir::NodeId id, const Coordinates& at);

  // Leading axes of the operands are broadcast to the result's. A result that is needed along the reduced
  // axes is computed block by block inside their loop, over a variable of its own; the operand that walks
  // them comes second, whichever it is in the graph.
  int dot(const ir::Node& n, ir::NodeId id, const Coordinates& at, int mask);

  bool has_inner_dots(int expr) const;

  // Scans and sorts.
  int whole_row(const ir::Node& n, ir::NodeId id, const Coordinates& at, int mask);

  struct Done {
    Coordinates at;
    int mask;
    int expr;
    int before;  // the same node's walk before this one, by its number, or -1
  };
  const ir::Graph& graph_;
  const Group& group_;
  Reductions reductions_;
  std::set<ir::NodeId> epilogue_reductions_;  // reductions of what the outer matmul gives
  bool has_matmul_;
  Shape space_;
  bool has_dot_ = false;
  ir::NodeId anchor_ = -1;  // the matmul that the space was chosen for
  std::map<ir::NodeId, std::optional<Coordinates>> behind_anchor_;
  // Coordinates of the first dot over the reduced variables, and whether its operands change places.
  struct OuterDot {
    Coordinates at;
    bool transposed;
  };
  std::optional<OuterDot> outer_;
  std::vector<bool> reduced_axis_;
  Coordinates identity_, parallel_, reduced_;
  std::vector<Index> parallel_extents_, reduced_extents_;
  std::vector<Done> done_;
  std::unordered_map<ir::NodeId, int> last_done_;  // of a node, in `done_`
  int parts_of_one_ = 0;
  std::size_t code_ = 0;  // beside the exprs: divisions in their offsets, masked loads of parts
  LoopNest nest_;
};

}  // namespace tilewright::passes
