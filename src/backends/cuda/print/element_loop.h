// PrintedLoop: one element loop while it is printed, and the texts that follow from where it stands alone.
#pragma once

#include "backends/cuda/layout/spread.h"
#include "backends/cuda/plan/element_loops.h"
#include "backends/cuda/print/text.h"
#include "backends/printer/index_text.h"
#include "backends/printer/loop_plan.h"

#include <tilewright/base/dtype.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::cuda {

// An array that holds one value spread over the threads.
struct Registers {
  std::string name;
  ThreadLayout layout;
  DType dtype;
  DType type;            // of an element in a register
  bool staged = false;   // not in registers: `name` points to this thread's slots of shared memory
  Index rows = 0;        // of a thread's rows so many are there, in turn, or one for all of them; 0: all
  bool indexed = false;  // each with its place: Indexed<type>
  std::string element_type() const { return maybe_indexed(type, indexed); }
};

// Names of a thread's coordinates for one way of standing in rows.
struct ThreadNames {
  std::string t, g;
  bool one_group = false;  // g is 0
};

// Predicates of a load or store.
struct Bounds {
  bool rows = false, cols = false;  // predicates needed
  bool inner_end = false;           // end_col is the view's, not the tile's
  bool whole = true;                // column vectors are in or out as a whole
  std::string first_row, end_row, first_col, end_col;
  std::string uniform;  // condition on the other dimensions; empty: none
  // The first element that is inside, of a vector at column `col`, and the first one behind the last that is;
  // none is where `guard` does not hold.
  std::pair<std::string, std::string> inside(const std::string& col, int vector,
                                             const std::string& guard) const;
};

struct Address {
  std::string base;                                            // pointer variable of this thread
  std::string row_term;                                        // elements from r = 0 to r
  printer::IndexText col_step;                                 // elements from one c to the next
  std::string element_step;                                    // "" when contiguous
  bool shifted = false;                                        // vectors begin anywhere (shifted.cuh)
  std::string place(const TileFrame& frame, Part part) const;  // of what stands at r, c
  std::string waiting;  // of rows that threads store in pieces: what of a piece waits for the next
};

// A factor of the products that a row's sum is made of: the f32 that they multiply, and the instruction
// whose registers are it in `type`; the same where bytes become it.
struct InnerFactor {
  int instr = -1, source = -1;
  DType type = DType::bf16;
};
// One sum, or two that share a factor; instructions of the sums.
struct InnerProduct {
  int first_sum = -1, second_sum = -1;
  InnerFactor first = {}, second = {}, by = {};
  std::string sums = {};
};

struct PrintedLoop {
  const printer::ElementLoop* plan;
  ThreadLayout layout;
  TileFrame frame;
  std::vector<TypedText> values;    // by instruction; empty text: not yet computed here
  std::vector<Registers> arrays;    // by instruction: loads and reloads
  std::vector<int> uses;            // by instruction
  std::vector<std::string> states;  // by instruction: reduction accumulators
  std::vector<Bounds> bounds;       // by instruction: stores
  std::vector<Address> addresses;
  std::vector<std::string> outputs;  // by instruction: the vector that a store or a keep collects
  std::vector<bool> kept;            // by instruction: its value was computed into the registers that keep it
  std::vector<bool> wide;            // by instruction: stores of four vectors at once, see is_wide_store
  Pieces pieces;
  std::vector<InnerProduct> inner;  // sums on tensor cores
  ThreadNames thread;
  std::string shift;  // of a shifted row: the name of what its columns are moved down by
};

int role(const PrintedLoop& loop, int loop_axis);  // 0 rows, 1 columns, -1 none
Part spread_of(const PrintedLoop& loop, const std::vector<int>& axes);
bool is_array(const printer::Instr& in);                    // its registers hold a loaded or kept value
bool is_inner_sum(const PrintedLoop& loop, std::size_t i);  // tensor cores sum it
bool loaded_by_piece(const PrintedLoop& loop, Part part);

TypedText row_of(const PrintedLoop& loop);  // that r names
TypedText col_of(const PrintedLoop& loop);  // the first one of the vector that c names
// The steps c, of several, whose columns are all in the tile, as a condition; "" where there are none.
std::string whole_steps(const PrintedLoop& loop);
// Whether a vector of a shifted row holds a column of it; whether element v of a vector is a column of the
// tile: as conditions.
std::string holds_column(const PrintedLoop& loop);
std::string is_column(const PrintedLoop& loop);
std::string row_text(const PrintedLoop& loop);
std::string col_text(const PrintedLoop& loop);
// The distance of row r from row 0 of a thread; scaled(n): n rows in elements.
std::string row_step_text(const TileFrame& frame, const std::function<printer::IndexText(Index)>& scaled);

// --- small texts
// Conditions that all hold; empty ones are left out.
std::string join_conditions(std::initializer_list<std::string> all);
// first <= index < end, of those that are given.
std::string between(const std::string& index, const std::string& first, const std::string& end);

}  // namespace tilewright::cuda
