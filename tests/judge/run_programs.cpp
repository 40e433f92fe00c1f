// Runs programs (program.h) that judge.py sends, with the values of their inputs, and answers with the
// results: one process for many of them, which starts and loads the compiler once.
//   asked: "<bytes of text> <bytes of values>\n", the text, then for each call the inputs in their order,
//   floats as f64 and all else as i64
//   answered: "ok <results>\n", each as "<type> <shape>\n" and its elements in the same way, those of all
//   calls one after another; or "error <bytes>\n" and what was thrown
#include "programs/program.h"

#include <tilewright/tilewright.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>

namespace tilewright::judge {

using namespace programs;

// Programs that share a Context: compiled kernels stay in it.
constexpr int kProgramsPerContext = 200;

std::string read_bytes(std::size_t count) {
  std::string bytes(count, ' ');
  std::cin.read(bytes.data(), static_cast<std::streamsize>(count));
  return bytes;
}

// The next elements of `bytes`.
Tensor next_input(const Input& input, const Shape& shape, std::string_view& bytes, Context& context) {
  const std::string_view mine = bytes.substr(0, static_cast<std::size_t>(shape.size()) * sizeof(double));
  bytes.remove_prefix(mine.size());
  const DType sent = is_float(input.dtype) ? DType::f64 : DType::i64;
  return context.from_memory(mine.data(), sent, static_cast<Index>(mine.size() / sizeof(double)), shape,
                             input.dtype);
}

CompileOptions compile_options(const programs::Program& program) {
  CompileOptions options;
  options.fuse = program.how.count("unfused") == 0;
  if (program.how.count("recompute") != 0) options.recompute = Recompute::always;
  options.deterministic = program.how.count("deterministic") != 0;
  if (program.how.count("dynamic") != 0)
    for (std::size_t i = 0; i < program.inputs.size(); ++i)
      for (int axis = 0; axis < program.inputs[i].shape.rank(); ++axis)
        options.dynamic.push_back({static_cast<int>(i), axis});
  return options;
}

std::vector<Tensor> run_program(const programs::Program& program, Context& context,
                                const std::vector<std::vector<Tensor>>& inputs) {
  Literals literals = program.literals;
  const detail::ListFunction f = function_of(program, literals);
  const bool eager = program.how.count("eager") != 0;
  const auto compiled = compile(f, compile_options(program));
  std::vector<Tensor> results;
  for (std::size_t call = 0; call < program.calls.size(); ++call) {
    for (const auto& [name, value] : program.calls[call].literals) literals[name] = value;
    for (Tensor& result : eager ? f(inputs[call]) : compiled(inputs[call]))
      results.push_back(std::move(result));
  }
  context.synchronize();
  return results;
}

std::string answer(const std::string& text, std::string_view bytes_of_inputs, Context& context) {
  const programs::Program program = parse_program(text);
  std::vector<std::vector<Tensor>> inputs;
  for (const Call& call : program.calls) {
    inputs.emplace_back();
    for (const Input& input : program.inputs) {
      const auto other = call.shapes.find(input.name);
      inputs.back().push_back(next_input(input, other == call.shapes.end() ? input.shape : other->second,
                                         bytes_of_inputs, context));
    }
  }
  const std::vector<Tensor> results = run_program(program, context, inputs);
  std::string bytes = fmt::format("ok {}\n", results.size());
  for (const Tensor& result : results) {
    const Shape& shape = result.shape();
    bytes += fmt::format("{} {}\n", name(result.dtype()), to_string(shape));
    const std::size_t begin = bytes.size();
    bytes.resize(begin + static_cast<std::size_t>(shape.size()) * sizeof(double));
    result.read(bytes.data() + begin, is_float(result.dtype()) ? DType::f64 : DType::i64);
  }
  return bytes;
}

}  // namespace tilewright::judge

int main(int argc, char** argv) {
  tilewright::ContextOptions options{.cache_directory = ""};
  CLI::App app("programs that judge.py sends");
  app.add_option("--device", options.device);
  app.add_option("--isa", options.isa);
  app.add_option("--threads", options.threads);
  CLI11_PARSE(app, argc, argv);
  try {
    std::optional<tilewright::Context> context;
    int programs = 0;
    for (std::string line; std::getline(std::cin, line);) {
      if (programs++ % tilewright::judge::kProgramsPerContext == 0) context.emplace(options);
      const std::string text = tilewright::judge::read_bytes(std::stoull(line));
      const std::string values = tilewright::judge::read_bytes(std::stoull(line.substr(line.find(' '))));
      std::string bytes;
      try {
        bytes = tilewright::judge::answer(text, values, *context);
      } catch (const std::exception& e) {
        bytes = fmt::format("error {}\n{}", std::string(e.what()).size(), e.what());
      }
      std::cout << bytes << std::flush;
    }
  } catch (const std::exception& e) {
    return fmt::print(stderr, "{}\n", e.what()), 1;
  }
  return 0;
}
