// Drawing within limits, recording, and the instance with its references.
#include "sweep/workload.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/op.h"
#include "pairs/lab_device.h"
#include "pairs/truth.h"

namespace tilewright::sweep {

namespace {

// The product of a matmul's terms is where the work is; what else an op does is little beside it.
void count_products(const ir::Graph& graph, const ir::Node& node, DType dtype, Traced& traced) {
  const auto extent_of = [&](int operand, int from_end) {
    const Shape& shape = graph.type(node.operands[static_cast<std::size_t>(operand)]).shape;
    return shape[shape.rank() - from_end];
  };
  if (node.op->name == "matmul") {
    const Index k = extent_of(0, 1);
    traced.cost.matrix[dtype] += 2.0 * static_cast<double>(k) * static_cast<double>(node.type.shape.size());
    traced.reduction = std::max(traced.reduction, k);
  } else if (node.op->kind == ir::OpClass::reduce || node.op->kind == ir::OpClass::scan) {
    const Index of = graph.type(node.operands[0]).shape.size();
    const Index terms = node.op->kind == ir::OpClass::scan
                            ? graph.type(node.operands[0]).shape[static_cast<int>(node.attrs.integer("axis"))]
                            : of / std::max(Index{1}, node.type.shape.size());
    traced.reduction = std::max(traced.reduction, terms);
  }
}

double bytes_of(DType dtype, double elements) { return elements * static_cast<double>(size_bytes(dtype)); }

Traced traced(const Drawn& drawn, Context& context) {
  std::vector<ir::Type> types;
  types.reserve(drawn.program.inputs.size());
  for (const programs::Input& input : drawn.program.inputs) types.push_back({input.dtype, input.shape});
  const programs::Literals none;
  Traced out{.graph = lab::recorded(programs::function_of(drawn.program, none), types, context)};
  for (const ir::NodeId node : out.graph.outputs()) out.outputs.push_back(out.graph.type(node));
  const std::vector<bool> live = out.graph.live();
  for (int n = 0; n < out.graph.size(); ++n)
    if (live[static_cast<std::size_t>(n)]) count_products(out.graph, out.graph.node(n), drawn.dtype, out);
  out.cost.matrix[drawn.dtype] = std::max(0.0, out.cost.matrix[drawn.dtype] - drawn.unseen_flops);
  for (std::size_t i = 0; i < types.size(); ++i) {
    auto elements = static_cast<double>(types[i].shape.size());
    for (const auto& [place, read] : drawn.read_elements)
      if (place == i) elements = std::min(elements, read);
    out.cost.bytes_read += bytes_of(types[i].dtype, elements);
  }
  for (const ir::Type& type : out.outputs)
    out.cost.bytes_written += bytes_of(type.dtype, static_cast<double>(type.shape.size()));
  return out;
}

const Family& drawn_family(std::uint64_t seed) {
  Draw draw("family", seed);
  std::vector<std::pair<const Family*, double>> choices;
  for (const Family& family : all_families()) choices.emplace_back(&family, family.weight);
  return *draw.weighted(choices);
}

}  // namespace

DrawnWork draw_work(std::uint64_t seed, const std::string& name, const Limits& limits, Context& context) {
  const Family& family = name.empty() ? drawn_family(seed) : family_named(name);
  Draw draw(std::string(family.name) + " aim", seed);
  // Drawn before the limits have their say, so that other types and sizes leave the structure as it is.
  const double part = draw.unit();
  Aim aim{.dtype = draw.one_of(limits.dtypes),
          .bytes = limits.least_bytes * std::pow(limits.most_bytes / limits.least_bytes, part)};
  constexpr int kTries = 40;
  for (int i = 0;; ++i) {
    Draft draft(family.name, seed, aim);
    family.draft(draft);
    DrawnWork work{.drawn = draft.finish()};
    work.drawn.arguments = limits.arguments;
    work.traced = traced(work.drawn, context);
    const double flops = work.traced.cost.matrix.total(), bytes = work.traced.cost.bytes();
    // Rounding of tiny extents may exceed the least sizes; these do no harm.
    if ((flops <= limits.most_flops && bytes <= 1.25 * limits.most_bytes) || i == kTries) return work;
    aim.bytes *= 0.6;
  }
}

namespace {

lab::InputSpec input_spec(const programs::Input& input, const Holds& holds) {
  using Kind = Holds::Kind;
  if (holds.kind == Kind::integers) {
    const Index least = holds.least;
    return {input.name, input.dtype, input.shape,
            [shape = input.shape, least, count = holds.past - holds.least](Context& context) {
              Tensor t = context.randint(shape, count);
              return least == 0 ? t : t + least;
            }};
  }
  lab::InputSpec spec =
      lab::normal_input(input.name, input.shape, input.dtype, {holds.mean, holds.deviation});
  if (holds.kind == Kind::positive) {
    const auto normal = spec.make;
    spec.make = [normal, dtype = input.dtype](Context& context) {
      return cast(square(cast(normal(context), DType::f32)) + 0.01, dtype);
    };
  }
  return spec;
}

std::vector<lab::OutputSpec> output_specs(const DrawnWork& work) {
  const programs::Program& program = work.drawn.program;
  const bool gradient = program.wanted == programs::Program::Wanted::gradient;
  std::vector<lab::OutputSpec> specs;
  for (std::size_t i = 0; i < work.traced.outputs.size(); ++i) {
    const ir::Type& type = work.traced.outputs[i];
    std::string name = i < program.results.size() ? program.results[i] : "";
    if (gradient && i > 0) name = "d" + program.inputs[static_cast<std::size_t>(program.wrt[i - 1])].name;
    lab::ToleranceRule rule{.storage = type.dtype,
                            .reduction = work.traced.reduction,
                            .operations = 4 * static_cast<int>(program.statements.size())};
    if (!is_float(type.dtype)) rule.kind = lab::ToleranceRule::Kind::exact;
    specs.push_back({.name = name, .dtype = type.dtype, .shape = type.shape, .rule = rule});
  }
  return specs;
}

std::string short_shapes(const Drawn& drawn) {
  std::string text = fmt::format("#{}", drawn.seed);
  for (const programs::Input& input : drawn.program.inputs) {
    if (text.size() > 40) return text + " ..";
    text += fmt::format(" {}", lab::shape_text(input.shape));
  }
  return text;
}

}  // namespace

Result<SweepInstance> make_instance(const DrawnWork& work, lab::LabDevice& device) {
  auto program = std::make_shared<const programs::Program>(work.drawn.program);
  lab::TensorWorkload w{.target = work.drawn.family,
                        .shape = short_shapes(work.drawn),
                        .dtype = std::string(name(work.drawn.dtype)),
                        .cost = work.traced.cost};
  for (std::size_t i = 0; i < program->inputs.size(); ++i)
    w.inputs.push_back(input_spec(program->inputs[i], work.drawn.holds[i]));
  w.outputs = output_specs(work);
  w.function = [program](const std::vector<Tensor>& inputs) {
    static const programs::Literals kNone;
    return programs::function_of(*program, kNone)(inputs);
  };
  w.op_by_op = false;
  w.peer_source = work.drawn.torch;
  w.truth_storage = work.drawn.dtype;
  auto judgement = std::make_shared<Judgement>();
  w.peer_truth = [outputs = w.outputs, judgement](Result<lab::Spread> truth) {
    if (!truth) {
      *judgement = {.by = "nobody", .why_not = truth.error().message};
      return lab::unknown(outputs);
    }
    judgement->by = "torch in float64";
    return lab::references(std::move(*truth), outputs);
  };
  if (lab::oracle_can(work.traced.graph))
    w.reference = [graph = work.traced.graph, outputs = w.outputs, judgement](const lab::HostArrays& inputs,
                                                                              ThreadPool&) {
      judgement->by = "oracle";
      return lab::references(lab::by_oracle(graph, inputs), outputs);
    };
  auto instance = lab::make_instance(std::move(w), device);
  if (!instance) return instance.error();
  return SweepInstance{std::move(*instance), judgement};
}

}  // namespace tilewright::sweep
