// KernelText: what all parts of the printer share while one kernel becomes C++ text.
#pragma once

#include "backends/cpu/text/amount.h"
#include "backends/printer/loop_plan.h"
#include "backends/printer/names.h"
#include "backends/printer/value_names.h"
#include "backends/printer/value_range.h"

#include <tilewright/tile/affine.h>
#include <tilewright/tile/kernel.h>
#include <tilewright/tile/schedule.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tilewright::cpu {

// Smallest and largest value an i64 scalar can have; kUnbounded where nothing is known.
struct Range {
  Index low, high;
};
inline constexpr Index kUnbounded = Index{1} << 60;

// A scalar where it is read: its variable, or the number that it is, whose literal stands there.
struct ScalarText {
  std::string text;
  std::optional<tile::Number> number = std::nullopt;
};

// A tile value in memory: row-major, unit axes left out, rows padded to whole vectors. Short rows that a
// transposition leaves for element loops alone lie one after another (loops/joined_rows.h).
struct Buffer {
  std::string name;
  DType dtype = DType::f32;
  std::vector<Index> strides;  // per axis of the value, elements; 0 for unit axes
  Index elements = 0;
};

class KernelText {
 public:
  KernelText(const tile::Kernel& kernel, const tile::Schedule& schedule, int lanes);

  const tile::Kernel& kernel;
  const tile::Schedule& schedule;
  const tile::CpuLoops& kind;
  const int lanes;                         // TW_LANES of the headers
  const std::set<tile::ValueId> in_place;  // operands of dots that are read from their views
  const std::set<tile::ValueId> weights;   // exponentials of which none needs to be subnormal
  printer::LoopPlan plan;
  const tile::AffineTable affine;
  const std::vector<printer::ValueRange> ranges;
  Code code;
  printer::Names names{is_reserved, printer::Names::Again::letter};
  const printer::ValueNames hints;                          // for names of values
  std::map<tile::ValueId, const tile::Op*> stored_by_dots;  // a dot's result → the store that the dot is
  std::vector<std::string> views;                           // the pointers' names
  std::string room;                                         // the memory for what dots pack
  bool streams = false;                                     // some store bypasses the caches

  void include(std::string_view header) { headers_.emplace(header); }
  const std::set<std::string>& headers() const { return headers_; }

  // --- scalars
  const ScalarText& read(tile::ValueId v) const;
  const std::string& scalar(tile::ValueId v) const { return read(v).text; }
  Amount amount(tile::ValueId v) const;      // of an integer
  std::string name_scalar(tile::ValueId v);  // gives it a variable
  bool has_variable(tile::ValueId v) const { return scalars_.count(plan.storage(v)) != 0; }
  void set_number(tile::ValueId v, const tile::Number& number);
  void set_variable(tile::ValueId v, std::string name) { scalars_[plan.storage(v)] = {std::move(name)}; }
  void set_same(tile::ValueId v, tile::ValueId as) { scalars_[plan.storage(v)] = read(as); }
  // The scalar parameters' variables, by position.
  void set_parameters(std::vector<std::string> variables);
  Amount dim(const tile::Dim& dim) const;
  Range range(tile::ValueId scalar) const;
  // Whether v counts the programs along a grid axis that has one for each of [0, extent).
  bool is_program_of(tile::ValueId v, const tile::Dim& extent) const;
  // What computes it; null for arguments of blocks.
  const tile::Op* definition(tile::ValueId v) const { return definitions_[static_cast<std::size_t>(v)]; }
  // The constant a scalar is, if it is one.
  std::optional<Index> constant(tile::ValueId scalar) const;

  // --- buffers
  const Buffer& buffer(tile::ValueId v) const { return buffers_.at(plan.storage(v)); }
  Buffer make_buffer(const std::string& name, tile::ValueId v) const;
  void add_buffer(tile::ValueId v, Buffer buffer) { buffers_[v] = std::move(buffer); }

 private:
  bool has_joined_rows(tile::ValueId v) const;
  Range range_of(const tile::Op& op) const;
  std::set<std::string> headers_{"tw_cpu/core.h"};
  std::map<tile::ValueId, ScalarText> scalars_;
  std::map<tile::ValueId, Buffer> buffers_;
  std::vector<std::string> parameters_;
  std::vector<const tile::Op*> definitions_;
  std::map<tile::ValueId, const tile::Op*> inductions_;
};

}  // namespace tilewright::cpu
