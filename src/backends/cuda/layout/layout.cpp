// Choice of frames for tiles of two axes, and of a frame and side for values of one axis: these follow the
// larger tiles they come from or go to.
#include "backends/cuda/layout/layout.h"

#include "backends/cuda/analysis/access.h"
#include "backends/cuda/analysis/schedule_fields.h"
#include "backends/cuda/layout/folded_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <set>

namespace tilewright::cuda {

using printer::ElementLoop;
using printer::Instr;
using printer::Step;
using tile::OpKind;
using tile::ValueId;

Axes long_axes(const std::vector<Index>& shape) {
  Axes axes;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) axes.push_back(static_cast<int>(i));
  return axes;
}

int side_of_axis(const printer::ElementLoop& loop, ThreadLayout layout, int axis) {
  const Axes axes = long_axes(loop.shape);
  const auto at = std::find(axes.begin(), axes.end(), axis);
  if (at == axes.end() || layout.part == Part::one) return -1;
  if (layout.part == Part::rows) return 0;
  if (layout.part == Part::cols) return 1;
  return at == axes.begin() ? 0 : 1;
}

bool shares_rows(const tile::Schedule& s) { return row_cluster(s) > 1 && threads_per_row(s) < s.threads; }

bool same_spread(const Layouts& layouts, ThreadLayout a, ThreadLayout b) {
  if (a.part != b.part) return false;
  if (a.part == Part::one || a.frame == b.frame) return true;
  const TileFrame &x = layouts.frame(a), &y = layouts.frame(b);
  if (x.threads_per_row != y.threads_per_row || x.groups != y.groups || x.cluster != y.cluster ||
      x.row_blocks != y.row_blocks || x.map != y.map || x.shifted != y.shifted)
    return false;
  const bool rows = x.rows == y.rows, cols = x.cols == y.cols && x.vector == y.vector;
  return a.part == Part::rows ? rows : a.part == Part::cols ? cols : rows && cols;
}

namespace {

template <class Fn>
void for_each_loop(const std::vector<Step>& steps, const Fn& fn) {
  for_each_step(steps, [&](const Step& s) {
    if (s.kind == Step::Kind::elements) fn(s.loop);
  });
}

Index elements(const std::vector<Index>& shape) {
  return std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
}

// The tile axis of an instruction's value that walks the loop's innermost long axis, or -1.
int column_axis(const ElementLoop& loop, const Instr& in) {
  const Axes axes = long_axes(loop.shape);
  if (axes.empty()) return -1;
  for (std::size_t a = 0; a < in.axes.size(); ++a)
    if (in.axes[a] == axes.back()) return static_cast<int>(a);
  return -1;
}

// Widest vectors that every large access of the loops of one shape can take.
struct VectorChoice {
  Index vector = 0;  // 0: no access seen
  int narrowest_bytes = 16;
};
VectorChoice vector_choice(const LayoutInput& input, const std::vector<Index>& shape, int limit_bytes) {
  VectorChoice choice;
  for_each_loop(input.plan.steps, [&](const ElementLoop& loop) {
    if (loop.shape != shape) return;
    for (const Instr& in : loop.body) {
      if (!in.op || (in.op->kind != OpKind::load && in.op->kind != OpKind::store)) continue;
      const int axis = column_axis(loop, in);
      const auto long_loop_axes = long_axes(loop.shape).size();
      const auto walked = static_cast<std::size_t>(
          std::count_if(in.axes.begin(), in.axes.end(), [](int a) { return a >= 0; }));
      if (axis < 0 || walked < long_loop_axes) continue;  // repeated along rows: read from cache
      const Access access(input.kernel, input.ranges, *in.op);
      if (!access.contiguous(axis)) continue;  // scattered whatever the vector
      const Index widest = access.widest(axis, limit_bytes);
      const int bytes = static_cast<int>(size_bytes(access.view().dtype));
      // The narrowest type decides: wider ones take several accesses for the same elements.
      if (bytes < choice.narrowest_bytes || choice.vector == 0) {
        choice.vector = choice.vector == 0 ? widest : std::max(choice.vector, widest);
        choice.narrowest_bytes = std::min(choice.narrowest_bytes, bytes);
      }
      if (widest * bytes < limit_bytes) choice.vector = std::min(choice.vector, widest);
    }
  });
  return choice;
}

int power_of_two_below(Index n) {
  return n < 1 ? 1 : static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(n)));
}

