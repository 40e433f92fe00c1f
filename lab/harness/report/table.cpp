// The table of results.
#include "harness/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/run/environment.h"

namespace tilewright::lab {

namespace {

constexpr std::string_view kNothing = "–";

std::string workload_text(const Row& row) {
  std::string text = row.target + " " + row.shape;
  if (!row.dtype.empty()) text += " " + row.dtype;
  if (row.device != "cpu") text += " " + row.device;
  return text;
}

std::string median_text(const Row& row) {
  if (!row.median_us) return std::string(kNothing);
  if (!row.ci95_us) return time_text(*row.median_us);
  const double half = 50 * (row.ci95_us->high - row.ci95_us->low) / *row.median_us;
  return fmt::format("{} ±{:>4.{}f}%", time_text(*row.median_us), half, half < 9.95 ? 1 : 0);
}

std::string rate_text(const Row& row) {
  if (!row.rate) return std::string(kNothing);
  const int digits = *row.rate < 10 ? 2 : *row.rate < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {:<7}", *row.rate, digits, row.unit);
}

std::string share_text(const Row& row) {
  return row.roofline ? fmt::format("{:.0f}%", 100 * *row.roofline) : std::string(kNothing);
}

std::string ratio_text(double ratio) {
  return fmt::format("{:.{}f}", ratio, ratio < 10 ? 2 : ratio < 100 ? 1 : 0);
}

std::string speedup_text(const Row& row) {
  if (!row.speedup) return std::string(kNothing);
  std::string ratio = ratio_text(*row.speedup) + "×";
  if (row.verdict == Verdict::baseline || !row.speedup_ci95) return ratio;
  return fmt::format("{} [{}–{}]", ratio, ratio_text(row.speedup_ci95->low),
                     ratio_text(row.speedup_ci95->high));
}

std::string error_text(const Row& row) {
  if (!row.max_rel_err || !row.tolerance) return std::string(kNothing);
  if (*row.tolerance == 0 && *row.max_rel_err == 0) return "exact";
  if (*row.max_rel_err == 0) return fmt::format("0/{:.1e}", *row.tolerance);
  return fmt::format("{:.1e}/{:.1e}", *row.max_rel_err, *row.tolerance);
}

std::string waited_text(const Row& row) {
  return row.waited_us ? time_text(*row.waited_us) : std::string(kNothing);
}

std::string compile_text(const Row& row) {
  if (!row.compile_ms) return std::string(kNothing);
  return fmt::format("{:.0f} ms{}", *row.compile_ms, row.from_disk ? "*" : "");
}

std::string verdict_text(Verdict verdict, TableOptions::Colour colour) {
  std::string text(name(verdict));
  if (colour == TableOptions::Colour::none) return text;
  switch (verdict) {
    case Verdict::faster:
      return "\x1b[32m" + text + "\x1b[0m";
    case Verdict::slower:
      return "\x1b[33m" + text + "\x1b[0m";
    case Verdict::wrong:
    case Verdict::failed:
    case Verdict::impossible:
      return "\x1b[31m" + text + "\x1b[0m";
    default:
      return text;
  }
}

TextTable result_table(const std::vector<Row>& rows, TableOptions::Colour colour) {
  TextTable table;
  table.column("workload", Align::left);
  table.column("contender", Align::left);
  table.column("call ± 95%", Align::right);
  table.column("device", Align::right);
  table.column("rate", Align::right);
  table.column("roofline", Align::right);
  table.column("speedup", Align::right);
  table.column("error/bound", Align::right);
  const bool compiles = std::any_of(rows.begin(), rows.end(), [](const Row& r) { return r.compile_ms; });
  if (compiles) table.column("compile", Align::right);
  const bool waits = std::any_of(rows.begin(), rows.end(), [](const Row& r) { return r.waited_us; });
  if (waits) table.column("waits", Align::right);
  table.column("verdict", Align::left);
  std::string last;
  for (const Row& row : rows) {
    const std::string workload = workload_text(row);
    if (workload != last && !last.empty()) table.rule();
    std::vector<std::string> cells = {workload == last ? "" : workload,
                                      row.contender,
                                      median_text(row),
                                      device_time_text(row),
                                      rate_text(row),
                                      share_text(row),
                                      speedup_text(row),
                                      error_text(row)};
    if (compiles) cells.push_back(compile_text(row));
    if (waits) cells.push_back(waited_text(row));
    cells.push_back(verdict_text(row.verdict, colour));
    table.row(std::move(cells));
    last = workload;
  }
  return table;
}

// Breaks at blanks so that no line passes `width`; the lines after the first are indented.
std::string wrapped(std::string_view text, std::size_t width) {
  std::string out;
  std::size_t used = 0;
  for (const std::string& word : split(text, ' ')) {
    const std::size_t size = display_width(word);
    if (used > 0 && used + 1 + size > width) {
      out += "\n    ";
      used = 4;
    } else if (used > 0) {
      out += ' ';
      ++used;
    }
    out += word;
    used += size;
  }
  return out + "\n";
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string csv_number(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; }

std::string csv_interval(const std::optional<Interval>& value) {
  return value ? fmt::format("{},{}", value->low, value->high) : ",";
}

}  // namespace

std::string time_text(double us) { return time_text(us, us); }

std::string time_text(double us, double like_us) {
  const double unit_us = like_us >= 1e6 ? 1e6 : like_us >= 1e3 ? 1e3 : 1;
  const std::string_view unit = like_us >= 1e6 ? "s" : like_us >= 1e3 ? "ms" : "us";
  const double scaled = us / unit_us;
  // Four digits, of what is less than 1 in its unit, too.
  int digits = scaled < 9.9995 ? 3 : scaled < 99.995 ? 2 : scaled < 999.95 ? 1 : 0;
  for (double small = scaled; small > 0 && small < 0.99995 && digits < 7; small *= 10) ++digits;
  return fmt::format("{:.{}f} {:<2}", scaled, digits, unit);
}

std::string device_time_text(const Row& row) { return device_time_text(row, row.median_us.value_or(0)); }

std::string device_time_text(const Row& row, double like_us) {
  if (row.device_us) return time_text(*row.device_us, like_us);
  return std::string(row.median_us && row.calls_are_work() ? "=" : kNothing);
}

std::string short_rate_text(const Row& row) {
  if (!row.rate) return "";
  const bool large = *row.rate >= 1e4 && row.unit.starts_with("G");  // GB/s or GFLOP/s
  return fmt::format("{:.4g} {}", large ? *row.rate / 1e3 : *row.rate,
                     large ? "T" + row.unit.substr(1) : row.unit);
}

std::vector<std::string> contender_notes(const RunRecord& run) {
  const auto takes_part = [&](std::string_view contender) {
    return std::any_of(run.rows.begin(), run.rows.end(),
                       [&](const Row& row) { return row.contender == contender; });
  };
  std::vector<std::string> notes;
  if (takes_part("eager"))
    notes.emplace_back(
        "eager: the program as written, each of our calls at once and as a kernel of its own; a composite "
        "(softmax, a norm, gelu) is one call, and one kernel");
  if (takes_part("decomposed"))
    notes.emplace_back(
        "decomposed: each primitive operation a kernel of its own (softmax: max, subtract, exp, sum, "
        "divide), "
        "as where no composite is one kernel");
  return notes;
}

std::string render_table(const RunRecord& run, const TableOptions& options) {
  std::string text = result_table(run.rows, options.colour).to_string(options.width);
  const auto width = static_cast<std::size_t>(options.width);
  for (const Row& row : run.rows) {
    if (!row.note.empty())
      text += wrapped(fmt::format("  {}/{}: {}", workload_text(row), row.contender, row.note), width);
  }
  for (const std::string& note : contender_notes(run)) text += wrapped(note, width);
  text += fmt::format(
      "harness: at most {:.3f} us of each iteration are the frame's own (included in the medians)\n",
      run.environment.frame_us);
  if (std::any_of(run.rows.begin(), run.rows.end(),
                  [](const Row& row) { return row.median_us && row.calls_are_work(); }))
    text += wrapped(
        "device: \"=\" where the device is the host: a call returns when its work is done, and its time is "
        "that of the work",
        width);
  if (std::any_of(run.rows.begin(), run.rows.end(), [](const Row& row) { return row.from_disk; }))
    text +=
        wrapped("compile: \"*\" where kernels that an earlier process compiled were found on disk", width);
  for (const auto& [key, value] : run.environment.options) {
    if (key == "device_time") text += wrapped("device: " + value, width);
  }
  for (const std::string& warning : warnings(run.environment)) text += wrapped("note: " + warning, width);
  if (run.environment.interrupted) text += "interrupted: what was measured until then is kept\n";
  return text;
}

std::string render_markdown(const std::vector<Row>& rows) {
  return result_table(rows, TableOptions::Colour::none).to_markdown();
}

std::string render_csv(const std::vector<Row>& rows) {
  std::string text =
      "target,contender,device,shape,dtype,verified,max_rel_err,tolerance,median_us,ci95_low_us,ci95_high_us,"
      "samples,device_us,device_ci95_low_us,device_ci95_high_us,compile_ms,from_disk,chosen,"
      "rate,unit,floor_us,roofline,speedup,speedup_ci95_low,speedup_ci95_high,verdict,waited_us\n";
  for (const Row& r : rows) {
    text += fmt::format("{},{},{},{},{},{},", csv_cell(r.target), csv_cell(r.contender), csv_cell(r.device),
                        csv_cell(r.shape), csv_cell(r.dtype), r.verified);
    text += fmt::format("{},{},{},{},{},", csv_number(r.max_rel_err), csv_number(r.tolerance),
                        csv_number(r.median_us), csv_interval(r.ci95_us), r.samples);
    text += fmt::format("{},{},{},{},{},", csv_number(r.device_us), csv_interval(r.device_ci95_us),
                        csv_number(r.compile_ms), r.from_disk, csv_cell(r.chosen));
    text += fmt::format("{},{},{},{},{},{},{},{}\n", csv_number(r.rate), r.unit, csv_number(r.floor_us),
                        csv_number(r.roofline), csv_number(r.speedup), csv_interval(r.speedup_ci95),
                        name(r.verdict), csv_number(r.waited_us));
  }
  return text;
}

}  // namespace tilewright::lab
