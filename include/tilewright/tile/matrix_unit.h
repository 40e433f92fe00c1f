// MatrixUnit: what multiplies blocks of operands on a device, in numbers: which operands it takes, in which
// tiles, and how fast. A backend fills it in, and lowering cuts products and back-to-back matmuls by it: what
// a unit is called, and which device has it, lowering does not know.
#pragma once

#include <tilewright/base/dtype.h>
#include <tilewright/base/shape.h>

#include <numeric>
#include <optional>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::tile {

// What one program computes of a product's result.
struct DotTile {
  Index rows = 1, columns = 1;
  double share = 0;  // of the unit's peak that its loop reaches; 0: not measured, the unit's
  double alone = 0;  // the share where a unit has one program; 0: the same
  double by_k = 1;   // times the share, where the depth is the contiguous axis of the right operand
  friend bool operator==(const DotTile&, const DotTile&) = default;
};

// Operands of one type. Eight-bit floats of two types meet; others meet their own.
struct MatrixOperands {
  DType dtype = DType::bf16;
  bool k_major = false;      // the depth must be the contiguous axis of both; else either axis may be
  bool rounded = false;      // to fewer bits than they have: only where the program allows it
  bool added_apart = false;  // the unit's sums keep too few bits: each block's product is added by itself
  bool computed = true;      // the left one, in a back-to-back matmul, may be computed where it is multiplied
  Index fewest = 1;          // rows and columns: of fewer, other ways lose nothing
  Index fewest_depth = 1;
  double rate = 1;             // of Target::matrix_flops_per_s
  std::vector<DotTile> tiles;  // widest first
  // The same where each block's products are added by themselves (DotPrecision::two_level); none: the unit
  // cannot, or adds all of them so.
  std::vector<DotTile> two_level_tiles;
  // An f32 product is written as products of parts of this type (passes/graph/products_by_parts.h) where
  // these take this much of its time; 0: never.
  double worth_parts = 0;
  // The tiles of such products, widest first; none where the unit has no such products.
  const std::vector<DotTile>& tiles_of(bool two_level) const& {
    return two_level && !added_apart ? two_level_tiles : tiles;
  }
  const std::vector<DotTile>& tiles_of(bool two_level) && = delete;
  friend bool operator==(const MatrixOperands&, const MatrixOperands&) = default;
};

// What of memory is copied as a block of an operand.
struct BlockRules {
  Index align_bytes = 1;  // of where it starts, and of every stride but that of the contiguous axis
  int most_axes = 8;      // of the memory, the block's own two among them
  Index row_bytes = 128;  // of a block's rows on chip: whole ones are copied
  Index line_bytes = 1;   // of the cache: a row on chip that begins elsewhere in memory lies in two of them
  // Whether a block may start so many bytes behind the first element, be so far from row to row, and be of
  // memory of so many axes.
  bool takes_start(Index bytes) const { return bytes % align_bytes == 0; }
  bool takes_stride(Index bytes) const { return bytes > 0 && bytes % align_bytes == 0; }
  bool takes_axes(Index axes) const { return axes <= most_axes; }
  // Lines that `row_bytes` of memory lie in, in the mean, where starts and strides are multiples of `step`.
  double lines(Index step) const {
    const Index apart = std::gcd(step, line_bytes);
    const double places = static_cast<double>(line_bytes) / static_cast<double>(apart);
    return 1 + (places - 1) / places;
  }
  friend bool operator==(const BlockRules&, const BlockRules&) = default;
};

