// A machine runs one program of the grid after another.
#pragma once

#include "backends/reference/bounds.h"
#include "backends/reference/shadow.h"

namespace tilewright::reference {

// What all programs of a launch share.
struct Launch {
  const tile::Kernel& kernel;
  const std::vector<std::int64_t>& scalars;
  std::vector<BoundView> views;
  std::vector<Index> grid;
  Shadow* shadow = nullptr;         // checked runs
  BoundsTracker* bounds = nullptr;  // runs with error bounds
};

class Machine {
 public:
  explicit Machine(Launch& launch)
      : launch_(launch), kernel_(launch.kernel), values_(launch.kernel.values.size()) {}
  // `program`: linear, the first grid axis fastest.
  void run(Index program);

 private:
  void run_block(const tile::Block& block);
  void run_op(const tile::Op& op);
  void run_loop(const tile::Op& op);
  void run_branch(const tile::Op& op);
  void run_load(const tile::Op& op);
  void run_store(const tile::Op& op);
  void run_indexed(const tile::Op& op);
  void define_scalar(const tile::Op& op);
  void set_index(tile::ValueId id, std::int64_t value);
  void copy(const std::vector<tile::ValueId>& from, std::size_t skip, const std::vector<tile::ValueId>& to,
            std::size_t to_skip);
  void mark_undecided(const std::vector<tile::ValueId>& results);

  // A block that is not bounded lies in its view: that is promised, and cheap to look at in every run.
  void check_promise(const tile::Op& op, const BoundView& view);
  void check_block(const tile::Op& op, const BlockWalk& walk);
  void check_indexed(const tile::Op& op, const BoundView& view);
  [[noreturn]] void trap(const tile::Op& op, const std::string& message) const;

  Launch& launch_;
  const tile::Kernel& kernel_;
  Values values_;
  Index program_ = 0;
  Index coordinates_[tile::kMaxGridAxes] = {};
};

}  // namespace tilewright::reference
