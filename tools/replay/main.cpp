// replay_record: compiles the corpus for machines that need not be there and writes down what comes out, as
// far as printed sources. tools/replay/replay.py calls it, and compares.
#include <tilewright/base/error.h>
#include <tilewright/base/thread_pool.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <iterator>
#include <mutex>
#include <thread>

#include "replay/corpus.h"
#include "replay/record_folder.h"

namespace tilewright::replay {

namespace {

struct Options {
  std::string out, filter;
  std::vector<std::string> machines = machine_names();
  bool only_short = false, list = false;
  int threads = allowed_cpu_count();
};

struct Task {
  const Machine* machine = nullptr;
  CorpusEntry entry;
};

std::vector<Task> tasks_of(const std::vector<Machine>& machines, const Options& options) {
  std::vector<Task> tasks;
  for (const Machine& machine : machines)
    for (CorpusEntry& entry : corpus(machine)) {
      const bool named = entry.name.find(options.filter) != std::string::npos;
      if (named && (entry.in_short || !options.only_short)) tasks.push_back({&machine, std::move(entry)});
    }
  return tasks;
}

std::vector<ProgramRecord> records_of(const Task& task) {
  try {
    return task.entry.record(*task.machine);
  } catch (const std::exception& error) {
    return {{.name = task.entry.name, .machine = task.machine->name, .failure = error.what()}};
  }
}

bool fails(const ProgramRecord& record) {
  return !record.failure.empty() || std::any_of(record.kernels.begin(), record.kernels.end(),
                                                [](const KernelRecord& k) { return !k.failure.empty(); });
}

struct Counts {
  std::size_t programs = 0, kernels = 0, failures = 0;
};

// Threads take the tasks as they come; the index has them in their order.
Counts record_all(const std::vector<Task>& tasks, int threads, RecordFolder& folder) {
  std::vector<std::vector<std::string>> lines(tasks.size());
  std::atomic<std::size_t> next = 0, programs = 0, kernels = 0, failures = 0;
  std::exception_ptr problem;
  std::mutex problem_mutex;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < tasks.size(); i = next++)
        for (const ProgramRecord& record : records_of(tasks[i])) {
          lines[i].push_back(folder.store(record));
          ++programs;
          kernels += record.kernels.size();
          failures += fails(record) ? 1 : 0;
        }
    } catch (...) {
      const std::lock_guard lock(problem_mutex);
      problem = std::current_exception();
      next = tasks.size();
    }
  };
  std::vector<std::thread> workers;
  workers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  if (problem) std::rethrow_exception(problem);
  std::vector<std::string> all;
  for (std::vector<std::string>& part : lines) std::move(part.begin(), part.end(), std::back_inserter(all));
  folder.write_index(all);
  return {programs, kernels, failures};
}

int run(const Options& options) {
  std::vector<Machine> machines;
  machines.reserve(options.machines.size());
  for (const std::string& name : options.machines) machines.push_back(make_machine(name));
  const std::vector<Task> tasks = tasks_of(machines, options);
  if (tasks.empty())
    throw Error(fmt::format("no program's name has \"{}\" in it: --list shows them all", options.filter));
  if (options.list) {
    for (const Task& task : tasks) fmt::print("{} {}\n", task.machine->name, task.entry.name);
    return 0;
  }
  const auto start = std::chrono::steady_clock::now();
  RecordFolder folder(options.out);
  const Counts counts = record_all(tasks, options.threads, folder);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print(
      "{} programs for {}: {} kernels, {} programs failed, {} texts of {:.0f} MB, in {:.1f} s on {} "
      "threads\n",
      counts.programs, fmt::join(options.machines, ", "), counts.kernels, counts.failures,
      folder.text_count(), static_cast<double>(folder.text_bytes()) / 1e6, seconds, options.threads);
  return 0;
}

}  // namespace

}  // namespace tilewright::replay

int main(int argc, char** argv) {
  tilewright::replay::Options options;
  CLI::App app(
      "Compiles a fixed corpus without running it and writes down each kernel's tile IR, source, schedule "
      "and "
      "predicted time. tools/replay/replay.py compares such records.");
  CLI::Option* out =
      app.add_option("--out", options.out, "the record's folder; one that is there is replaced");
  app.add_option("--targets", options.machines, "cpu, sm_80, sm_90a; all by default")->delimiter(',');
  app.add_option("--filter", options.filter, "only programs with this in their name: pair/softmax");
  app.add_flag("--short", options.only_short, "the shortened form: a part of each kind, in seconds");
  app.add_option("--threads", options.threads, "all cores by default")->check(CLI::PositiveNumber);
  app.add_flag("--list", options.list, "print the programs' names and do nothing else");
  CLI11_PARSE(app, argc, argv);
  if (options.out.empty() && !options.list) {
    fmt::print(stderr, "replay_record: {} is needed\n", out->get_name());
    return 2;
  }
  try {
    return tilewright::replay::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "replay_record: {}\n", error.what());
    return 2;
  }
}
