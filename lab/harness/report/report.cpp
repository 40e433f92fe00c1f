// Writes the page.
#include "harness/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/report/charts.h"
#include "harness/report/page.h"
#include "harness/report/plot.h"
#include "harness/report/table.h"
#include "harness/run/environment.h"

namespace tilewright::lab {

namespace {

std::string tiles(const RunRecord& run) {
  int timed = 0, verified = 0, checked = 0, faster = 0, slower = 0, bad = 0;
  std::vector<double> shares;
  for (const Row& row : run.rows) {
    if (could_not_run(row.verdict)) continue;
    ++checked;
    verified += row.verified ? 1 : 0;
    timed += row.median_us ? 1 : 0;
    faster += row.verdict == Verdict::faster ? 1 : 0;
    slower += row.verdict == Verdict::slower ? 1 : 0;
    const bool wrong =
        row.verdict == Verdict::wrong || row.verdict == Verdict::failed || row.verdict == Verdict::impossible;
    bad += wrong ? 1 : 0;
    if (row.roofline && !wrong && row.verdict != Verdict::baseline) shares.push_back(*row.roofline);
  }
  std::string html = "<div class='tiles'>\n";
  html += tile_html(fmt::format("{} of {}", verified, checked), "verified against float64");
  html += tile_html(fmt::format("{}", timed), "timed, interleaved");
  if (faster + slower > 0)
    html += tile_html(fmt::format("{} / {}", faster, slower), "faster / slower than the baseline");
  if (!shares.empty())
    html += tile_html(fmt::format("{:.0f} %", 100 * median(shares)), "of the roofline, median of contenders");
  if (bad > 0) html += tile_html(fmt::format("{}", bad), "wrong, failed or impossible");
  if (run.environment.frame_us > 0)
    html += tile_html(fmt::format("{:.3f} us", run.environment.frame_us), "of each iteration is the harness");
  return html + "</div>\n";
}

std::string_view verdict_class(Verdict verdict) {
  switch (verdict) {
    case Verdict::faster:
      return "good";
    case Verdict::slower:
      return "warn";
    case Verdict::wrong:
    case Verdict::failed:
    case Verdict::impossible:
      return "bad";
    default:
      return "";
  }
}

// A value, which says what it is where there is no room for a head of columns.
struct Cell {
  std::string_view what;
  std::string html;
};

std::string text_of(const Cell& cell) {
  return fmt::format("<td data-what='{}'><span>{}</span></td>", cell.what,
                     cell.html.empty() ? "–" : cell.html);
}

std::string time_html(const Row& row) {
  if (!row.median_us) return "";
  if (!row.ci95_us) return time_text(*row.median_us);
  return fmt::format("{} <small>±{:.1f} %</small>", time_text(*row.median_us),
                     50 * (row.ci95_us->high - row.ci95_us->low) / *row.median_us);
}

std::string share_html(const Row& row) {
  if (!row.roofline) return "";
  return fmt::format("{:.0f} %<span class='bar'><i style='width:{:.0f}%'></i></span>", 100 * *row.roofline,
                     std::min(100.0, 100 * *row.roofline));
}

std::string speedup_html(const Row& row) {
  if (!row.speedup) return "";
  if (row.verdict == Verdict::baseline || !row.speedup_ci95) return fmt::format("{:.2f}×", *row.speedup);
  return fmt::format("{:.2f}× <small>{:.2f}–{:.2f}</small>", *row.speedup, row.speedup_ci95->low,
                     row.speedup_ci95->high);
}

std::string error_html(const Row& row) {
  if (!row.max_rel_err || !row.tolerance) return "";
  if (*row.tolerance == 0 && *row.max_rel_err == 0) return "exact";
  if (*row.max_rel_err == 0) return fmt::format("0 <small>of {:.1e}</small>", *row.tolerance);
  return fmt::format("{:.1e} <small>of {:.1e}</small>", *row.max_rel_err, *row.tolerance);
}

std::vector<Cell> cells_of(const Row& row) {
  return {{"call ± 95 %", time_html(row)},
          {"its device time", device_time_text(row)},
          {"samples", row.samples > 0 ? fmt::format("{}", row.samples) : ""},
          {"rate", escape_html(short_rate_text(row))},
          {"of the roofline", share_html(row)},
          {"speedup", speedup_html(row)},
          {"worst error, bound", error_html(row)}};
}

// The rows of each workload together, in the order of its first.
std::vector<const Row*> by_workload(const RunRecord& run) {
  const auto name = [](const Row& row) {
    return fmt::format("{} {} {} {}", row.target, row.shape, row.dtype, row.device);
  };
  std::map<std::string, std::size_t> places;
  std::vector<std::vector<const Row*>> groups;
  for (const Row& row : run.rows) {
    const auto [at, added] = places.emplace(name(row), groups.size());
    if (added) groups.emplace_back();
    groups[at->second].push_back(&row);
  }
  std::vector<const Row*> rows;
  for (const auto& group : groups) rows.insert(rows.end(), group.begin(), group.end());
  return rows;
}

std::string table(const RunRecord& run) {
  std::string html = "<div class='scroll'><table><thead><tr><th class='l'>contender</th>";
  for (const Cell& cell : cells_of(Row{})) html += fmt::format("<th>{}</th>", cell.what);
  html += "<th class='l'>verdict</th></tr></thead><tbody>\n";
  std::string last;
  for (const Row* row : by_workload(run)) {
    const std::string workload =
        fmt::format("<b>{}</b> {} {} <span class='muted'>{}</span>", escape_html(row->target),
                    escape_html(row->shape), escape_html(row->dtype), escape_html(row->device));
    if (workload != last)
      html += fmt::format("<tr class='first'><th class='l' colspan='9' scope='rowgroup'>{}</th></tr>\n",
                          workload);
    last = workload;
    html += fmt::format("<tr class='row'><th class='l' scope='row'>{}</th>", escape_html(row->contender));
    for (const Cell& cell : cells_of(*row)) html += text_of(cell);
    html += fmt::format("<td class='l {}' data-what='verdict'><span>{}</span></td></tr>\n",
                        verdict_class(row->verdict), name(row->verdict));
    if (!row->note.empty())
      html += fmt::format("<tr><td class='note' colspan='9'>{}</td></tr>\n", escape_html(row->note));
  }
  return html + "</tbody></table></div>\n";
}

// What tells contenders apart by colour alone has the names of the colours above it.
std::string key(const Chart& chart, const SeriesStyles& styles) {
  if (chart.key.empty()) return "";
  std::string html = "<div class='key'>";
  for (const std::string& contender : chart.key)
    html += fmt::format("<span><i style='background:var(--{})'></i>{}</span>", styles.at(contender),
                        escape_html(contender));
  return html + "</div>\n";
}

std::string figure(const Chart& chart, const SeriesStyles& styles) {
  if (chart.svg.empty()) return "";
  return figure_html(chart.title, key(chart, styles) + plot_html(chart.svg, chart.narrow), chart.caption);
}

// "AMD EPYC · NVIDIA H200 · 2026-11-26 · commit …", of what is known.
std::string origin(const Environment& e) {
  std::string text;
  for (const std::string& part :
       {e.cpu_model, e.gpu_name, e.date, e.git_commit.empty() ? "" : "commit " + e.git_commit})
    if (!part.empty()) text += (text.empty() ? "" : " · ") + escape_html(part);
  return text;
}

std::string conditions(const Environment& e) {
  std::string html = "<details open><summary>Conditions</summary><dl>\n";
  const auto item = [&](std::string_view what, const std::string& value) {
    if (!value.empty())
      html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape_html(what), escape_html(value));
  };
  item("processor",
       fmt::format("{}, {} cores, affinity {}, governor {}", e.cpu_model, e.cores, e.affinity, e.governor));
  item("memory", fmt::format("{:.1f} GiB, {:.1f} GiB of swap in use", e.memory_gib, e.swap_used_gib));
  item("gpu", e.gpu_name.empty() ? "" : fmt::format("{}, driver {}", e.gpu_name, e.gpu_driver));
  item("limits", fmt::format("cpu {}, memory {}", e.cgroup_cpu, e.cgroup_memory));
  item("load average before", fmt::format("{:.2f}", e.load_average));
  item("system", fmt::format("{}{}", e.kernel, e.virtual_machine ? ", virtual machine" : ""));
  item("compiler", e.compiler);
  item("commit", e.git_commit);
  item("date", e.date);
  item("seed", fmt::format("{}", e.seed));
  for (const auto& [key, value] : e.options) item("option " + key, value);
  for (const DeviceCeilings& d : e.ceilings) item("ceilings of " + d.device, d.ceilings.source);
  for (const std::string& warning : warnings(e)) item("take note", warning);
  if (e.interrupted) item("take note", "the run was interrupted; what was measured until then is here");
  return html + "</dl></details>\n";
}

std::vector<std::string> devices_of(const RunRecord& run) {
  std::vector<std::string> devices;
  for (const Row& row : run.rows) {
    if (std::find(devices.begin(), devices.end(), row.device) == devices.end()) devices.push_back(row.device);
  }
  return devices;
}

}  // namespace

