// What the subcommands of `tw roofline` have in common: their options and how element types are chosen.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tw/command/arguments.h"
#include "tw/command/number_checks.h"
#include "tw/roofline/roofline_question.h"

namespace tilewright::tw {

// What a subcommand reads; it lives as long as the callback that uses it.
template <class Work>
struct Input {
  RooflineOptions options;
  Work work;
  std::string dtype, weights, activations, math;  // empty: not given
};

inline void add_common(CLI::App* sub, RooflineOptions& o) {
  sub->add_option("--hw", o.hardware,
                  "Hardware: a name of `tw roofline table`, here, or the path of a ceiling file")
      ->type_name("HARDWARE")
      ->required();
  sub->add_option("--peak", o.peak, "Use this many FLOP/s instead of the hardware's")->check(positive());
  sub->add_option("--bandwidth", o.bandwidth, "Use this many bytes/s of memory instead")->check(positive());
  add_output_options(*sub, o.output, "an object");
  auto* sweep = sub->add_option("--sweep", o.sweep, "Vary an extent: b=1:512, b=1:512:8 or b=1:65536:x2")
                    ->each([sub](const std::string& text) {  // which then needs no value of its own
                      CLI::Option* swept = sub->get_option_no_throw("--" + text.substr(0, text.find('=')));
                      if (swept != nullptr) swept->required(false);
                    });
  sub->add_option("--also", o.also, "A further curve of the sweep with these extents: d=1024,f=1024")
      ->needs(sweep);
  sub->add_option("--plot", o.plot, "Write a plot to a .svg or .png file (needs gnuplot)")->type_name("FILE");
}

template <class Work>
std::shared_ptr<Input<Work>> add_workload(CLI::App& roofline, const std::string& name,
                                          const std::string& about, CLI::App*& sub) {
  auto input = std::make_shared<Input<Work>>();
  sub = roofline.add_subcommand(name, about);
  add_common(sub, input->options);
  return input;
}

inline CLI::Option* add_extent(CLI::App* sub, const std::string& name, Index& value,
                               const std::string& about) {
  return sub->add_option("--" + name, value, about)->check(positive());
}

inline DType dtype_or(const std::string& text, DType otherwise) {
  return text.empty() ? otherwise : dtype_argument(text);
}

// The three types of a product: --dtype sets all, and the math follows the activations unless it is given.
template <class Work>
void set_types(Input<Work>& in) {
  Work& w = in.work;
  w.weights = dtype_or(in.weights, dtype_or(in.dtype, w.weights));
  w.activations = dtype_or(in.activations, dtype_or(in.dtype, w.activations));
  w.math = dtype_or(in.math, w.activations);
}

template <class Work>
void add_types(CLI::App* sub, Input<Work>& in) {
  sub->add_option("--dtype", in.dtype, "Element type of everything not given below")->type_name("DTYPE");
  sub->add_option("--weights", in.weights, "Element type of the second operand as stored")
      ->type_name("DTYPE");
  sub->add_option("--acts", in.activations, "Element type of the first operand and the result as stored")
      ->type_name("DTYPE");
  sub->add_option("--math", in.math, "Element type that is multiplied (default: that of --acts)")
      ->type_name("DTYPE");
}

template <class Work>
std::vector<std::pair<std::string, Setting>> type_settings(const Work& w) {
  return {{"weights", std::string(name(w.weights))},
          {"acts", std::string(name(w.activations))},
          {"math", std::string(name(w.math))}};
}

void add_tiled(CLI::App& roofline);
void add_attention(CLI::App& roofline);
void add_programs(CLI::App& roofline);  // each pair by its name, and graph files

}  // namespace tilewright::tw
