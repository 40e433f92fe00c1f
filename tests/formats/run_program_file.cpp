// Another process for program_test.cpp: loads the program in FOLDER/step.tw and its inputs,
// FOLDER/<name>.npy, and writes the results, FOLDER/result<n>.npy. Usage: run_program_file FOLDER
#include <tilewright/tilewright.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace tw = tilewright;

namespace {

void run(const std::string& folder) {
  tw::Context ctx({.device = "cpu", .cache_directory = ""});
  const tw::Program program = tw::load_program(folder + "/step.tw");
  std::vector<tw::Tensor> arguments;
  for (const tw::Program::Input& input : program.inputs())
    arguments.push_back(tw::load_npy(ctx, folder + "/" + input.name + ".npy"));
  const std::vector<tw::Tensor> results = tw::compile(program)(arguments);
  for (std::size_t i = 0; i < results.size(); ++i)
    tw::save_npy(folder + "/result" + std::to_string(i) + ".npy", results[i]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    run(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "run_program_file: %s\n", error.what());
    return 1;
  }
  return 0;
}