class Assigner {
 public:
  explicit Assigner(const LayoutInput& input) : input_(input) {}

  Result<Layouts> run() {
    if (Status s = check(); !s) return s.error();
    choose_main();
    if (out_.is_packed() && row_threads() > 32)
      return refuse(fmt::format(
          "threads_per_row={}: programs side by side in a block have a warp each at most", row_threads()));
    if (Status s = check_accumulators(); !s) return s.error();
    place_loops_of_two_axes();
    place_results();
    place_loops_of_one_axis();
    if (Status s = check_cluster(); !s) return s.error();
    if (Status s = check_side_by_side(); !s) return s.error();
    return std::move(out_);
  }

 private:
  static Failure refuse(std::string why) { return failure(Failure::Kind::unsupported, std::move(why)); }
  ValueId storage(ValueId v) const { return input_.plan.storage(v); }
  const std::vector<Index>& shape(ValueId v) const { return input_.kernel.type(v).shape; }
  const tile::Schedule& schedule() const { return input_.schedule; }
  tile::DotUnit unit() const { return dot_unit(schedule()); }
  int row_threads() const { return cuda::threads_per_row(schedule()); }

  Status check() {
    const tile::Schedule& s = schedule();
    if (s.threads < 32 || s.threads > 1024 || s.threads % 32 != 0)
      return refuse(fmt::format("threads={}: wants a multiple of 32 up to 1024", s.threads));
    const int row = cuda::threads_per_row(s);
    if (row < 1 || s.threads % row != 0 ||
        !(row % 32 == 0 || std::has_single_bit(static_cast<unsigned>(row))))
      return refuse(fmt::format(
          "threads_per_row={}: wants a power of two below a warp or whole warps that divide threads={}", row,
          s.threads));
    if (const int programs = side_by_side(s); programs > 1 && (row > 32 || programs * row != s.threads))
      return refuse(fmt::format("programs={}: wants threads={} in so many rows of a warp at most", programs,
                                s.threads));
    return Unit{};
  }

  // Whole blocks of 16 rows of each warp (64 of each warpgroup) and whole vectors of all threads along them.
  Status check_accumulators() {
    if (!cuda::on_tensor_cores(unit())) return Unit{};
    for (const std::vector<Index>& shape : dot_shapes_) {
      TileFrame f{.rows = shape[0], .cols = shape[1]};
      spread_as_accumulator(f);
      if (f.rows % (2 * Index{f.groups}) != 0 || f.cols % (2 * Index{f.threads_per_row}) != 0)
        return refuse(
            fmt::format("dot: {} threads do not share tiles of {} by {} evenly", threads_, f.rows, f.cols));
    }
    return Unit{};
  }

  void choose_main() {
    for_each_loop(input_.plan.steps, [&](const ElementLoop& loop) {
      const auto axes = long_axes(loop.shape).size();
      if (elements(loop.shape) > elements(main_)) main_ = loop.shape;
      if (axes == 2) two_axes_ = true;
      scans_rows_ = scans_rows_ || may_scan_rows(loop);
    });
    for_each_step(input_.plan.steps, [&](const Step& s) {
      if (s.kind == Step::Kind::dot) {
        add_dot_shapes(*s.op);
        scans_rows_ = false;  // a product's threads hold rows that lie apart
      }
      if ((s.kind == Step::Kind::dot || s.kind == Step::Kind::relayout) && s.op) crosses_ = true;
    });
    if (!two_axes_ && !crosses_ && row_threads() < schedule().threads) {
      out_.programs_per_block = schedule().threads / row_threads();
      threads_ = row_threads();
    } else {
      out_.programs_per_block = side_by_side(schedule());
      threads_ = program_threads(schedule()) / out_.programs_per_block;
    }
  }

