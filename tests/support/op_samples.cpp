// Sample calls by op class.
#include "support/op_samples.h"

#include "ops/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tilewright::test {

namespace {

using ir::Attrs;
using ir::OpClass;
using ir::Type;

const std::vector<Shape> kShapes = {{}, {1}, {0}, {7}, {3, 5}, {2, 0, 3}, {1, 13, 1}, {2, 3, 1, 2, 1, 3}};

// Only what the row accepts stays.
void keep_accepted(const ir::Op& op, std::vector<OpSample>& samples) {
  std::erase_if(samples, [&](const OpSample& sample) {
    try {
      op.infer(sample.operands, sample.attrs);
      return false;
    } catch (const Error&) {
      return true;
    }
  });
}

Attrs constant_attrs(DType dtype, const Shape& shape) {
  Attrs attrs{{"dtype", std::string(name(dtype))}, {"shape", shape.extents()}, {"value", Index{3}}};
  if (is_float(dtype)) attrs.set("value", 1.5);
  if (is_bool(dtype)) attrs.set("value", Index{1});
  return attrs;
}

std::vector<OpSample> pointwise(const ir::Op& op, DType dtype) {
  std::vector<OpSample> samples;
  for (const Shape& shape : kShapes) {
    std::vector<Type> operands(static_cast<std::size_t>(op.arity), Type{dtype, shape});
    if (op.name == "where") operands[0].dtype = DType::boolean;
    samples.push_back({operands, {}});
  }
  return samples;
}

std::vector<OpSample> views(const ir::Op& op, DType dtype) {
  using List = std::vector<Index>;
  const ir::Attr zero = is_float(dtype) ? ir::Attr(0.0) : ir::Attr(Index{0});
  const ir::Attr one = is_float(dtype) ? ir::Attr(1.0) : ir::Attr(Index{1});
  const auto edge = [&](const char* name, const Shape& shape) {
    return OpSample{{{dtype, shape}}, {{"edge", std::string(name)}, {"call", Index{3}}}};
  };
  if (op.name == "checkpoint") return {edge("in", {3, 4}), edge("out", {}), edge("in", {0, 2})};
  switch (op.kind) {
    case OpClass::reshape:
      return {{{{dtype, {}}}, {{"shape", List{1, 1}}}},
              {{{dtype, {3, 4}}}, {{"shape", List{2, 6}}}},
              {{{dtype, {0, 4}}}, {{"shape", List{0}}}}};
    case OpClass::transpose:
      return {{{{dtype, {}}}, {{"perm", List{}}}},
              {{{dtype, {3, 5}}}, {{"perm", List{1, 0}}}},
              {{{dtype, {2, 3, 4, 2}}}, {{"perm", List{2, 0, 3, 1}}}},
              {{{dtype, {2, 0}}}, {{"perm", List{1, 0}}}}};
    case OpClass::expand:
      return {{{{dtype, {1}}}, {{"shape", List{7}}}},
              {{{dtype, {3, 1}}}, {{"shape", List{3, 5}}}},
              {{{dtype, {1, 3, 1, 2}}}, {{"shape", List{4, 3, 5, 2}}}},
              {{{dtype, {1, 2}}}, {{"shape", List{0, 2}}}}};
    case OpClass::slice:
      return {{{{dtype, {7}}}, {{"start", List{1}}, {"step", List{2}}, {"shape", List{3}}}},
              {{{dtype, {7}}}, {{"start", List{6}}, {"step", List{-3}}, {"shape", List{3}}}},
              {{{dtype, {4, 5}}}, {{"start", List{1, 4}}, {"step", List{1, -1}}, {"shape", List{2, 5}}}},
              {{{dtype, {4}}}, {{"start", List{0}}, {"step", List{1}}, {"shape", List{0}}}}};
    case OpClass::pad:
      return {{{{dtype, {3}}}, {{"low", List{2}}, {"high", List{0}}, {"value", one}}},
              {{{dtype, {2, 3}}}, {{"low", List{0, 1}}, {"high", List{2, 1}}, {"value", zero}}},
              {{{dtype, {0}}}, {{"low", List{1}}, {"high", List{1}}, {"value", one}}}};
    case OpClass::concat:
      return {{{{dtype, {3}}}, {{"axis", Index{0}}}},
              {{{dtype, {2, 3}}, {dtype, {2, 0}}, {dtype, {2, 2}}}, {{"axis", Index{1}}}},
              {{{dtype, {1, 3}}, {dtype, {4, 3}}}, {{"axis", Index{0}}}}};
    default:
      return {};
  }
}

std::vector<OpSample> reductions(const ir::Op& op, DType dtype) {
  std::vector<OpSample> samples;
  const std::vector<std::vector<Index>> axes = {{}, {0}, {1}, {2}, {0, 1}, {0, 2}, {1, 3, 4}, {0, 1, 2}};
  for (const Shape& shape : kShapes)
    for (const std::vector<Index>& reduced : axes) {
      if (op.kind == OpClass::scan) {
        if (reduced.size() == 1) samples.push_back({{{dtype, shape}}, {{"axis", reduced[0]}}});
      } else {
        samples.push_back({{{dtype, shape}}, {{"axes", reduced}}});
      }
    }
  return samples;
}

std::vector<OpSample> indexing(const ir::Op& op, DType dtype) {
  using List = std::vector<Index>;
  const Type index{DType::i64, {4}};
  switch (op.kind) {
    case OpClass::take:
      return {{{{dtype, {5}}, index}, {{"axis", Index{0}}}, 5},
              {{{dtype, {3, 5, 2}}, {DType::i32, {2, 3}}}, {{"axis", Index{1}}}, 5},
              {{{dtype, {3, 2}}, {DType::i64, {}}}, {{"axis", Index{0}}}, 3},
              {{{dtype, {3, 2}}, {DType::i64, {0}}}, {{"axis", Index{1}}}, 2}};
    case OpClass::take_along:
      return {{{{dtype, {5}}, index}, {{"axis", Index{0}}}, 5},
              {{{dtype, {2, 5, 3}}, {DType::i32, {2, 4, 3}}}, {{"axis", Index{1}}}, 5}};
    case OpClass::scatter_add:
      return {
          {{index, {dtype, {4}}}, {{"axis", Index{0}}, {"shape", List{5}}}, 5},
          {{{DType::i32, {2, 3}}, {dtype, {3, 2, 3, 2}}}, {{"axis", Index{1}}, {"shape", List{3, 5, 2}}}, 5},
          {{{DType::i64, {0}}, {dtype, {0, 2}}}, {{"axis", Index{0}}, {"shape", List{3, 2}}}, 3}};
    case OpClass::scatter_add_along:
      return {
          {{index, {dtype, {4}}}, {{"axis", Index{0}}, {"shape", List{5}}}, 5},
          {{{DType::i32, {2, 4, 3}}, {dtype, {2, 4, 3}}}, {{"axis", Index{1}}, {"shape", List{2, 5, 3}}}, 5}};
    // Starts from -1 to 4: where few fit, most are brought inside.
    case OpClass::update_slice:
      return {{{{dtype, {5}}, {dtype, {2}}, {DType::i64, {1}}}, {}, 5},
              {{{dtype, {3, 5, 4}}, {dtype, {3, 2, 3}}, {DType::i32, {3}}}, {}, 5},
              {{{dtype, {3, 5, 2}}, {dtype, {1, 1, 2}}, {DType::i64, {3}}}, {}, 5},
              {{{dtype, {2, 3}}, {dtype, {2, 0}}, {DType::i64, {2}}}, {}, 3}};
    case OpClass::dynamic_slice:
      return {{{{dtype, {5}}, {DType::i64, {1}}}, {{"shape", List{2}}}, 5},
              {{{dtype, {3, 5, 4}}, {DType::i32, {3}}}, {{"shape", List{3, 2, 3}}}, 5},
              {{{dtype, {3, 5, 2}}, {DType::i64, {3}}}, {{"shape", List{1, 1, 2}}}, 5},
              {{{dtype, {2, 3}}, {DType::i64, {2}}}, {{"shape", List{2, 0}}}, 3}};
    default:
      return {};
  }
}

std::vector<OpSample> sources(const ir::Op& op, DType dtype) {
  std::vector<OpSample> samples;
  for (const Shape& shape : kShapes) {
    if (op.kind == OpClass::constant) {
      samples.push_back({{}, constant_attrs(dtype, shape)});
    } else if (op.kind == OpClass::iota && dtype == DType::i64) {
      for (Index axis = 0; axis < shape.rank(); ++axis)
        samples.push_back({{}, {{"axis", axis}, {"shape", shape.extents()}}});
    } else if (op.kind == OpClass::random && dtype == DType::i64) {
      samples.push_back({{{DType::i64, {}}}, {{"offset", Index{5}}, {"shape", shape.extents()}}});
    }
  }
  return samples;
}

std::vector<OpSample> all_samples(const ir::Op& op, DType dtype) {
  switch (op.kind) {
    case OpClass::input:
      return {};
    case OpClass::constant:
    case OpClass::iota:
    case OpClass::random:
      return sources(op, dtype);
    case OpClass::pointwise:
      return pointwise(op, dtype);
    case OpClass::cast: {
      std::vector<OpSample> samples;
      for (DType to : kAllDTypes) samples.push_back({{{dtype, {7}}}, {{"dtype", std::string(name(to))}}});
      return samples;
    }
    case OpClass::reduce:
    case OpClass::scan:
      return reductions(op, dtype);
    case OpClass::argsort: {
      std::vector<OpSample> samples;
      for (const Shape& shape : {Shape{1}, Shape{7}, Shape{3, 33}, Shape{5, 2, 3}, Shape{2, 0}, Shape{0, 2}})
        for (Index axis = 0; axis < shape.rank(); ++axis)
          for (const char* order : {"ascending", "descending"})
            samples.push_back({{{dtype, shape}}, {{"axis", axis}, {"order", std::string(order)}}});
      return samples;
    }
    case OpClass::matmul:
      return {{{{dtype, {3, 5}}, {dtype, {5, 2}}}, {}},
              {{{dtype, {1, 1}}, {dtype, {1, 1}}}, {}},
              {{{dtype, {2, 3, 4}}, {dtype, {2, 4, 3}}}, {}},
              {{{dtype, {3, 0}}, {dtype, {0, 2}}}, {}}};
    default: {
      std::vector<OpSample> samples = views(op, dtype);
      for (OpSample& sample : indexing(op, dtype)) samples.push_back(std::move(sample));
      return samples;
    }
  }
}

}  // namespace

