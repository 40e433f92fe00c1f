// Names and files of records; the JSON itself is in json.cpp.
#include "harness/run/record.h"

#include "base/safe_file.h"

#include <fmt/format.h>

namespace tilewright::lab {

namespace {

constexpr Verdict kAllVerdicts[] = {Verdict::baseline,   Verdict::faster,      Verdict::slower,
                                    Verdict::same,       Verdict::wrong,       Verdict::failed,
                                    Verdict::impossible, Verdict::unavailable, Verdict::no_memory,
                                    Verdict::untimed,    Verdict::uncompared};

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::baseline:
      return "BASELINE";
    case Verdict::faster:
      return "FASTER";
    case Verdict::slower:
      return "SLOWER";
    case Verdict::same:
      return "SAME";
    case Verdict::wrong:
      return "WRONG";
    case Verdict::failed:
      return "FAILED";
    case Verdict::impossible:
      return "IMPOSSIBLE";
    case Verdict::unavailable:
      return "UNAVAILABLE";
    case Verdict::no_memory:
      return "NO MEMORY";
    case Verdict::untimed:
      return "UNTIMED";
    case Verdict::uncompared:
      return "UNCOMPARED";
  }
  return "?";
}

std::optional<Verdict> parse_verdict(std::string_view text) {
  for (Verdict verdict : kAllVerdicts) {
    if (name(verdict) == text) return verdict;
  }
  return std::nullopt;
}

std::string Row::key() const {
  return fmt::format("{}/{} {} {} {}", target, contender, device, shape, dtype);
}

Status write_file(const std::string& path, std::string_view content) {
  return write_safely(path, content, {.make_folders = true});
}

Status write_run(const RunRecord& run, const std::string& path) { return write_file(path, to_json(run)); }

Result<RunRecord> read_run(const std::string& path) {
  auto content = read_file(path);
  if (!content) return content.error();
  auto run = parse_run(*content);
  if (!run) return failure(run.error().kind, fmt::format("{}: {}", path, run.error().message));
  return run;
}

}  // namespace tilewright::lab