  // Down the columns of a tile, or along an axis that may lie so.
  static bool may_scan_rows(const ElementLoop& loop) {
    const Axes axes = long_axes(loop.shape);
    return std::any_of(loop.body.begin(), loop.body.end(), [&](const Instr& in) {
      return in.kind == Instr::Kind::scan && !axes.empty() &&
             (axes.size() == 1 || in.op->axis != axes.back());
    });
  }

  // Programs of a few threads, each of which holds whole columns: nothing that crosses threads may be asked
  // of them, since those of a last block that is not full are not there.
  Status check_side_by_side() {
    const int programs = side_by_side(schedule());
    if (programs == 1) return Unit{};
    if (!two_axes_ || crosses_ || row_cluster(schedule()) > 1)
      return refuse("programs: side by side are those of tiles of two axes, and stay in their threads");
    bool crosses_threads = false;
    for_each_loop(input_.plan.steps, [&](const ElementLoop& loop) {
      const Axes axes = long_axes(loop.shape);
      for (const Instr& in : loop.body)
        if (in.kind == Instr::Kind::reduce || in.kind == Instr::Kind::scan)
          crosses_threads = crosses_threads || axes.size() != 2 || in.op->axis != axes[0];
    });
    const auto shares = [](const TileFrame& f) { return f.groups > 1; };
    if (crosses_threads || std::any_of(out_.frames.begin(), out_.frames.end(), shares))
      return refuse("programs: side by side, a thread holds whole columns");
    return Unit{};
  }

  // Operand a, where it stands in registers, is spread as an accumulator, too.
  void add_dot_shapes(const tile::Op& dot) {
    dot_shapes_.insert(shape(dot.results[0]));
    const std::vector<ValueId>& buffers = input_.plan.buffers;
    const bool kept = std::find(buffers.begin(), buffers.end(), storage(dot.operands[0])) != buffers.end();
    if (!kept || !cuda::on_tensor_cores(unit())) return;
    dot_shapes_.insert(shape(dot.operands[0]));
    stacked_ = true;
  }

  // The frame for a tile shape; rank 1 and unit axes give a single row.
  int frame_of(const std::vector<Index>& tile_shape) {
    const Axes axes = long_axes(tile_shape);
    TileFrame f;
    f.cols = axes.empty() ? 1 : tile_shape[static_cast<std::size_t>(axes.back())];
    f.rows = axes.size() < 2 ? 1 : tile_shape[static_cast<std::size_t>(axes[0])];
    const Index main_cols =
        main_.empty()
            ? 1
            : main_[static_cast<std::size_t>(long_axes(main_).empty() ? 0 : long_axes(main_).back())];
    const bool by_rows = shares_rows(schedule());
    f.cluster = f.cols == main_cols && !by_rows ? row_cluster(schedule()) : 1;
    f.row_blocks = by_rows && f.rows > 1 ? row_cluster(schedule()) : 1;
    const VectorChoice choice = vector_choice(input_, tile_shape, std::max(1, schedule().vector_bytes));
    Index vector = choice.vector > 0 ? choice.vector : 4;
    while (vector > 1 && vector > f.cols) vector /= 2;
    f.vector = static_cast<int>(vector);
    if (on_tensor_cores(tile_shape)) {
      spread_as_accumulator(f);
    } else if (f.rows == 1) {
      f.groups = 1;
      f.threads_per_row = threads_;
    } else {
      f.threads_per_row = threads_per_row(f, tile_shape);
      f.groups = threads_ / f.threads_per_row;
      if (scans_rows_) f.map = RowMap::runs;
    }
    if (tile_shape == main_ && f.rows == 1 && f.map == RowMap::strided) shift_row(f);
    for (std::size_t i = 0; i < out_.frames.size(); ++i)
      if (out_.frames[i] == f) return static_cast<int>(i);
    out_.frames.push_back(f);
    return static_cast<int>(out_.frames.size()) - 1;
  }

