// tw roofline table: the figures of the known hardware with their sources.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tw/command/arguments.h"
#include "tw/roofline/roofline_question.h"

namespace tilewright::tw {

namespace {

using Json = nlohmann::ordered_json;
using perf::with_prefix;

Json figure_json(const perf::Figure& figure) { return {{"value", figure.value}, {"source", figure.source}}; }

Json hardware_json(const perf::Hardware& h) {
  Json out = {{"name", h.name},
              {"title", h.title},
              {"memory_bytes", figure_json(h.memory_bytes)},
              {"memory_bytes_per_s", figure_json(h.memory_bytes_per_s)}};
  for (const auto& [key, rates] :
       {std::pair{"matrix_flops_per_s", &h.matrix}, {"vector_flops_per_s", &h.vector}}) {
    out[key] = Json::object();
    for (const perf::MathRate& r : *rates) out[key][std::string(name(r.dtype))] = figure_json(r.flops_per_s);
  }
  for (const auto& [key, figure] : {std::pair{"special_ops_per_s", &h.special_ops_per_s},
                                    {"link_bytes_per_s", &h.link_bytes_per_s},
                                    {"launch_s", &h.launch_s}}) {
    out[key] = *figure ? figure_json(**figure) : Json(nullptr);
  }
  out["levels"] = Json::array();
  for (const perf::MemoryLevel& level : h.levels) {
    out["levels"].push_back(
        {{"name", level.name}, {"bytes", figure_json(level.bytes)}, {"instances", level.instances}});
    if (level.bytes_per_s) out["levels"].back()["bytes_per_s"] = figure_json(*level.bytes_per_s);
  }
  return out;
}

std::string figure_text(const std::string& label, const perf::Figure& figure, std::string_view unit) {
  if (figure.value == 0) return "";
  return fmt::format("  {:<22} {:>14}  {}\n", label, with_prefix(figure.value) + std::string(unit),
                     figure.source);
}

std::string hardware_text(const perf::Hardware& h) {
  std::string text = fmt::format("{}: {}\n", h.name, h.title);
  text += figure_text("memory", h.memory_bytes, "B");
  text += figure_text("memory bandwidth", h.memory_bytes_per_s, "B/s");
  for (const perf::MathRate& r : h.matrix)
    text += figure_text(fmt::format("matrix {}", name(r.dtype)), r.flops_per_s, "FLOP/s");
  for (const perf::MathRate& r : h.vector)
    text += figure_text(fmt::format("vector {}", name(r.dtype)), r.flops_per_s, "FLOP/s");
  if (h.special_ops_per_s) text += figure_text("special functions", *h.special_ops_per_s, "op/s");
  for (const perf::MemoryLevel& level : h.levels) {
    text += figure_text(fmt::format("{} x {}", level.instances, level.name), level.bytes, "B");
    if (level.bytes_per_s) text += figure_text(level.name + " bandwidth", *level.bytes_per_s, "B/s");
  }
  if (h.link_bytes_per_s) text += figure_text("link", *h.link_bytes_per_s, "B/s");
  if (h.launch_s) text += figure_text("launch", *h.launch_s, "s");
  return text;
}

}  // namespace

void write_hardware_table(const std::string& name, const OutputOptions& output) {
  std::vector<perf::Hardware> chosen;
  if (name.empty()) {
    chosen.assign(perf::known_hardware().begin(), perf::known_hardware().end());
  } else {
    chosen.push_back(hardware_argument(name));
  }
  if (output.as_json()) {
    Json out = Json::array();
    for (const perf::Hardware& h : chosen) out.push_back(hardware_json(h));
    return write_results(output, out.dump(2) + "\n");
  }
  std::string text;
  for (const perf::Hardware& h : chosen) text += hardware_text(h);
  write_results(output, text);
}

}  // namespace tilewright::tw
