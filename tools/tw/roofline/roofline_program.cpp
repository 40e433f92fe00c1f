// tw roofline softmax, tw roofline graph FILE: the bounds of a compiled program, from the costs of its
// kernels.
#include <fmt/format.h>

#include "pairs/pairs.h"
#include "tw/command/command_tree.h"
#include "tw/command/subject.h"
#include "tw/roofline/roofline_input.h"

namespace tilewright::tw {

namespace {

struct ProgramInput {
  RooflineOptions options;
  SubjectInput subject;
};

void ask(const ProgramInput& in) {
  const Subject subject = open_subject(in.subject);
  subject.prepare();
  const SpecialisationReport report = subject.report();
  perf::Cost total;
  for (const KernelReport& k : report.kernels) total += k.cost;
  const auto kernels = report.kernels.size();
  answer({.work = in.subject.what,
          .describe =
              [&] { return fmt::format("{} in {} kernel{}", report.key, kernels, kernels == 1 ? "" : "s"); },
          .extents = {},
          .settings = {{"kernels", static_cast<Index>(kernels)}, {"compiled_for", in.subject.device}},
          .cost = [&total] { return total; },
          .facts = {}},
         in.options);
}

// --sweep varies an extent, and a program compiled for one shape has none: the options without it.
void add_answer_options(CLI::App* sub, RooflineOptions& o) {
  sub->add_option("--hw", o.hardware,
                  "Hardware: a name of `tw roofline table`, here, here:cuda:0, or the path of a ceiling file")
      ->type_name("HARDWARE")
      ->required();
  sub->add_option("--peak", o.peak, "Use this many FLOP/s instead of the hardware's")->check(positive());
  sub->add_option("--bandwidth", o.bandwidth, "Use this many bytes/s of memory instead")->check(positive());
  add_output_options(*sub, o.output, "an object");
  sub->add_option("--plot", o.plot, "Write a plot to a .svg or .png file (needs gnuplot)")->type_name("FILE");
}

}  // namespace

void add_programs(CLI::App& roofline) {
  for (const lab::Pair& pair : lab::all_pairs()) {
    const auto same_name = [&](const CLI::App* known) { return known->get_name() == pair.name; };
    if (!roofline.get_subcommands(same_name).empty()) continue;  // a formula of that name is simpler
    if (!pair.is_program) continue;
    auto in = std::make_shared<ProgramInput>();
    CLI::App* sub = roofline.add_subcommand(pair.name, "The pair as compiled: " + pair.doc);
    sub->group("Compiled programs");
    in->subject.what = pair.name;
    add_answer_options(sub, in->options);
    sub->add_option("--set", in->subject.settings, "Change a knob of the pair")
        ->type_name(kSettingKind)
        ->take_all();
    add_device_options(*sub, in->subject);
    sub->callback([in] { ask(*in); });
  }
  auto in = std::make_shared<ProgramInput>();
  CLI::App* sub = roofline.add_subcommand("graph", "A graph text file (.tw) as compiled");
  sub->group("Compiled programs");
  add_answer_options(sub, in->options);
  sub->add_option("file", in->subject.what, "The file, or - for stdin")->type_name("FILE")->required();
  add_device_options(*sub, in->subject);
  sub->callback([in] { ask(*in); });
}

}  // namespace tilewright::tw