  // Moves the columns of a row that begins anywhere.
  void shift_row(TileFrame& f) {
    auto row = find_shifted_row({input_.kernel, input_.plan, input_.ranges, schedule().vector_bytes}, main_);
    if (!row) return;
    f.shifted = true;
    f.vector = static_cast<int>(row->vector);
    out_.shifted = std::move(row);
  }

  int threads_per_row(const TileFrame& f, const std::vector<Index>& tile_shape) const {
    if (dot_shapes_.count(tile_shape) && unit() == tile::DotUnit::fma) return dot_threads_per_row(f);
    if (dot_shapes_.count(tile_shape)) return row_threads();
    const Index main_cols = main_[static_cast<std::size_t>(long_axes(main_).back())];
    if (tile_shape == main_ || f.cols == main_cols) return row_threads();
    int threads = power_of_two_below(ceil_div(f.cols, f.vector));
    while (threads > 1 && threads_ % threads != 0) threads /= 2;
    return std::min(threads, threads_);
  }

  bool on_tensor_cores(const std::vector<Index>& tile_shape) const {
    return cuda::on_tensor_cores(unit()) && dot_shapes_.count(tile_shape) > 0;
  }

  // wgmma: the warps below one another. mma: in rows and columns of warps that make their parts about square.
  void spread_as_accumulator(TileFrame& f) const {
    f.map = RowMap::mma;
    f.vector = 2;
    f.cluster = 1;
    const Index warps = threads_ / 32;
    Index across = 1;
    // What is reduced along a row stays within four lanes, and what is multiplied from registers in its warp.
    bool reduces = false;
    for_each_loop(input_.plan.steps, [&](const ElementLoop& loop) {
      for (const Instr& in : loop.body)
        reduces = reduces || in.kind == Instr::Kind::reduce || in.kind == Instr::Kind::scan;
    });
    if (unit() == tile::DotUnit::mma && !reduces && !stacked_)
      while (across * 2 <= warps && f.rows * across < f.cols * warps / across && f.cols % (32 * across) == 0)
        across *= 2;
    f.threads_per_row = static_cast<int>(4 * across);
    f.groups = threads_ / f.threads_per_row;
  }

  // About square blocks of elements per thread: each operand element read serves many products.
  int dot_threads_per_row(const TileFrame& f) const {
    int best = 1;
    double best_reads = 1e30;
    for (int t = 1; t <= threads_ && t * f.vector <= f.cols; t *= 2) {
      if (threads_ % t != 0) continue;
      const double rows = static_cast<double>(ceil_div(f.rows, threads_ / t));
      const double cols = static_cast<double>(ceil_div(f.cols, t));
      if (rows + cols / f.vector * 2 < best_reads) {
        best_reads = rows + cols / f.vector * 2;
        best = t;
      }
    }
    return best;
  }

  void place_loops_of_two_axes() {
    for_each_loop(input_.plan.steps, [&](const ElementLoop& loop) {
      const Axes axes = long_axes(loop.shape);
      if (axes.empty()) out_.loops[&loop] = ThreadLayout{};
      if (axes.size() != 2) return;
      const ThreadLayout layout{frame_of(loop.shape), Part::all};
      out_.loops[&loop] = layout;
      for (const Instr& in : loop.body) place_buffers(loop, in, layout.frame, axes);
    });
  }

