// LoopPlan: a kernel's tile ops grouped into element loops, the form from which both dialects (CPU, CUDA) are
// printed.
//
// A tile op is not computed as a whole tile: a loop over the elements evaluates whole expressions, and only
// where a value is needed by a later loop is it either kept in a buffer (CPU: an array in cache; CUDA:
// registers) or computed again, whichever the policy finds cheaper. Loops end where a reduction's result is
// needed.
#pragma once

#include <tilewright/tile/kernel.h>

#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::printer {

// When a row or column, one number each, that a tile is scaled by or shifted has a loop of its own.
struct LinePolicy {
  // Where it costs more than this: computed in the tile's loop it would use a lane of each vector.
  double above_flops = std::numeric_limits<double>::infinity();
  // Where several loops read what is computed of a row, however cheap it is.
  bool several_readers = false;
};

// When a value needed by two loops is kept rather than computed again.
struct LoopPolicy {
  double keep_above_flops = 4;  // keep what costs more than this to compute again from loads and kept values
  LinePolicy lines = {};
  bool keep_loads = false;  // keep loaded values (registers) rather than read the cache again
  // Keep x rather than a kept value that is x times a number: its readers multiply.
  bool keep_unscaled = false;
  // Keep what a row or column is loaded before a dot and used behind it: it arrives while the dot runs.
  bool load_before_dots = false;
  // A dot that adds to a tile of zeros writes its result itself: nothing is kept for it to add to.
  bool dots_start_from_zeros = false;
  // Operands of dots which the backend reads from the view: blocks that only dots use, or transposes of such.
  std::set<tile::ValueId> read_in_place = {};
};

// An operand: another instruction of the same loop, or a scalar value of the kernel.
struct Ref {
  int instr = -1;
  tile::ValueId scalar = -1;
  bool is_scalar() const { return instr < 0; }
};

struct Instr {
  enum class Kind : unsigned char {
    compute,  // op: constant, arange, apply, cast, load, gather, random
    reload,   // value from its buffer
    effect,   // op: store, scatter, atomic_add
    reduce,  // op: accumulates its operand; the result (value) is there after the loop. A reshape to a scalar
             // is one too: of a single element
    scan,    // op: writes its result into value's buffer
    keep,    // writes its operand into value's buffer
  };
  Kind kind = Kind::compute;
  const tile::Op* op = nullptr;
  tile::ValueId value = -1;  // compute, reload: what it stands for; reduce, scan, keep: what is written
  std::vector<int>
      axes;  // for each axis of the value (effect: of the stored tile): the loop axis it walks, -1: stays 0
  std::vector<Ref>
      operands;  // as op->operands for compute; effects: value, indices, mask; reduce, scan, keep: one
};

struct ElementLoop {
  std::vector<Index> shape;  // rank 1 or 2
  std::vector<Instr> body;
};

struct Step {
  enum class Kind : unsigned char {
    scalar,    // op on rank-0 values, printed once
    elements,  // loop
    relayout,  // op (reshape that moves elements, transpose, argsort): buffer of the operand → buffer of the
               // result
    dot,       // op: operands' buffers, accumulator's buffer → result's buffer
    loop,      // op; body[0]; carried tiles live in the buffers of the block's args
    branch,    // op; body[0], body[1]
    assign,    // moves, all at once: scalars to scalars, buffers to buffers of the same type
  };
  Kind kind = Kind::scalar;
  const tile::Op* op = nullptr;
  ElementLoop loop;
  std::vector<Step> body[2];
  std::vector<std::pair<tile::ValueId, tile::ValueId>> moves;  // from → to
};

struct LoopPlan {
  std::vector<Step> steps;
  std::vector<tile::ValueId> buffers;  // tile values that live in a buffer of their own
  std::map<tile::ValueId, tile::ValueId>
      aliases;  // value → the buffer it shares (loop results → carried args)
  // The buffer (or, for scalars, the variable) a value lives in.
  tile::ValueId storage(tile::ValueId value) const {
    for (auto it = aliases.find(value); it != aliases.end(); it = aliases.find(value)) value = it->second;
    return value;
  }
};

// The steps in order, each before those of its bodies.
template <class Fn>
void for_each_step(const Step& step, const Fn& fn) {
  fn(step);
  for (const std::vector<Step>& body : step.body)
    for (const Step& inner : body) for_each_step(inner, fn);
}
template <class Fn>
void for_each_step(const std::vector<Step>& steps, const Fn& fn) {
  for (const Step& step : steps) for_each_step(step, fn);
}

// Whether the constant that op is, if any, is a tile of zeros.
bool is_zeros(const tile::Op* op);

LoopPlan plan_loops(const tile::Kernel& kernel, const LoopPolicy& policy);
std::string to_string(const tile::Kernel& kernel, const LoopPlan& plan);  // for goldens

}  // namespace tilewright::printer
