// What `tw explain`, `tw kernel` and `tw roofline` look into: the compiled function of a lab pair, or a graph
// file, with inputs to call it with.
#pragma once

#include <tilewright/tensor/compile.h>

#include <memory>
#include <string>
#include <vector>

#include "pairs/lab_device.h"

namespace CLI {
class App;
}

namespace tilewright::tw {

struct SubjectInput {
  std::string what;  // a pair, the path of a graph text file, or "-" for one on stdin
  std::vector<std::string> settings;
  std::string device = "cpu";
  std::string cache = "auto";
  int threads = 0;
  bool autotune = false;  // with measured schedules (CompileOptions::max_autotune)
  std::string memory;     // CompileOptions::memory_budget of a graph file: "6GiB"; empty: none
  std::string precision;  // CompileOptions::precision of a graph file: "bf16"; empty: f32
};
// The options that say what and where, the positional `what` included.
void add_subject_options(CLI::App& sub, SubjectInput& input);
// The same without `what`.
void add_device_options(CLI::App& sub, SubjectInput& input);

struct Subject {
  lab::OpenDevice open;
  std::vector<std::shared_ptr<void>> keep;  // the pair's instances
  std::string title;                        // "softmax columns=8192 …", "mlp.tw"
  CompiledList function;
  std::vector<Tensor> inputs;
  // Inputs of the further combinations that settings of several values ask for: each is a recompile.
  std::vector<std::vector<Tensor>> more_inputs = {};

  // Compiled for the inputs.
  detail::CompiledCall prepare() const { return function.prepare(inputs); }
  SpecialisationReport report() const { return function.report().at(0); }
};

// Throws Error for a name that nothing has, a file that is no graph, or a device that cannot be opened.
Subject open_subject(const SubjectInput& input);

// The arguments after `tw explain` and the like that mean this subject: "softmax --set columns=8192 --device
// cpu".
std::string subject_arguments(const SubjectInput& input);

// A whole file, or stdin for "-". Throws Error when it cannot be read.
std::string read_text(const std::string& path);

}  // namespace tilewright::tw
