// tw kernel: the kernels of a program, to look at, to edit, and to run edited.
#include <fmt/format.h>
#include <tilewright/perf/cost.h>
#include <tilewright/tile/text.h>

#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>

#include "base/safe_file.h"
#include "tw/command/command_tree.h"
#include "tw/command/commands.h"
#include "tw/command/number_checks.h"
#include "tw/command/shell_word.h"
#include "tw/kernel/kernel_input.h"

namespace tilewright::tw {

namespace {

using Json = nlohmann::ordered_json;

std::string list_text(const KernelBench& bench) {
  std::string text = fmt::format("{} on {}\n", bench.title(), bench.device().name());
  for (std::size_t i = 0; i < bench.size(); ++i) {
    text += fmt::format("{:>3}  {}\n", i, bench.kernel(i).name);
    if (i < bench.reports().size()) {
      const KernelReport& k = bench.reports()[i];
      text += fmt::format("     {}\n     {}B, {}FLOP, floor {:.2f} us ({})\n", k.ops,
                          perf::with_prefix(k.bytes), perf::with_prefix(k.flops), k.floor_us, k.bound);
    }
    text += fmt::format("     schedule {}\n", to_string(bench.loaded(i).source.schedule));
  }
  return text;
}

Json list_json(const KernelBench& bench) {
  Json kernels = Json::array();
  for (std::size_t i = 0; i < bench.size(); ++i) {
    Json one = {{"kernel", i}, {"name", bench.kernel(i).name}};
    if (i < bench.reports().size()) {
      const KernelReport& k = bench.reports()[i];
      one.update({{"ops", k.ops},
                  {"bytes", k.bytes},
                  {"flops", k.flops},
                  {"floor_us", k.floor_us},
                  {"bound", k.bound}});
    }
    one["schedule"] = to_string(bench.loaded(i).source.schedule);
    kernels.push_back(std::move(one));
  }
  return {{"of", bench.title()}, {"device", bench.device().name()}, {"kernels", std::move(kernels)}};
}

void list(const KernelInput& input) {
  const KernelBench bench = KernelBench::open(input);
  write_results(input.output, input.output.as_json() ? list_json(bench).dump(2) + "\n" : list_text(bench));
}

// The kernel's text with the lines that `tw kernel run` reads.
std::string editable(const KernelBench& bench, std::size_t kernel, const KernelInput& input) {
  if (input.tile) return file_head(input, kernel, nullptr) + tile::print(bench.kernel(kernel));
  const backends::Source& source = bench.loaded(kernel).source;
  return file_head(input, kernel, &source) + source.text;
}

Json show_json(const KernelBench& bench, std::size_t kernel, const KernelInput& input) {
  const backends::Source& source = bench.loaded(kernel).source;
  Json out = {{"kernel", kernel}, {"name", bench.kernel(kernel).name}};
  if (input.tile) {
    out["tile"] = tile::print(bench.kernel(kernel));
    return out;
  }
  out["schedule"] = to_string(source.schedule);
  out["launch"] = {{"threads", source.launch.threads},
                   {"cluster", source.launch.cluster},
                   {"shared_bytes", source.launch.shared_bytes},
                   {"programs_per_block", source.launch.programs_per_block}};
  out["source"] = source.text;
  return out;
}

void show(const KernelInput& input) {
  const KernelBench bench = KernelBench::open(input);
  const std::size_t kernel = bench.find(input.kernel);
  write_results(input.output, input.output.as_json() ? show_json(bench, kernel, input).dump(2) + "\n"
                                                     : editable(bench, kernel, input));
}

void edit(const KernelInput& input) {
  if (input.subject.what == "-")
    throw Error("an edit must know its program again later: give a file instead of -");
  const char* editor = std::getenv("EDITOR");
  const bool open_editor = input.output.path.empty();
  if (open_editor && (editor == nullptr || *editor == 0))
    throw Error("EDITOR is not set: set it, or write the kernel to a file with -o FILE");
  const KernelBench bench = KernelBench::open(input);
  const std::size_t kernel = bench.find(input.kernel);
  const std::string ending(input.tile ? ".tile" : tile::source_ending(bench.device().target().kind));
  const std::string path = open_editor ? bench.kernel(kernel).name + ending : input.output.path;
  if (input.tile != is_tile_path(path)) throw Error("-o: a file of tile IR ends in .tile, and no other does");
  // An edit that exists is not written over: it is opened again.
  const bool exists = open_editor && std::filesystem::exists(path);
  if (!exists)
    if (const Status written = write_safely(path, editable(bench, kernel, input)); !written)
      throw std::runtime_error(written.error().message);
  if (open_editor) {
    const std::string command = std::string(editor) + " " + shell_word(path);
    if (std::system(command.c_str()) != 0) throw std::runtime_error("the editor failed: " + command);
  }
  if (!input.output.quiet)
    fmt::print(stderr, "{}{}\nrun it: tw kernel run {}\n", path, exists ? " (was there already)" : "", path);
}

}  // namespace

void add_kernel(CLI::App& app) {
  CLI::App* kernel =
      app.add_subcommand("kernel", "The kernels of a program: list, show, edit, and run edited ones");
  kernel->require_subcommand(1);
  const auto add = [kernel](const char* name, const char* about, void (*command)(const KernelInput&)) {
    auto in = std::make_shared<KernelInput>();
    CLI::App* sub = kernel->add_subcommand(name, about);
    add_subject_options(*sub, in->subject);
    sub->add_option("--scalar", in->scalars, "Argument of a kernel in a .tile file: name=value")->take_all();
    sub->callback([in, command] { command(*in); });
    return std::pair(sub, in);
  };
  auto [listed, list_input] = add("list", "The kernels with their ops, cost and schedule", list);
  add_output_options(*listed, list_input->output, "an object");
  auto [shown, show_input] = add("show", "The source of a kernel, with its schedule and launch", show);
  auto [edited, edit_input] = add("edit", "Open a kernel's source in $EDITOR, or write it to a file", edit);
  add_output_options(*shown, show_input->output, "an object");
  add_output_file(*edited, edit_input->output, "Write the kernel to this file instead of opening an editor");
  add_quiet(*edited, edit_input->output);
  for (auto& [sub, in] : {std::pair(shown, show_input), std::pair(edited, edit_input)}) {
    sub->add_option("--kernel", in->kernel, "Number or name of the kernel (default: the first)");
    sub->add_flag("--tile", in->tile, "Its tile IR instead of what was printed from it");
  }
  auto in = std::make_shared<KernelInput>();
  CLI::App* run = kernel->add_subcommand(
      "run",
      "Compile an edited kernel, prove it against the interpreter, time it interleaved with the original");
  run->add_option("file", in->file, "Written by `tw kernel edit`, or a .tile file of your own")
      ->type_name("FILE")
      ->required();
  run->add_option("--of", in->subject.what,
                  "The pair or graph file it is an edit of (default: what the file says)")
      ->type_name("PAIR");
  run->add_option("--set", in->subject.settings, "With --of: a knob of the pair")
      ->type_name(kSettingKind)
      ->take_all();
  run->add_option("--kernel", in->kernel, "With --of: number or name of the kernel");
  run->add_option("--scalar", in->scalars, "Argument of a kernel of your own: name=value")->take_all();
  run->add_option("--budget", in->budget_s, "Seconds of timing (default 2)")->check(positive());
  add_device_options(*run, in->subject);
  add_output_options(*run, in->output, "an object");
  run->callback([in] { run_kernel(*in); });
}

}  // namespace tilewright::tw