// How long a unit takes for its tiles (tensor_rate.h), on one of Target::units.
struct TileRate {
  double clock_hz = 1e9;
  double flops_per_cycle = 1;         // with 16-bit operands; twice as many of 8 bits
  double chip_bytes_per_cycle = 1;    // read and written on chip
  double chip_share = 1;              // of these reads and writes, what loops were measured to take
  double intake_bytes_per_cycle = 1;  // from the last-level cache
  double second_line = 0;             // of the time for a row's line, that for the second one it lies in
  Index group_rows = 64;              // of a tile, that read the other operand's block together
  Index step_bytes = 128;             // of the depth, in a block
  double fill_cycles = 0;             // before the first block has arrived
  double store_cycles = 0;            // an element of the result that is stored from registers
  double send_cycles = 0;             // an element of the result that a copy engine stores
  double instructions_per_cycle = 1;  // on elements of the result
  double instructions_an_op = 1;
  // A right operand beside at most `streaming_rows` rows streams in pieces, `streamed_bytes` long where its
  // depth is contiguous; to open one costs what `opening_bytes` would take.
  double opening_bytes = 0;
  Index streaming_rows = 0, streamed_bytes = 0;
  double hidden =
      1;  // the part of memory's time that shows is one in so many, where programs follow each other
  // A part of a program's threads may have a tile of up to `own_tile` elements of its own: cycles from the
  // last product of one to the first of the next, how much longer what follows a product takes there, and
  // what must be gained for this to be believed.
  Index own_tile = 0;
  double turn_cycles = 0, alone_longer = 1, alone_believed = 1;
  Index group_m = 1;  // programs that run one after another and share a block of the right operand
  friend bool operator==(const TileRate&, const TileRate&) = default;
};

// A number of rows for one program of a back-to-back matmul, and what such a program may hold.
struct B2bWay {
  Index rows = 64, threads = 128;
  Index registers = 0;     // of a thread, for sums and for the products it computes on
  Index room_bytes = 0;    // on chip, for blocks of operands
  Index most_columns = 0;  // of the result; 0: B2bCuts::most_columns
  double faster = 0;  // than the next way, row by row: taken where its waves end sooner; 0: without asking
  friend bool operator==(const B2bWay&, const B2bWay&) = default;
};

// Sums over blocks whose products are scaled one by one before they are added.
struct ScaledAccumulationCuts {
  std::vector<Index> rows, columns;  // of tiles, widest first
  // A left operand that is computed on its way, as weights are widened, takes the ordinary units longer than
  // the matrix unit multiplies: in a round of `computed_group` rows by `computed_depth` the instructions,
  // which the groups of a unit issue in turn, and all of it, from the first load to the last product.
  std::vector<Index> computed_rows;
  Index computed_columns = 128, computed_depth = 128, computed_group = 64;
  double issue_cycles = 0, round_cycles = 0;
  double cycles_per_us = 1;
  Index fewest_blocks = 4;  // of the depth, for each of the programs that share it
  friend bool operator==(const ScaledAccumulationCuts&, const ScaledAccumulationCuts&) = default;
};

// B2bMatmuls of products whose intermediate tiles stay on chip (back-to-back matmul).
struct B2bCuts {
  std::vector<B2bWay> ways;      // tried in this order
  Index most_columns = 256;      // of the last result
  bool fills_units = false;      // fewer rows a program, where more would leave units without one
  bool refills_between = false;  // one of two products' blocks is fetched while the other's is read
  // A product inside the loop whose depth is walked in blocks of `deep_depth`: rows, and what the loop walks.
  DotTile deep;
  Index deep_depth = 64;
  Index room_bytes = 0;  // on chip, for the blocks of these, and of what is added up
  std::optional<ScaledAccumulationCuts> scaled_accumulation;
  friend bool operator==(const B2bCuts&, const B2bCuts&) = default;
};

struct MatrixUnit {
  std::vector<MatrixOperands> operands;
  BlockRules blocks;
  bool other_blocks = false;     // of a product alone, operands in memory that lie otherwise are copied, too
  Index column_step = 32;        // of tiles
  DotTile any_size;              // for sizes that are not known
  double share = 1;              // of its peak that loops reach whose tile says nothing
  std::optional<TileRate> rate;  // its time in more detail: tiles are ranked by it
  std::optional<B2bCuts> b2b;
  friend bool operator==(const MatrixUnit&, const MatrixUnit&) = default;
};

}  // namespace tilewright::tile
#pragma GCC visibility pop