  // What a loop of two axes says about the buffers it touches: those of its own shape are spread like it, its
  // reductions like its rows or columns; and one that it reads along one axis would best be spread so.
  void place_buffers(const ElementLoop& loop, const Instr& in, int frame, const Axes& axes) {
    if (in.value < 0 || input_.kernel.type(in.value).rank() == 0) return;
    const ValueId v = storage(in.value);
    const std::size_t rank = long_axes(shape(in.value)).size();
    if (in.kind == Instr::Kind::keep || in.kind == Instr::Kind::scan) {
      out_.buffers[v] = {frame, Part::all};
    } else if (in.kind == Instr::Kind::reduce && rank == 1) {
      out_.buffers.insert({v, {frame, in.op->axis == axes[0] ? Part::cols : Part::rows}});
    } else if (in.kind == Instr::Kind::reload && rank == 1) {
      for (int a : in.axes)
        if (a >= 0) wanted_.insert({v, {frame, a == axes[0] ? Part::rows : Part::cols}});
    } else if (in.kind == Instr::Kind::reload && rank == 2) {
      out_.buffers.insert({v, {frame, Part::all}});
    }
    (void)loop;
  }

  // Results of dots and relayouts, and buffers of one element.
  void place_results() {
    for_each_step(input_.plan.steps, [&](const Step& s) {
      if (s.kind != Step::Kind::dot && s.kind != Step::Kind::relayout) return;
      const ValueId v = s.op->results[0];
      if (long_axes(shape(v)).size() == 2) out_.buffers[storage(v)] = {frame_of(shape(v)), Part::all};
    });
    for (ValueId v : input_.plan.buffers) {
      const auto rank = long_axes(shape(v)).size();
      if (rank == 0) out_.buffers[storage(v)] = ThreadLayout{};
      if (rank == 2 && !out_.buffers.count(storage(v)))
        out_.buffers[storage(v)] = {frame_of(shape(v)), Part::all};
    }
  }

  // Loops and buffers of one axis that share values form a class; the class takes the side of the tile it
  // belongs to.
  void place_loops_of_one_axis() {
    std::map<ValueId, int> class_of_buffer;
    std::vector<int> parent;
    const auto root = [&](int c) {
      while (parent[static_cast<std::size_t>(c)] != c) c = parent[static_cast<std::size_t>(c)];
      return c;
    };
    const auto fresh = [&] {
      parent.push_back(static_cast<int>(parent.size()));
      return parent.back();
    };
    const auto buffer_class = [&](ValueId v) {
      auto [it, added] = class_of_buffer.insert({storage(v), 0});
      if (added) it->second = fresh();
      return it->second;
    };
    const auto join = [&](int a, int b) { parent[static_cast<std::size_t>(root(a))] = root(b); };
    std::vector<std::pair<const ElementLoop*, int>> loops;
    const auto one_axis = [&](ValueId v) { return v >= 0 && long_axes(shape(v)).size() == 1; };
    for_each_step(input_.plan.steps, [&](const Step& s) {
      for (auto [from, to] : s.moves)
        if (one_axis(from) && one_axis(to)) join(buffer_class(from), buffer_class(to));
      if (s.kind == Step::Kind::relayout && one_axis(s.op->results[0])) buffer_class(s.op->results[0]);
      if (s.kind != Step::Kind::elements || long_axes(s.loop.shape).size() != 1) return;
      loops.push_back({&s.loop, fresh()});
      for (const Instr& in : s.loop.body)
        if (in.kind != Instr::Kind::compute && one_axis(in.value))
          join(buffer_class(in.value), loops.back().second);
    });
    for (ValueId v : input_.plan.buffers)
      if (one_axis(v)) buffer_class(v);
    std::map<int, ThreadLayout> layout;
    for (const auto* known : {&out_.buffers, &wanted_})
      for (const auto& [v, p] : *known)
        if (class_of_buffer.count(v)) layout.insert({root(class_of_buffer.at(v)), p});
    for (auto& [loop, c] : loops) {
      auto it = layout.find(root(c));
      if (it == layout.end()) it = layout.insert({root(c), {frame_of(loop->shape), Part::all}}).first;
      out_.loops[loop] = it->second;
    }
    for (const auto& [v, c] : class_of_buffer) {
      auto it = layout.find(root(c));
      if (it == layout.end()) it = layout.insert({root(c), {frame_of(shape(v)), Part::all}}).first;
      out_.buffers.insert({v, it->second});
    }
    // A frame of a single row is its own columns.
    const auto normalize = [&](ThreadLayout& p) {
      if (p.part == Part::all && out_.frame(p).rows == 1) p.part = Part::cols;
    };
    for (auto& [loop, p] : out_.loops)
      if (p.part != Part::one) normalize(p);
    for (auto& [v, p] : out_.buffers)
      if (p.part != Part::one) normalize(p);
  }

