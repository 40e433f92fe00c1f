// Follows a kernel back to the product that it computes: its one dot, what its blocks are of, and how
// programs share the result out.
#include "backends/cuda/library/product.h"

#include "backends/cuda/library/product_batch.h"
#include "backends/cuda/library/program_digits.h"

#include <algorithm>
#include <map>
#include <set>

namespace tilewright::cuda {

using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

// A block of a view, read or written: which of the view's dimensions its rows and columns walk.
struct BlockAccess {
  const Op* op = nullptr;
  int row_dim = 0, column_dim = 0;
  std::vector<Start> starts;  // by dimension
};

// Rows or columns of the result: `size` of them, in blocks that a digit of the program's number counts.
struct SharedAxis {
  Index size = 0, block = 0;
  std::optional<Digit> digit;  // none: one block
};

class ProductFinder {
 public:
  explicit ProductFinder(const Kernel& kernel)
      : kernel_(kernel), digits_(kernel), uses_(tile::view_uses(kernel)) {}

  std::optional<Product> run() {
    if (!find_ops() || !find_sum() || !find_depth()) return std::nullopt;
    const auto d = access(*store_, /*turned=*/false);
    const auto a = operand(0), b = operand(1);
    if (!d || !a || !b || !share_out(*d)) return std::nullopt;
    if (!reads(*a, a->row_dim, a->column_dim, rows_, columns_)) return std::nullopt;
    if (!reads(*b, b->column_dim, b->row_dim, columns_, rows_)) return std::nullopt;
    Product out{.m = rows_.size, .n = columns_.size, .k = depth_};
    out.a = matrix(*a), out.b = matrix(*b), out.d = matrix(*d);
    out.sum_type = kernel_.type(dot_->results[0]).dtype;
    out.tf32 = dot_->precision == tile::DotPrecision::tf32 && out.a.dtype == DType::f32;
    if (!has_types(out)) return std::nullopt;
    return merge_batch(out, batch_axes(*a, *b, *d)) ? std::optional(out) : std::nullopt;
  }

 private:
  // One store and one dot, in one loop or in none; nothing else that memory would show.
  bool find_ops() {
    int stores = 0, dots = 0, loops = 0, others = 0;
    tile::for_each_op(kernel_.body, [&](const Op& op) {
      for (const ValueId result : op.results) made_by_[result] = &op;
      if (op.kind == OpKind::store) ++stores, store_ = &op;
      if (op.kind == OpKind::dot) ++dots, dot_ = &op;
      if (op.kind == OpKind::loop) ++loops, loop_ = &op;
      others += op.kind == OpKind::branch || op.kind == OpKind::scatter || op.kind == OpKind::atomic_add;
    });
    const bool outside = std::any_of(kernel_.body.ops.begin(), kernel_.body.ops.end(),
                                     [&](const Op& op) { return &op == store_; });
    return stores == 1 && dots == 1 && loops <= 1 && others == 0 && outside && has_known_precision();
  }

  // A product that promises more, or allows more, than libraries are told of is left to our kernels.
  bool has_known_precision() const {
    return dot_->precision == tile::DotPrecision::exact || dot_->precision == tile::DotPrecision::tf32;
  }

  // What is stored is the dot's sum from zero, at most rounded.
  bool find_sum() {
    ValueId stored = store_->operands[0];
    if (const Op* cast = maker(stored); cast && cast->kind == OpKind::cast) stored = cast->operands[0];
    const Op* last = maker(stored);
    if (!last) return false;
    if (last == dot_ && !loop_) return is_zero(dot_->operands[2]);
    if (last != loop_ || loop_->results.size() != 1 || loop_->operands.size() != 4) return false;
    const tile::Block& body = loop_->blocks[0];
    const bool dot_in_loop =
        std::any_of(body.ops.begin(), body.ops.end(), [&](const Op& op) { return &op == dot_; });
    return dot_in_loop && dot_->operands[2] == body.args[1] && is_zero(loop_->operands[3]) &&
           body.ops.back().operands[0] == dot_->results[0];
  }