std::vector<OpSample> op_samples(const ir::Op& op, DType dtype) {
  std::vector<OpSample> samples = all_samples(op, dtype);
  keep_accepted(op, samples);
  return samples;
}

std::vector<ir::HostTensor> sample_operands(const ir::Op& op, const OpSample& sample, Random& random,
                                            Values values) {
  std::vector<ir::HostTensor> operands;
  const bool index_first = op.kind == OpClass::scatter_add || op.kind == OpClass::scatter_add_along;
  for (std::size_t i = 0; i < sample.operands.size(); ++i) {
    const bool placed = op.kind == OpClass::update_slice || op.kind == OpClass::dynamic_slice;
    const bool is_index = sample.index_extent > 0 && (placed ? i + 1 == sample.operands.size()  // the start
                                                             : (i == 0) == index_first);
    operands.push_back(is_index ? random_indices(sample.operands[i], -1, sample.index_extent, random)
                                : random_host(sample.operands[i], op.domain, random, values));
  }
  // One factor is large and the other ±1: else two products that overflow together may meet a third that ends
  // below.
  if (op.kind == OpClass::matmul && values == Values::large)
    for (double& v : operands[static_cast<std::size_t>(random.below(2))].f) v = std::copysign(1.0, v);
  return operands;
}

namespace {

Shape placed(const Shape& shape, Placement placement) {
  std::vector<Index> extents = shape.extents();
  if (placement == Placement::transposed) std::reverse(extents.begin(), extents.end());
  if (placement == Placement::sliced)
    for (Index& extent : extents) extent = 2 * extent + 1;
  return Shape(extents);
}

// The operand of shape `shape` in an input of shape placed(shape, placement).
ir::Value view_of(ir::Value input, const Shape& shape, Placement placement) {
  const auto rank = static_cast<std::size_t>(shape.rank());
  if (placement == Placement::whole || rank == 0) return input;
  if (placement == Placement::transposed) {
    std::vector<Index> perm;
    for (std::size_t axis = rank; axis > 0; --axis) perm.push_back(static_cast<Index>(axis) - 1);
    return ops::transpose(input, perm);
  }
  std::vector<Index> start;
  for (Index extent : shape) start.push_back(extent > 0 ? 2 * extent - 1 : 0);
  return ops::slice(input, start, std::vector<Index>(rank, -2), shape);
}

}  // namespace

OpSample placed(const OpSample& sample, Placement placement) {
  OpSample out = sample;
  for (Type& type : out.operands) type.shape = placed(type.shape, placement);
  return out;
}

ir::Graph sample_graph(const ir::Op& op, const OpSample& sample, Placement placement) {
  ir::Graph graph("sample");
  std::vector<ir::NodeId> operands;
  for (const Type& type : placed(sample, placement).operands)
    operands.push_back(graph.add_input(fmt::format("x{}", operands.size()), type));
  for (std::size_t i = 0; i < operands.size(); ++i)
    operands[i] = view_of({&graph, operands[i]}, sample.operands[i].shape, placement).id;
  graph.set_outputs({graph.add(op, operands, sample.attrs)});
  return graph;
}

}  // namespace tilewright::test