  Index main_rows() const {
    const Axes axes = long_axes(main_);
    return axes.size() < 2 ? 1 : main_[static_cast<std::size_t>(axes[0])];
  }

  Status check_cluster() {
    if (row_cluster(schedule()) <= 1) return Unit{};
    if (crosses_) return refuse("cluster: dot and transpose stay within one block");
    if (shares_rows(schedule()) && !two_axes_)
      return refuse("cluster: a tile of one row has threads_per_row = threads");
    const auto rows_differ = [&](const TileFrame& f) { return f.rows > 1 && f.rows != main_rows(); };
    if (shares_rows(schedule()) && std::any_of(out_.frames.begin(), out_.frames.end(), rows_differ))
      return refuse("cluster: tiles with different numbers of rows");
    for (const TileFrame& f : out_.frames)
      if (f.cluster == 1 && f.cols > 1 && !shares_rows(schedule()))
        return refuse("cluster: tiles with different row lengths");
    bool scans = false;
    for_each_loop(input_.plan.steps, [&](const ElementLoop& loop) {
      for (const Instr& in : loop.body) scans = scans || in.kind == Instr::Kind::scan;
    });
    if (scans) return refuse("cluster: a scan stays within one block");
    return Unit{};
  }

  const LayoutInput& input_;
  Layouts out_;
  std::vector<Index> main_;
  std::set<std::vector<Index>> dot_shapes_;
  std::map<ValueId, ThreadLayout> wanted_;
  bool two_axes_ = false, crosses_ = false;
  bool scans_rows_ = false;  // and multiplies nothing
  bool stacked_ = false;     // the warps of an accumulator stand below one another
  int threads_ = 32;
};

}  // namespace

Result<Layouts> assign_layouts(const LayoutInput& input) {
  auto layouts = Assigner(input).run();
  if (layouts) layouts->folded = find_folded_rows(input, *layouts);
  return layouts;
}

MainShape main_shape(const tile::Kernel& kernel, const printer::LoopPlan& plan,
                     const std::vector<printer::ValueRange>& ranges) {
  std::vector<Index> largest;
  for_each_loop(plan.steps, [&](const ElementLoop& loop) {
    if (elements(loop.shape) > elements(largest)) largest = loop.shape;
  });
  MainShape out;
  const Axes axes = long_axes(largest);
  if (axes.empty()) return out;
  out.cols = largest[static_cast<std::size_t>(axes.back())];
  if (axes.size() == 2) out.rows = largest[static_cast<std::size_t>(axes[0])];
  const LayoutInput input{kernel, plan, ranges, {}};
  const VectorChoice choice = vector_choice(input, largest, 16);
  if (choice.vector > 0) {
    out.vector = choice.vector;
    out.access_bytes = choice.narrowest_bytes;
  }
  if (const auto row = find_shifted_row({kernel, plan, ranges, 16}, largest)) {
    out.vector = row->vector;
    out.access_bytes = row->narrowest_bytes;
    out.shifted = true;
  }
  return out;
}

}  // namespace tilewright::cuda