  bool find_depth() {
    block_depth_ = kernel_.type(dot_->operands[0]).shape[1];
    depth_ = block_depth_;
    if (!loop_) return true;
    const auto lower = digits_.constant(loop_->operands[0]), upper = digits_.constant(loop_->operands[1]),
               step = digits_.constant(loop_->operands[2]);
    if (!lower || !upper || !step || *lower != 0 || *step != block_depth_) return false;
    depth_ = *upper;
    return depth_ > 0;
  }

  std::optional<BlockAccess> operand(std::size_t i) const {
    const Op* op = maker(dot_->operands[i]);
    const bool turned = op && op->kind == OpKind::transpose;
    if (turned) op = maker(op->operands[0]);
    if (!op || op->kind != OpKind::load) return std::nullopt;
    return access(*op, turned);
  }

  std::optional<BlockAccess> access(const Op& op, bool turned) const {
    if (op.tile_dims.size() != 2) return std::nullopt;
    const auto& use = uses_[static_cast<std::size_t>(op.param)];
    if (use.accumulated || (use.read && use.written)) return std::nullopt;
    BlockAccess out{.op = &op, .row_dim = op.tile_dims[0], .column_dim = op.tile_dims[1]};
    if (turned) std::swap(out.row_dim, out.column_dim);
    for (std::size_t i = op.kind == OpKind::store ? 1 : 0; i < op.operands.size(); ++i) {
      auto start = digits_.start(op.operands[i]);
      if (!start) return std::nullopt;
      out.starts.push_back(std::move(*start));
    }
    return out;
  }

  // How programs share d out: every program has a block of its own.
  bool share_out(const BlockAccess& d) {
    const std::vector<Index>& block = kernel_.type(d.op->operands[0]).shape;
    if (!share_axis(d, d.row_dim, block[0], rows_) || !share_axis(d, d.column_dim, block[1], columns_))
      return false;
    std::map<Digit, Index> all;
    for (int dim = 0; dim < static_cast<int>(d.starts.size()); ++dim) {
      const Start& start = at(d, dim);
      if (start.depth != 0) return false;
      const bool shared = dim == d.row_dim || dim == d.column_dim;
      Index low = start.constant, high = start.constant;
      for (const auto& [digit, factor] : start.digits) {
        if (!shared && (digit == rows_.digit || digit == columns_.digit)) return false;
        all.insert({digit, factor});
        (factor > 0 ? high : low) += factor * (digit.count - 1);
      }
      if (shared) continue;
      if (low < 0 || high >= extent(d, dim)) return false;
      for (const auto& [digit, factor] : start.digits) batch_.insert(digit);
    }
    return (!rows_.digit || rows_.digit != columns_.digit) && digits_.number_programs(all);
  }

  bool share_axis(const BlockAccess& d, int dim, Index block, SharedAxis& out) const {
    const Start& start = at(d, dim);
    if (start.digits.size() > 1 || start.constant < 0) return false;
    out.block = block;
    Index blocks = 1;
    if (!start.digits.empty()) {
      const auto& [digit, factor] = *start.digits.begin();
      if (factor != block) return false;
      out.digit = digit, blocks = digit.count;
    }
    const Index reached = blocks * block, there = extent(d, dim) - start.constant;
    out.size = d.op->bounded ? std::min(reached, there) : reached;
    return out.size > 0 && out.size <= there;
  }

  // Whether an operand's block is the rows (of a) or columns (of b) `own` of a matrix, along the loop's
  // depth, with zeros in what lies behind the depth; and all that counts lies in the view.
  bool reads(const BlockAccess& x, int own_dim, int depth_dim, const SharedAxis& own,
             const SharedAxis& other) const {
    for (int dim = 0; dim < static_cast<int>(x.starts.size()); ++dim) {
      const Start& start = at(x, dim);
      Index low = start.constant, high = start.constant;
      bool follows = false;
      for (const auto& [digit, factor] : start.digits) {
        if (own.digit && digit == own.digit) {
          if (dim != own_dim || factor != own.block) return false;
          follows = true;
        } else if ((other.digit && digit == other.digit) || batch_.count(digit) == 0) {
          return false;
        } else {
          (factor > 0 ? high : low) += factor * (digit.count - 1);
        }
      }
      if (dim == own_dim && follows != own.digit.has_value()) return false;
      if (start.depth != (dim == depth_dim && loop_ ? 1 : 0)) return false;
      if (dim == own_dim) high += own.size - 1;
      if (dim == depth_dim) high += depth_ - 1;
      if (low < 0 || high >= extent(x, dim)) return false;
    }
    return depth_ % block_depth_ == 0 || ends_in_zeros(x, depth_dim);
  }

