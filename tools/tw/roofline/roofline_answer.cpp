// Answers to roofline questions about one point: text, JSON, or a plot under the machine's roof.
#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>

#include "tw/command/arguments.h"
#include "tw/command/plot.h"
#include "tw/roofline/roofline_point.h"

namespace tilewright::tw {

namespace {

using perf::with_prefix;

perf::Hardware overridden(perf::Hardware hardware, const RooflineOptions& o) {
  if (o.peak > 0) {
    for (auto* rates : {&hardware.matrix, &hardware.vector}) {
      rates->clear();
      for (DType dtype : kAllDTypes) rates->push_back({dtype, {o.peak, "--peak"}});
    }
  }
  if (o.bandwidth > 0) hardware.memory_bytes_per_s = {o.bandwidth, "--bandwidth"};
  if (o.link > 0) hardware.link_bytes_per_s = perf::Figure{o.link, "--link"};
  return hardware;
}

Json to_json(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::string to_text(const Question& q, const Answer& a, const perf::Hardware& hardware) {
  const perf::Bounds& b = a.bounds;
  const bool linked = a.cost.link_bytes > 0;
  std::string text = fmt::format("{}: {}, on {}\n", q.work, q.describe(), hardware.title);
  const auto line = [&text](std::string_view label, const std::string& what) {
    text += fmt::format("  {:<14} {}\n", label, what);
  };
  line("FLOPs", fmt::format("{}FLOP{}", with_prefix(a.cost.flops()), linked ? " on each chip" : ""));
  const double bandwidth =
      (linked ? hardware.link_bytes_per_s.value_or(perf::Figure{}) : hardware.memory_bytes_per_s).value;
  if (a.traffic() > 0) {
    line("bytes", fmt::format("{}B {}", with_prefix(a.traffic()),
                              linked ? "sent by each chip" : "between the chip and its memory"));
    line("intensity", fmt::format("{:.4g} FLOP/B, the ridge is at {:.4g} FLOP/B", b.intensity, b.ridge));
  }
  if (b.t_math_s > 0) {
    line("t_math", fmt::format("{}s at {}FLOP/s", with_prefix(b.t_math_s), with_prefix(b.ridge * bandwidth)));
  }
  if (a.traffic() > 0) {
    line("t_comms", fmt::format("{}s at {}B/s", with_prefix(b.t_comms_s), with_prefix(bandwidth)));
  }
  if (linked) line("t_memory", fmt::format("{}s", with_prefix(b.t_memory_s)));
  if (b.t_special_s > 0) {
    line("t_special",
         fmt::format("{}s for {} exp", with_prefix(b.t_special_s), with_prefix(a.cost.special_ops)));
  }
  line("time", fmt::format("at least {}s, at most {}s", with_prefix(b.lower_s), with_prefix(b.upper_s)));
  const std::string best =
      a.cost.flops() > 0 ? fmt::format("; at best {}FLOP/s", with_prefix(a.attainable())) : "";
  line("bound by", fmt::format("{}{}", name(b.limit), best));
  for (const Fact& f : a.facts) {
    if (!f.line.empty()) line("compute-bound", f.line);
  }
  for (const std::string& note : b.notes) line("note", note);
  return text;
}

// One point under the machine's roof, both axes logarithmic.
Plot point_plot(const Question& q, const Answer& a, const perf::Hardware& hardware) {
  const perf::Bounds& b = a.bounds;
  if (a.cost.flops() == 0 || a.traffic() == 0) throw Error("--plot needs work that has both FLOPs and bytes");
  Plot plot{.title = fmt::format("{} on {}", q.work, hardware.title),
            .x_label = "FLOP per byte",
            .y_label = "TFLOP/s at best",
            .log_x = true,
            .log_y = true};
  const double peak = a.cost.flops() / b.t_math_s / 1e12;
  const double low = std::min(b.intensity, b.ridge) / 10, high = std::max(b.intensity, b.ridge) * 10;
  plot.series.push_back({"roof", {{low, peak * low / b.ridge}, {b.ridge, peak}, {high, peak}}});
  plot.series.push_back({q.describe(), {{b.intensity, a.attainable() / 1e12}}, true});
  plot.x_marks = {b.ridge};
  return plot;
}

}  // namespace

Answer evaluate(const Question& q, const perf::Hardware& hardware) {
  const perf::Cost c = q.cost();
  return {c, perf::bounds(c, hardware), q.facts ? q.facts(hardware) : std::vector<Fact>{}};
}

Json point_json(const Answer& a) {
  const perf::Bounds& b = a.bounds;
  Json out = {{"flops", a.cost.flops()}, {"bytes", a.traffic()},         {"intensity", b.intensity},
              {"ridge", b.ridge},        {"t_math_s", b.t_math_s},       {"t_comms_s", b.t_comms_s},
              {"lower_s", b.lower_s},    {"upper_s", b.upper_s},         {"bound", name(b.limit)},
              {"critical_b", nullptr},   {"flops_per_s", a.attainable()}};
  if (a.traffic() == 0) out["intensity"] = nullptr;  // nothing to divide by
  out["memory_bytes"] = a.cost.bytes();
  out["t_memory_s"] = b.t_memory_s;
  if (a.cost.link_bytes > 0) out["t_link_s"] = b.t_link_s;
  if (a.cost.special_ops > 0) {
    out["special_ops"] = a.cost.special_ops;
    out["t_special_s"] = b.t_special_s;
  }
  for (const Fact& f : a.facts) out[f.key] = to_json(f.value);
  return out;
}

Json head_json(const Question& q, const perf::Hardware& hardware) {
  Json out = {{"work", q.work}, {"hardware", hardware.name}};
  for (const auto& [name, value] : q.extents) {
    if (*value > 0) out[name] = *value;
  }
  for (const auto& [key, value] : q.settings)
    std::visit([&out, &name = key](const auto& v) { out[name] = v; }, value);
  return out;
}

void answer(const Question& question, const RooflineOptions& options) {
  const perf::Hardware hardware = overridden(hardware_argument(options.hardware), options);
  if (!options.sweep.empty()) return answer_sweep(question, options, hardware);
  const Answer a = evaluate(question, hardware);
  if (!options.plot.empty()) write_plot(point_plot(question, a, hardware), options.plot);
  if (!options.output.as_json()) return write_results(options.output, to_text(question, a, hardware));
  Json out = head_json(question, hardware);
  out.update(point_json(a));
  if (!a.bounds.notes.empty()) out["notes"] = a.bounds.notes;
  write_results(options.output, out.dump(2) + "\n");
}

}  // namespace tilewright::tw
