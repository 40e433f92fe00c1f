// Pairs and graph files as compiled functions.
#include "tw/command/subject.h"

#include <fmt/format.h>
#include <tilewright/base/error.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "base/plain_message.h"
#include "base/read_file.h"
#include "ir/op.h"
#include "ir/text.h"
#include "ops/ops.h"
#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"
#include "tensor/explain.h"
#include "tw/command/arguments.h"
#include "tw/command/byte_size.h"
#include "tw/command/command_tree.h"

namespace tilewright::tw {

namespace {

bool is_file(const std::string& what) {
  return what == "-" || what.find('/') != std::string::npos || what.find('.') != std::string::npos ||
         std::filesystem::is_regular_file(what);
}

bool has_several_values(const std::vector<std::string>& settings) {
  return std::any_of(settings.begin(), settings.end(), [](const std::string& s) {
    return s.find(',') != std::string::npos || s.find("..") != std::string::npos;
  });
}

// The first combination of a pair's knobs, settings applied; the others too where settings ask for several.
Subject open_pair(const SubjectInput& input, lab::OpenDevice open) {
  for (const auto& [option, value] :
       {std::pair("--memory", &input.memory), std::pair("--precision", &input.precision)})
    if (!value->empty())
      throw Error(fmt::format("{} is for graph files; {} is a pair, which says itself how it is compiled",
                              option, input.what));
  const std::vector<lab::Pair> pairs = lab::all_pairs();
  const std::string names[] = {input.what};
  std::vector<lab::Job> jobs = lab::select_jobs(pairs, {}, names, input.settings, open.device.kind);
  if (!has_several_values(input.settings)) jobs.resize(1);
  std::vector<std::shared_ptr<lab::PairInstance>> made;
  std::string title = input.what;
  for (const lab::Job& job : jobs) {
    auto instance = job.pair->make(job.knobs, open.device);
    if (!instance) throw Error(fmt::format("{}: {}", input.what, instance.error().message));
    if (!instance->compiled) throw Error(input.what + " is no compiled program: `tw bench run` measures it");
    made.push_back(std::make_shared<lab::PairInstance>(std::move(*instance)));
    title += fmt::format("{} {}", made.size() > 1 ? "," : "", job.knobs.to_string());
  }
  const lab::CompiledAccess& first = *made[0]->compiled;
  Subject subject{std::move(open), {}, title, input.autotune ? first.tuned : first.function, first.inputs};
  for (std::size_t i = 1; i < made.size(); ++i) subject.more_inputs.push_back(made[i]->compiled->inputs);
  subject.keep.assign(made.begin(), made.end());
  return subject;
}

// Indices must lie inside what they pick from: the smallest extent that any pick of the graph walks.
Index index_limit(const ir::Graph& graph) {
  Index least = 100;
  for (const ir::Node& node : graph.nodes()) {
    using enum ir::OpClass;
    const ir::OpClass kind = node.op->kind;
    if (kind == take || kind == take_along)
      least =
          std::min(least, graph.type(node.operands[0]).shape[static_cast<int>(node.attrs.integer("axis"))]);
    if (kind == scatter_add || kind == scatter_add_along)
      least = std::min(least, node.type.shape[static_cast<int>(node.attrs.integer("axis"))]);
  }
  return std::max<Index>(least, 1);
}

Tensor random_input(Context& context, const ir::Type& type, Index limit) {
  if (type.dtype == DType::boolean) return context.randint(type.shape, 2, type.dtype);
  return is_float(type.dtype) ? context.randn(type.shape, type.dtype)
                              : context.randint(type.shape, limit, type.dtype);
}

// The line of a graph's text that declares an input: `%x: …`, or `%0 "x": …`.
Index line_of_input(const std::string& text, const std::string& name) {
  const auto at = std::min(text.find("%" + name + ":"), text.find("\"" + name + "\":"));
  return 1 + std::count(text.begin(), at < text.size() ? text.begin() + static_cast<Index>(at) : text.begin(),
                        '\n');
}

Subject open_graph(const SubjectInput& input, lab::OpenDevice open) {
  if (!input.settings.empty()) throw Error("--set changes the knobs of a pair; a graph file has none");
  const std::string text = read_text(input.what);
  const std::string name = input.what == "-" ? "stdin" : input.what;
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw Error(name + ": is empty; a graph begins with `graph @name(%x: f32[4]) -> …`");
  auto graph = ir::parse(text, ops::all_ops());
  if (!graph) throw Error(fmt::format("{}: {}", name, graph.error().message));
  if (graph->inputs().empty()) throw Error(name + ": a graph without inputs has nothing to be called with");
  const Index limit = index_limit(*graph);
  std::vector<Tensor> inputs;
  for (const ir::NodeId id : graph->inputs()) {
    try {
      inputs.push_back(random_input(*open.context, graph->type(id), limit));
    } catch (const Error& error) {
      const std::string& input_name = graph->node(id).name;
      // The function that draws it is ours.
      detail::rename_error(fmt::format("{}:{}: input {}", name, line_of_input(text, input_name), input_name),
                           Error(without_place(error)));
    }
  }
  return {
      std::move(open),
      {},
      name,
      CompiledList(detail::graph_function(std::move(*graph)),
                   CompileOptions{.max_autotune = input.autotune,
                                  .precision = input.precision.empty() ? Precision::f32
                                                                       : precision_argument(input.precision),
                                  .memory_budget = input.memory.empty() ? 0 : bytes_of_text(input.memory)}),
      std::move(inputs)};
}

}  // namespace

void add_device_options(CLI::App& sub, SubjectInput& input) {
  sub.add_option("--device", input.device, "cpu, cuda:N or reference")->type_name("DEVICE");
  sub.add_option("--cache", input.cache, "Folder of compiled kernels; '' compiles everything anew")
      ->type_name("FOLDER");
  sub.add_option("--threads", input.threads, "CPU threads (default: every allowed core)");
}

void add_subject_options(CLI::App& sub, SubjectInput& input) {
  sub.add_option("what", input.what,
                 "A pair of `tw bench list`, a graph text file (.tw), or - for one on stdin")
      ->type_name("PAIR")
      ->required();
  sub.add_option("--set", input.settings, "Change a knob of the pair")->type_name(kSettingKind)->take_all();
  add_device_options(sub, input);
}

std::string read_text(const std::string& path) {
  if (path == "-") {
    std::ostringstream text;
    text << std::cin.rdbuf();
    return text.str();
  }
  auto text = read_file(path);
  if (!text) throw Error(text.error().message);
  return std::move(*text);
}

Subject open_subject(const SubjectInput& input) {
  lab::OpenDevice open = lab::open_lab_device(
      {.device = input.device, .cache_directory = input.cache, .threads = input.threads});
  return is_file(input.what) ? open_graph(input, std::move(open)) : open_pair(input, std::move(open));
}

std::string subject_arguments(const SubjectInput& input) {
  std::string text = input.what;
  for (const std::string& setting : input.settings) text += " --set " + setting;
  return text + " --device " + input.device;
}

}  // namespace tilewright::tw