  bool ends_in_zeros(const BlockAccess& x, int depth_dim) const {
    const Start& start = at(x, depth_dim);
    return x.op->bounded && x.op->number.f == 0 && start.digits.empty() &&
           start.constant + depth_ == extent(x, depth_dim);
  }

  ProductMatrix matrix(const BlockAccess& x) const {
    ProductMatrix out{.view = x.op->param, .dtype = view(x).dtype};
    out.row_stride = stride(x, x.row_dim), out.column_stride = stride(x, x.column_dim);
    for (int dim = 0; dim < static_cast<int>(x.starts.size()); ++dim)
      out.start += at(x, dim).constant * stride(x, dim);
    return out;
  }

  std::vector<BatchAxis> batch_axes(const BlockAccess& a, const BlockAccess& b, const BlockAccess& d) const {
    std::vector<BatchAxis> out;
    out.reserve(batch_.size());
    for (const Digit& digit : batch_)
      out.push_back({digit.count, step(a, digit), step(b, digit), step(d, digit)});
    return out;
  }

  // Elements that a matrix moves by where a digit grows by one.
  Index step(const BlockAccess& x, const Digit& digit) const {
    Index elements = 0;
    for (int dim = 0; dim < static_cast<int>(x.starts.size()); ++dim) {
      const auto found = at(x, dim).digits.find(digit);
      if (found != at(x, dim).digits.end()) elements += found->second * stride(x, dim);
    }
    return elements;
  }

  static bool has_types(const Product& p) {
    return p.a.dtype == p.b.dtype && is_float(p.a.dtype) && is_float(p.d.dtype) && is_float(p.sum_type);
  }

  bool is_zero(ValueId v) const {
    const Op* op = maker(v);
    while (op && op->kind == OpKind::broadcast) op = maker(op->operands[0]);
    return op && op->kind == OpKind::constant && op->number.f == 0;
  }
  const Op* maker(ValueId v) const {
    const auto found = made_by_.find(v);
    return found == made_by_.end() ? nullptr : found->second;
  }
  const tile::ViewParam& view(const BlockAccess& x) const {
    return kernel_.views[static_cast<std::size_t>(x.op->param)];
  }
  static const Start& at(const BlockAccess& x, int dim) { return x.starts[static_cast<std::size_t>(dim)]; }
  Index extent(const BlockAccess& x, int dim) const {
    return view(x).extents[static_cast<std::size_t>(dim)].value;
  }
  Index stride(const BlockAccess& x, int dim) const {
    return view(x).strides[static_cast<std::size_t>(dim)].value;
  }

  const Kernel& kernel_;
  ProgramDigits digits_;
  std::vector<tile::ViewUse> uses_;
  std::map<ValueId, const Op*> made_by_;
  const Op *store_ = nullptr, *dot_ = nullptr, *loop_ = nullptr;
  Index depth_ = 0, block_depth_ = 0;
  SharedAxis rows_, columns_;
  std::set<Digit> batch_;  // of d's place, beside its rows and columns
};

}  // namespace

std::optional<Product> find_product(const Kernel& kernel) {
  if (!kernel.scalars.empty()) return std::nullopt;
  return ProductFinder(kernel).run();
}

Index alignment_of(const Kernel& kernel, Index batch, const ProductMatrix& matrix) {
  constexpr Index kMost = 256;
  const auto bytes = static_cast<Index>(size_bytes(matrix.dtype));
  Index aligned = std::min(kMost, kernel.views[static_cast<std::size_t>(matrix.view)].align_bytes);
  while (aligned > 1 &&
         (matrix.start * bytes % aligned != 0 || (batch > 1 && matrix.batch_stride * bytes % aligned != 0)))
    aligned /= 2;
  return aligned;
}

}  // namespace tilewright::cuda
