// EmitState: the kernel that is being written, as all frames of its program share it: builder, views, and
// where each loop variable stands.
#pragma once

#include "passes/emit/tile_emitter.h"
#include "passes/nest/loop_nest.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tilewright::passes {

struct EmitState {
  EmitState(const ir::Graph& g, const LoopNest& p, const std::string& name, const std::vector<Temporary>& t)
      : graph(g), nest(p), temporaries(t), k(name), starts(p.extents.size()) {}
  bool any_size = false;  // TileShape's

  const ir::Graph& graph;
  const LoopNest& nest;
  const std::vector<Temporary>& temporaries;
  tile::Builder k;
  std::vector<tile::Value> starts;  // of each variable: its first value in this program or loop iteration
  // Loop bodies are counted. What was computed in one is not there behind it; what was computed between loops
  // and may change with them is not there behind the next.
  void enter_body() { open_.push_back(++bodies_); }
  void leave_body() {
    open_.pop_back();
    if (open_.empty()) between_ = ++bodies_;
  }
  bool in_loop() const { return !open_.empty(); }
  int body() const { return in_loop() ? open_.back() : between_; }  // the one that is being written
  bool is_open(int body) const {
    return in_loop() ? std::find(open_.begin(), open_.end(), body) != open_.end() : body == between_;
  }
  std::vector<BufferSource> sources;

  // Whether an expr is added to something, and also stored or used for more.
  bool is_shared_term(int expr);
  // Whether a dot reads an expr, as it stands or as a part of what an operand is made of.
  bool is_dot_operand(int expr);

  Index extent(int v) const { return nest.extents[static_cast<std::size_t>(v)]; }
  tile::Value& start(int v) { return starts[static_cast<std::size_t>(v)]; }

  // The view of a buffer with these extents and strides; one that is there already is taken again.
  tile::View view(const BufferSource& source, DType dtype, const std::vector<tile::Builder::SizeArg>& extents,
                  const std::vector<tile::Dim>& strides, const std::string& name);
  // All of a buffer as one axis.
  tile::View flat_view(ir::NodeId node, DType dtype);

  std::string buffer_name(ir::NodeId node) const;
  Index buffer_elements(ir::NodeId node) const;
  // A node, or a temporary t as -1 - t.
  static BufferSource source_of(ir::NodeId node) {
    return node >= 0 ? BufferSource{node, -1, 0} : BufferSource{-1, -1 - node, 0};
  }

 private:
  std::vector<int> open_;  // bodies around what is being written, the outermost first
  int between_ = 0, bodies_ = 0;
  std::string unique_name(std::string name);
  std::set<std::string> names_;
  std::map<std::string, int> numbers_;             // that names were given last, by what stands before them
  std::vector<tile::View> views_;                  // beside the sources
  std::vector<bool> shared_terms_;                 // beside the exprs, once it was asked for
  std::optional<std::vector<bool>> dot_operands_;  // beside the exprs, once it was asked for
};

}  // namespace tilewright::passes
