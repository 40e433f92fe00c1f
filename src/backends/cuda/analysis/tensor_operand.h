// TensorOperand: a block of a view as tensor cores read it: which of its axes is the depth, which is
// contiguous, and whether the copy engine can bring it.
#pragma once

#include "backends/cuda/machine/block_rules.h"

#include <tilewright/base/error.h>
#include <tilewright/tile/kernel.h>
#include <tilewright/tile/schedule.h>

#include <map>
#include <set>
#include <vector>

namespace tilewright::cuda {

// Rows of shared memory that TMA and wgmma swizzle as a whole, in bytes.
inline constexpr Index kPanelBytes = kBlockRules.row_bytes;
// Bytes along k that one instruction of tensor cores multiplies.
inline constexpr Index kStepBytes = 32;
// The most elements that the copy engine takes along one axis.
inline constexpr Index kLargestBox = 256;

struct TensorOperand {
  const tile::Op* load = nullptr;
  DType dtype = DType::bf16;
  Index rows = 0, depth = 0;   // of a block: rows of a or columns of b, and along k
  int row_dim = 0, k_dim = 0;  // the view's dimensions that these walk
  bool k_major = true;         // k is the contiguous one, else the rows are
  bool shared = false;         // the same for neighbours along the grid's second axis
  int inner_dim() const { return k_major ? k_dim : row_dim; }
  int outer_dim() const { return k_major ? row_dim : k_dim; }
  Index inner() const { return k_major ? depth : rows; }
  Index outer() const { return k_major ? rows : depth; }
  Index bytes() const { return rows * depth * static_cast<Index>(size_bytes(dtype)); }  // of a block
};

// A view as the copy engine must see it for one operand: `dims` from the contiguous one outwards, `box`
// elements of each at a time.
struct TensorBlock {
  int view = 0;
  std::vector<int> dims;
  std::vector<Index> box;
  bool is_exact = false;  // all bits of f32 count, as of results; tensor cores read them rounded
};
// The block of a plane, with one element at a time of the view's other dimensions.
TensorBlock plane_block(const tile::Kernel& kernel, TensorBlock plane);
// The block that one of `share` blocks of a cluster fetches: its share of the operand's rows.
TensorBlock tensor_block(const tile::Kernel& kernel, const TensorOperand& operand, Index share);

// Whether a view's rows, along dimension `inner`, can be copied 16 bytes at a time: these are aligned
// wherever a block begins at a multiple of them.
bool copies_chunks(const tile::ViewParam& view, int inner);

// Why a tensor map cannot describe a view, of which dimension `inner` is the contiguous one; or empty.
std::string why_no_tensor_map(const tile::ViewParam& view, int inner);

Failure refuse_dot(std::string why);

class OperandReader {
 public:
  OperandReader(const tile::Kernel& kernel, tile::DotUnit unit);

  // The block that `load` reads, whose tile axis `row_axis` walks the rows of a or the columns of b. A
  // failure of kind unsupported says why `unit` cannot take it.
  Result<TensorOperand> read(const tile::Op& load, int row_axis) const;

  const tile::Op* maker(tile::ValueId v) const;  // null: a block's argument
  // The constant that makes a scalar, or null.
  const tile::Op* number(tile::ValueId v) const;
  bool is_zero_tile(tile::ValueId v) const;
  // Whether a scalar follows the program's place along a grid axis.
  bool follows(tile::ValueId v, int grid_axis) const;
  // How often a loop runs: 0 when arguments decide, or not at all.
  Index trips(const tile::Op& loop) const;

 private:
  const tile::ViewParam& view(const TensorOperand& o) const {
    return kernel_.views[static_cast<std::size_t>(o.load->param)];
  }
  const tile::Dim& stride(const TensorOperand& o, int dim) const {
    return view(o).strides[static_cast<std::size_t>(dim)];
  }
  void gather_axes(tile::ValueId v, std::set<int>& axes) const;
  Status check(const TensorOperand& o) const;
  Status check_copy_engine(const TensorOperand& o) const;

  const tile::Kernel& kernel_;
  tile::DotUnit unit_;
  std::map<tile::ValueId, const tile::Op*> made_by_;
  std::vector<tile::ViewUse> uses_;
};

}  // namespace tilewright::cuda