std::string render_html(const RunRecord& run, const std::string& title) {
  const SeriesStyles styles = series_styles(run);
  std::string html = tiles(run) + "<div class='charts'>\n";
  for (const std::string& device : devices_of(run)) {
    html += figure(share_chart(run, device, styles), styles);
    html += figure(roofline_chart(run, device, styles), styles);
    for (const Chart& chart : rate_charts(run, device, styles)) html += figure(chart, styles);
  }
  html += "</div>\n" + table(run);
  html += fmt::format(
      "<p class='muted'>A call: the time of one of many calls with one wait at their end. Its device time: "
      "what the device itself worked, without gaps; = where the device is the host, and a call is its work. "
      "Medians of interleaved samples; intervals by bootstrap at 95 %. FASTER and SLOWER "
      "mean that the "
      "whole interval of the ratio of medians is on one side of 1 and the difference is above {:.0f} %. "
      "Every "
      "output element "
      "is compared with a float64 reference, with fresh inputs and poisoned outputs, before and after "
      "timing.</p>\n",
      100 * kLeastEffect);
  for (const std::string& note : contender_notes(run))
    html += fmt::format("<p class='muted'>{}.</p>\n", escape_html(note));
  return page_html(title, origin(run.environment), html + conditions(run.environment));
}

}  // namespace tilewright::lab
