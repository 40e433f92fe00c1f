// Views and their names, and which values are what dots read.
#include "passes/emit/emit_state.h"

#include <tilewright/tile/plan.h>

#include "ops/rows.h"
#include "ops/stored_rows.h"
#include "passes/nest/dot_axes.h"
#include "passes/tiling/kept_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace tilewright::passes {

using tile::Builder;

tile::View EmitState::view(const BufferSource& source, DType dtype,
                           const std::vector<Builder::SizeArg>& extents,
                           const std::vector<tile::Dim>& strides, const std::string& name) {
  const Index bytes = source.offset * static_cast<Index>(size_bytes(dtype));
  Index align = tile::kBufferAlign;
  while (bytes % align != 0) align /= 2;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].node != source.node || sources[i].temporary != source.temporary ||
        sources[i].offset != source.offset)
      continue;
    const tile::ViewParam& p = k.param(views_[i]);
    if (p.strides == strides && p.extents.size() == extents.size() &&
        std::equal(extents.begin(), extents.end(), p.extents.begin(),
                   [](const Builder::SizeArg& a, const tile::Dim& b) { return a.dim == b; }))
      return views_[i];
  }
  sources.push_back(source);
  views_.push_back(k.view(unique_name(name), dtype, extents, {.strides = strides, .align_bytes = align}));
  return views_.back();
}

tile::View EmitState::flat_view(ir::NodeId node, DType dtype) {
  return view(source_of(node), dtype, {buffer_elements(node)}, {{1, -1}}, buffer_name(node));
}

std::string EmitState::buffer_name(ir::NodeId node) const {
  if (node < 0) return "partial";
  const ir::Node& n = graph.node(node);
  if (!n.name.empty()) return n.name;
  const std::vector<ir::NodeId>& outputs = graph.outputs();
  if (std::find(outputs.begin(), outputs.end(), node) != outputs.end()) return "out";
  const ir::Node* made_by = &n;  // what is rounded has the name of what it was before
  while (made_by->op->kind == ir::OpClass::cast && !graph.node(made_by->operands[0]).operands.empty())
    made_by = &graph.node(made_by->operands[0]);
  return fmt::format("{}_out", made_by->op->name);  // not by its number: equal kernels are equal texts
}

Index EmitState::buffer_elements(ir::NodeId node) const {
  return node >= 0 ? ops::stored_shape(graph.node(node)).size()
                   : temporaries[static_cast<std::size_t>(-1 - node)].elements;
}

// A buffer may be seen through several views; graph inputs may have any name.
std::string EmitState::unique_name(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "v" + name;
  std::string unique = name;
  for (int& n = numbers_[name]; !names_.insert(unique).second;) unique = fmt::format("{}_{}", name, ++n);
  return unique;
}

bool EmitState::is_shared_term(int expr) {
  if (shared_terms_.empty()) {
    std::vector<int> readers(nest.exprs.size());
    std::vector<bool> added(nest.exprs.size());
    for (const Expr& m : nest.exprs) {
      const bool adds = m.kind == Expr::Kind::op &&
                        (graph.node(m.node).op == &ops::kAdd || graph.node(m.node).op == &ops::kSub);
      for (int o : m.operands) {
        ++readers[static_cast<std::size_t>(o)];
        if (adds) added[static_cast<std::size_t>(o)] = true;
      }
    }
    for (const ProgramOutput& o : nest.outputs) ++readers[static_cast<std::size_t>(o.expr)];
    for (std::size_t s = 0; s < readers.size(); ++s) shared_terms_.push_back(added[s] && readers[s] > 1);
  }
  return shared_terms_[static_cast<std::size_t>(expr)];
}

bool EmitState::is_dot_operand(int expr) {
  if (!dot_operands_) {
    dot_operands_.emplace(nest.exprs.size());
    const auto mark = [&](int s) {
      if (s >= 0) (*dot_operands_)[static_cast<std::size_t>(s)] = true;
    };
    std::optional<DotAxes> axes;
    for (const Expr& m : nest.exprs) {
      if (m.kind != Expr::Kind::dot) continue;
      if (!axes) axes = dot_axes(nest);
      for (int o : m.operands) mark(o), mark(block_of_operand(nest, *axes, o));
    }
  }
  return (*dot_operands_)[static_cast<std::size_t>(expr)];
}

}  // namespace tilewright::passes
