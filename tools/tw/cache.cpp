// tw cache: the folder of compiled kernels.
#include <fmt/format.h>
#include <tilewright/perf/cost.h>

#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>

#include "runtime/binary_cache.h"
#include "tw/command/arguments.h"
#include "tw/command/commands.h"
#include "tw/command/output.h"

namespace tilewright::tw {

namespace {

using Json = nlohmann::ordered_json;
using runtime::BinaryCache;
using runtime::CacheStats;

struct CacheInput {
  std::string cache = "auto";
  OutputOptions output;
};

BinaryCache open_cache(const CacheInput& input) {
  const std::string folder = cache_argument(input.cache);
  if (folder.empty())
    throw Error("there is no cache folder: neither HOME nor XDG_CACHE_HOME is set; give one with --cache");
  return BinaryCache(folder);
}

CacheStats checked(Result<CacheStats> stats) {
  if (!stats) throw std::runtime_error(stats.error().message);
  return std::move(*stats);
}

std::string bytes_text(std::uint64_t bytes) { return perf::with_prefix(static_cast<double>(bytes)) + "B"; }

std::string entries_text(const CacheStats& stats) {
  return fmt::format("{} {}, {}", stats.entries, stats.entries == 1 ? "entry" : "entries",
                     bytes_text(stats.bytes));
}

Json to_json(const BinaryCache& cache, const CacheStats& stats) {
  return {{"directory", cache.directory()},
          {"entries", stats.entries},
          {"bytes", stats.bytes},
          {"limit_bytes", cache.max_bytes()}};
}

void info(const CacheInput& input) {
  const BinaryCache cache = open_cache(input);
  const CacheStats stats = checked(cache.info());
  if (input.output.as_json()) return write_results(input.output, to_json(cache, stats).dump(2) + "\n");
  const bool there = std::filesystem::is_directory(cache.directory());
  write_results(input.output, fmt::format("directory  {}{}\n"
                                          "entries    {}\n"
                                          "bytes      {} of at most {}; the least recently used go first\n",
                                          cache.directory(), there ? "" : " (not made yet)", stats.entries,
                                          bytes_text(stats.bytes), bytes_text(cache.max_bytes())));
}

void verify(const CacheInput& input) {
  const BinaryCache cache = open_cache(input);
  const CacheStats stats = checked(cache.verify());
  if (input.output.as_json()) {
    Json out = to_json(cache, stats);
    out["damaged"] = stats.damaged_files;
    write_results(input.output, out.dump(2) + "\n");
  } else {
    std::string text;
    for (const std::string& path : stats.damaged_files) text += fmt::format("damaged: {}\n", path);
    text += fmt::format(
        "{} in {}, {} damaged{}\n", entries_text(stats), cache.directory(), stats.damaged,
        stats.damaged > 0
            ? "; a damaged entry is compiled again when it is asked for, `tw cache clear` removes all"
            : "");
    write_results(input.output, text);
  }
  if (stats.damaged > 0) throw CLI::RuntimeError(1);
}

void clear(const CacheInput& input) {
  BinaryCache cache = open_cache(input);
  const CacheStats removed = checked(cache.clear());
  if (input.output.as_json()) return write_results(input.output, to_json(cache, removed).dump(2) + "\n");
  write_results(input.output, fmt::format("removed {} from {}\n", entries_text(removed), cache.directory()));
}

}  // namespace

void add_cache(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("cache", "The compiled kernels on disk");
  sub->require_subcommand(1);
  const auto add = [sub](const char* name, const char* about, void (*command)(const CacheInput&)) {
    auto in = std::make_shared<CacheInput>();
    CLI::App* each = sub->add_subcommand(name, about);
    each->add_option("--cache", in->cache,
                     "The folder (default: $XDG_CACHE_HOME/tilewright or ~/.cache/tilewright)")
        ->type_name("FOLDER");
    add_output_options(*each, in->output, "an object");
    each->callback([in, command] { command(*in); });
  };
  add("info", "Where it is, how many entries it holds and how many bytes", info);
  add("verify", "Read every entry and compare its checksum; exit code 1 when one is damaged", verify);
  add("clear", "Remove every entry, and say what was removed; measured ceilings stay", clear);
}

}  // namespace tilewright::tw
