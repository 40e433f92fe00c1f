// Compiled functions of trees: a program's arguments are tensors, and each structure has programs of its own.
#include "tensor/limits.h"

#include <tilewright/tensor/compile.h>

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <mutex>

namespace tilewright::detail {

std::shared_ptr<CompiledCores> make_cores(LeavesFunction function, CompileOptions options,
                                          ArgumentNames names, bool of_list) {
  return std::make_shared<CompiledCores>(std::move(function), std::move(options), names, of_list);
}
void throw_moved_from(const Location& where) { throw Error("this compiled function was moved from", where); }
void throw_empty_function(const char* of, const Location& where) {
  throw Error(fmt::format("{}: the function is empty", of), where);
}
void throw_wrong_count(std::size_t taken, std::size_t given, const Location& where) {
  throw Error(fmt::format("a function of {} tensors was called with {}", taken, given), where);
}

namespace {

// The tensors of an argument, by their numbers.
struct Numbers {
  int first = 0, end = 0;
};
Numbers numbers_of(int argument, std::span<const std::size_t> ends) {
  const auto at = static_cast<std::size_t>(argument);
  return {at == 0 ? 0 : static_cast<int>(ends[at - 1]), static_cast<int>(ends[at])};
}

// The options with tensors numbered where the user numbered arguments. A dynamic dimension of no argument
// stays, and is refused at the call. Throws Error on what is wrong for calls with any arguments.
CompileOptions of_tensors(const CompileOptions& options, std::span<const std::size_t> ends,
                          const Location& where) {
  if (options.memory_budget < 0)
    throw Error(
        fmt::format("compile: memory_budget is negative: {} bytes (0: no limit)", options.memory_budget),
        where);
  CompileOptions out = options;
  const auto is_argument = [&](int number) {
    return number >= 0 && static_cast<std::size_t>(number) < ends.size();
  };
  out.donate.clear();
  for (const int number : options.donate) {
    if (!is_argument(number))
      throw Error(
          fmt::format("compile: argument {} is to be donated, the function has {}", number, ends.size()),
          where);
    const Numbers tensors = numbers_of(number, ends);
    for (int i = tensors.first; i < tensors.end; ++i) out.donate.push_back(i);
  }
  for (DynamicDim& dim : out.dynamic) {
    if (!is_argument(dim.argument)) continue;
    const Numbers tensors = numbers_of(dim.argument, ends);
    if (tensors.end - tensors.first != 1)
      throw Error(
          fmt::format("compile: argument {} has {} tensors: a size that changes is one of an argument "
                      "that is a single tensor",
                      dim.argument, tensors.end - tensors.first),
          where);
    dim.argument = tensors.first;
  }
  return out;
}

}  // namespace

struct CompiledCores::State {
  struct Known {
    Structure structure;
    std::shared_ptr<CompiledCore> core;  // threads may be in it that is dropped
  };
  LeavesFunction function;
  CompileOptions options;
  ArgumentNames names = nullptr;
  bool of_list = false;
  std::mutex mutex;
  std::list<Known> known;  // the one called last first
};

CompiledCores::CompiledCores(LeavesFunction function, CompileOptions options, ArgumentNames names,
                             bool of_list)
    : state_(std::make_unique<State>(std::move(function), std::move(options), names, of_list)) {}
CompiledCores::~CompiledCores() = default;

std::shared_ptr<CompiledCore> CompiledCores::of(const Structure& structure, std::span<const std::size_t> ends,
                                                const Location& where) {
  const std::lock_guard lock(state_->mutex);
  auto& known = state_->known;
  const auto at =
      std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.structure == structure; });
  if (at != known.end()) {
    known.splice(known.begin(), known, at);
    return at->core;
  }
  std::vector<std::size_t> of_elements;
  if (state_->of_list)
    for (std::size_t i = 0; i < ends.back(); ++i) of_elements.push_back(i + 1);
  CompileOptions options = of_tensors(state_->options, state_->of_list ? of_elements : ends, where);
  std::vector<std::string> names;
  if (state_->names) names = state_->names({std::vector<Tensor>(ends.back()), structure});
  known.push_front({structure, std::make_shared<CompiledCore>(state_->function, structure, std::move(options),
                                                              std::move(names))});
  if (known.size() > kMostStructures) known.pop_back();
  return known.front().core;
}

List<SpecialisationReport> CompiledCores::report() const {
  std::vector<std::shared_ptr<CompiledCore>> cores;
  {
    const std::lock_guard lock(state_->mutex);
    for (const State::Known& known : state_->known) cores.push_back(known.core);
  }
  List<SpecialisationReport> all;
  for (const auto& core : cores) {
    std::vector<SpecialisationReport> more = core->report();
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace tilewright::detail
