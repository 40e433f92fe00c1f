// Reads the log of NVRTC and ptxas -v (CUDA 12 and 13) line by line; see nvrtc_log.h.
#include "backends/cuda/nvrtc/nvrtc_log.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace tilewright::cuda {
namespace {

// The number that stands directly before `unit`, as in "used 1 barriers" or "256 bytes smem".
std::optional<int> number_before(std::string_view line, std::string_view unit) {
  const auto at = line.find(unit);
  if (at == std::string_view::npos || at == 0 || line[at - 1] != ' ') return std::nullopt;
  auto begin = line.find_last_not_of("0123456789", at - 2);
  begin = begin == std::string_view::npos ? 0 : begin + 1;
  int value = 0;
  const auto [end, error] = std::from_chars(line.data() + begin, line.data() + at - 1, value);
  if (error != std::errc() || end == line.data() + begin) return std::nullopt;
  return value;
}

// Between the first pair of quotes after `before`.
std::optional<std::string> quoted_after(std::string_view line, std::string_view before) {
  const auto at = line.find(before);
  if (at == std::string_view::npos) return std::nullopt;
  const auto open = line.find('\'', at + before.size());
  if (open == std::string_view::npos) return std::nullopt;
  const auto close = line.find('\'', open + 1);
  if (close == std::string_view::npos) return std::nullopt;
  return std::string(line.substr(open + 1, close - open - 1));
}

std::optional<PerformanceWarning> warning_in(std::string_view line) {
  const auto open = line.find("(C7");
  if (open == std::string_view::npos) return std::nullopt;
  const auto close = line.find(')', open);
  if (close == std::string_view::npos) return std::nullopt;
  const auto code = line.substr(open + 1, close - open - 1);
  if (code.size() < 3 ||
      !std::all_of(code.begin() + 1, code.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  auto text = line.substr(close + 1);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return PerformanceWarning{std::string(code), std::string(text)};
}

void read_resources(std::string_view line, KernelResources& kernel) {
  const auto set = [&](std::string_view unit, int& field) {
    if (const auto value = number_before(line, unit)) field = *value;
  };
  set("bytes stack frame", kernel.stack_bytes);
  set("bytes spill stores", kernel.spill_store_bytes);
  set("bytes spill loads", kernel.spill_load_bytes);
  set("registers", kernel.registers);
  set("barriers", kernel.barriers);
  set("bytes smem", kernel.shared_bytes);
}

}  // namespace

CompileLog parse_compile_log(std::string_view log) {
  CompileLog out;
  bool in_kernel =
      false;  // resource lines of a noinline function come after its own header and are not a kernel's
  while (!log.empty()) {
    const auto end = log.find('\n');
    const auto line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    if (auto warning = warning_in(line)) {
      if (std::find(out.warnings.begin(), out.warnings.end(), *warning) == out.warnings.end()) {
        out.warnings.push_back(std::move(*warning));
      }
      continue;
    }
    // The source, which errors quote, may contain such words; CUDA 12 indents the stack line without a
    // prefix.
    if (!line.starts_with("ptxas") && !line.starts_with("    ")) continue;
    if (auto name = quoted_after(line, "Compiling entry function")) {
      out.kernels.push_back({.name = std::move(*name)});
      in_kernel = true;
      continue;
    }
    if (const auto at = line.find("Function properties for "); at != std::string_view::npos && in_kernel) {
      in_kernel = line.substr(at + 24) == out.kernels.back().name;
    }
    if (in_kernel || line.find("Used ") != std::string_view::npos) {
      if (!out.kernels.empty()) read_resources(line, out.kernels.back());
    }
  }
  return out;
}

}  // namespace tilewright::cuda
