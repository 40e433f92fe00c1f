#include "harness/report/report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <sstream>
#include <stack>

#include "harness/report/charts.h"
#include "harness/report/plot.h"
#include "harness/report/table.h"
#include "harness/run/sample_run.h"

namespace tilewright::lab {
namespace {

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

// The first tag that does not match, or "". Attribute values here hold no '>'.
std::string unbalanced(const std::string& html) {
  std::stack<std::string> open;
  for (auto at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const auto end = html.find('>', at);
    if (end == std::string::npos) return "<";
    const bool closes = html[at + 1] == '/';
    const std::string tag = html.substr(at + (closes ? 2 : 1), end - at - (closes ? 2 : 1));
    const std::string name = tag.substr(0, tag.find(' '));
    if (tag.back() == '/' || name == "meta") continue;
    if (!closes) {
      open.push(name);
    } else if (open.empty() || open.top() != name) {
      return name;
    } else {
      open.pop();
    }
  }
  return open.empty() ? "" : open.top();
}

TEST(Report, IsOneWellFormedPageWithoutTheNetwork) {
  const std::string html = render_html(synthetic::sample_run());
  EXPECT_EQ(unbalanced(html.substr(html.find("<html"))), "");
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("<link"), std::string::npos);
  EXPECT_EQ(html.find("src="), std::string::npos);
  EXPECT_EQ(count(html, "http"),
            count(html, "xmlns='http://www.w3.org/2000/svg'"));  // a name, not an address
  EXPECT_EQ(html.find("nan"), std::string::npos);
  EXPECT_EQ(html.find("inf'"), std::string::npos);
}

TEST(Report, HoldsEveryRowAndTheConditions) {
  const RunRecord run = synthetic::sample_run();
  const std::string html = render_html(run);
  for (const Row& row : run.rows) EXPECT_NE(html.find(std::string(name(row.verdict))), std::string::npos);
  EXPECT_NE(html.find("round 1: y[3,17]"), std::string::npos);
  EXPECT_NE(html.find("AMD EPYC"), std::string::npos);
  EXPECT_NE(html.find("0123456789ab"), std::string::npos);
  EXPECT_NE(html.find("prefers-color-scheme: dark"), std::string::npos);
}

TEST(Report, TextIsEscaped) {
  RunRecord run = synthetic::sample_run();
  run.rows[0].target = "<script>alert(1)</script>";
  run.rows[1].contender = "a&b<c>";
  const std::string html = render_html(run);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("a&b<"), std::string::npos);
  EXPECT_NE(html.find("PyTorch &lt;1.13&gt; is not &quot;installed&quot;"), std::string::npos);
}

TEST(Report, AnEmptyRunIsStillAPage) { EXPECT_EQ(unbalanced(render_html({}).substr(16)), ""); }

TEST(Charts, TheSweepBecomesOneCurveAContender) {
  const RunRecord run = synthetic::sample_run();
  const auto charts = rate_charts(run, "cpu", series_styles(run));
  ASSERT_EQ(charts.size(), 1u);
  EXPECT_EQ(charts[0].title, "elu, f32: GB/s against N");
  EXPECT_EQ(count(charts[0].svg, "<path class='line s"), 3);
  EXPECT_EQ(count(charts[0].svg, "<circle"), 12);
}

// Small sizes are in a cache, where arithmetic is what bounds them.
TEST(Charts, ASweepAcrossUnitsIsOneCurveInThatOfItsLargestSize) {
  RunRecord run = synthetic::sample_run();
  const std::string before = rate_charts(run, "cpu", series_styles(run)).at(0).svg;
  for (Row& row : run.rows) {
    if (row.target != "elu" || row.shape.size() > 5) continue;
    row.unit = "GFLOP/s";
    *row.rate /= 2;  // a float operation for two bytes
  }
  const auto charts = rate_charts(run, "cpu", series_styles(run));
  ASSERT_EQ(charts.size(), 1u);
  EXPECT_EQ(charts[0].title, "elu, f32: GB/s against N");
  EXPECT_EQ(count(charts[0].svg, "<circle"), 12);
  const auto points = [](const std::string& svg) { return svg.substr(svg.find("<path class='line s")); };
  EXPECT_EQ(points(charts[0].svg).substr(0, 200), points(before).substr(0, 200));
}

// A pair whose shape is no product of numbers says itself where it stands.
TEST(Charts, WhatAPairSaysIsSweptIsTheAxisAndEachSeriesAChart) {
  RunRecord run;
  for (const char* series : {"H48 D64", "H48 D64 causal"}) {
    for (double length = 512; length <= 8192; length *= 2) {
      Row row = synthetic::row_of("attention", "compiled", fmt::format("Q{} {}", length, series), 100,
                                  Verdict::faster);
      row.rate = 50 * length;  // up to 400 TFLOP/s
      row.unit = "GFLOP/s";
      run.rows.push_back(row);
      run.environment.work.push_back(
          {row.target, row.device, row.shape, row.dtype, {}, SweepPoint{"sequence length", length, series}});
    }
  }
  const auto charts = rate_charts(run, "cpu", series_styles(run));
  ASSERT_EQ(charts.size(), 2u);
  EXPECT_EQ(charts[0].title, "attention H48 D64, f32: TFLOP/s against sequence length");
  EXPECT_EQ(charts[1].title, "attention H48 D64 causal, f32: TFLOP/s against sequence length");
  EXPECT_EQ(count(charts[0].svg, "<circle"), 5);
  EXPECT_NE(charts[0].svg.find(">400<"), std::string::npos) << charts[0].svg;
  EXPECT_EQ(parse_run(to_json(run))->environment.work, run.environment.work);
}

TEST(Charts, TheRooflineHasItsCeilingsAndAPointForEachContender) {
  const RunRecord run = synthetic::sample_run();
  const Chart chart = roofline_chart(run, "cpu", series_styles(run));
  EXPECT_EQ(count(chart.svg, "<path class='line ceiling"), 3);  // L3, memory, f32
  EXPECT_EQ(count(chart.svg, "<circle"), 5);  // softmax twice, and the largest elu three times
  EXPECT_NE(chart.svg.find("memory, 40 GB/s"), std::string::npos);
  EXPECT_NE(chart.svg.find(">softmax<"), std::string::npos);
}

// What is drawn, by where it stands: names with the room that they take, and pieces of lines.
struct Seen {
  struct Name {
    std::string text;
    double left, top, right, bottom;
  };
  std::vector<Name> names;
  std::vector<std::array<double, 4>> strokes;  // x1, y1, x2, y2
  double width = 0, height = 0;
};
std::string attribute(const std::string& tag, const std::string& name) {
  const auto at = tag.find(" " + name + "='");
  if (at == std::string::npos) return "";
  const auto begin = at + name.size() + 3;
  return tag.substr(begin, tag.find('\'', begin) - begin);
}
// `lines`: what the class of a line that counts begins with.
Seen seen_in(const std::string& svg, const std::string& lines) {
  Seen seen;
  const auto number = [](const std::string& text) { return std::strtod(text.c_str(), nullptr); };
  for (auto at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const auto end = svg.find('>', at);
    const std::string tag = svg.substr(at, end - at), style = attribute(tag, "class");
    if (tag.starts_with("<svg")) {
      std::istringstream(attribute(tag, "viewBox").substr(4)) >> seen.width >> seen.height;
    } else if (tag.starts_with("<text")) {
      const std::string text = svg.substr(end + 1, svg.find('<', end) - end - 1);
      const double x = number(attribute(tag, "x")), y = number(attribute(tag, "y"));
      const double wide = 6 * static_cast<double>(display_width(text));
      const std::string anchor = attribute(tag, "text-anchor");
      const double left = anchor == "end" ? x - wide : anchor == "middle" ? x - wide / 2 : x;
      seen.names.push_back({text, left, y - 8, left + wide, y});
    } else if (tag.starts_with("<line") && style.starts_with(lines)) {
      seen.strokes.push_back({number(attribute(tag, "x1")), number(attribute(tag, "y1")),
                              number(attribute(tag, "x2")), number(attribute(tag, "y2"))});
    } else if (tag.starts_with("<path")) {
      std::istringstream points(attribute(tag, "d"));
      double x = 0, y = 0, before_x = 0, before_y = 0;
      char sign = 0, comma = 0;
      while (points >> sign >> x >> comma >> y) {
        if (sign == 'L') seen.strokes.push_back({before_x, before_y, x, y});
        before_x = x, before_y = y;
      }
    }
  }
  return seen;
}
// "a name on a line", …; what leaves the chart; "" where all is well.
std::string names_in_the_way(const std::string& svg, const std::string& lines) {
  const Seen seen = seen_in(svg, lines);
  std::string said;
  for (const Seen::Name& name : seen.names) {
    if (name.left < -1 || name.right > seen.width + 1 || name.bottom > seen.height)
      said += fmt::format("'{}' leaves the chart\n", name.text);
    for (const auto& [x1, y1, x2, y2] : seen.strokes)
      for (double part = 0; part <= 1; part += 1.0 / 512)
        if (const double x = x1 + part * (x2 - x1), y = y1 + part * (y2 - y1);
            x > name.left && x < name.right && y > name.top && y < name.bottom) {
          said += fmt::format("'{}' stands on a line at {:.0f}, {:.0f}\n", name.text, x, y);
          break;
        }
  }
  return said;
}

// Curves that cross, ceilings side by side, dots all over their line.
RunRecord crowded_run() {
  RunRecord run = synthetic::sample_run();
  const char* contenders[] = {"torch max-autotune", "eager", "compiled, tuned", "torch, pages kept"};
  for (int c = 0; c < 4; ++c)
    for (int i = 0; i < 5; ++i) {
      Row row = synthetic::row_of("gemm", contenders[c], fmt::format("{}", 1024 << i), 10, Verdict::faster);
      row.rate = 100 + 40.0 * ((i * (c + 2)) % 5) + 3 * c;
      row.unit = "GFLOP/s";
      row.roofline = 0.2 + 0.15 * ((i + 2 * c) % 5);
      row.median_us = 10 + i;
      run.rows.push_back(row);
      const Work work = vector_work(1e6 * (i + 1) * (c + 1), DType::f32, 1e5, 1e5);
      run.environment.work.push_back({row.target, row.device, row.shape, row.dtype, work});
    }
  for (DeviceCeilings& of : run.environment.ceilings) {
    const auto math = of.ceilings.math;
    for (const MathRate& rate : math)
      for (const double factor : {0.92, 1.1, 1.2})
        of.ceilings.math.push_back({rate.unit, rate.dtype, factor * rate.flops_per_s});
  }
  return run;
}

TEST(Charts, NamesStandBesideLinesInWindowsAndOnPhones) {
  for (const RunRecord& run : {synthetic::sample_run(), crowded_run()}) {
    const SeriesStyles styles = series_styles(run);
    const Chart shares = share_chart(run, "cpu", styles);
    for (const std::string& svg : {shares.svg, shares.narrow})
      EXPECT_EQ(names_in_the_way(svg, ""), "") << svg;
    std::vector<Chart> charts = rate_charts(run, "cpu", styles);
    charts.push_back(roofline_chart(run, "cpu", styles));
    for (const Chart& chart : charts)
      for (const std::string& svg : {chart.svg, chart.narrow})
        EXPECT_EQ(names_in_the_way(svg, "line"), "") << svg;
  }
}

// Text keeps its size on a phone: a chart has a form as narrow as that, and none is wider than the page.
TEST(Charts, EachHasAFormForPhonesThatIsNotScrolled) {
  const std::string html = render_html(crowded_run());
  EXPECT_EQ(count(html, "<div class='wide'><svg viewBox='0 0 720 "), 4);
  EXPECT_EQ(count(html, "<div class='narrow'><svg viewBox='0 0 350 "), 4);
  EXPECT_EQ(count(html, "<svg"), 8);
  EXPECT_NE(html.find("svg { width:100%; height:auto; display:block; } .narrow { display:none; }"),
            std::string::npos);
  EXPECT_NE(html.find("@media (max-width:600px) { .wide { display:none; } .narrow { display:block; } }"),
            std::string::npos);
  EXPECT_EQ(html.find("svg { min-width"), std::string::npos);
}

// Dots over the whole line leave no room for their names, beside the last or the first of them.
TEST(Charts, DotsWithoutRoomForNamesAreToldByTheKey) {
  RunRecord run;
  const auto add = [&](const char* target, const std::string& contender, double share) {
    run.rows.push_back(synthetic::row_of(target, contender, "4096", 100, Verdict::faster));
    run.rows.back().roofline = share;
  };
  add("elu", "compiled", 0.3);
  EXPECT_TRUE(share_chart(run, "cpu", series_styles(run)).key.empty());
  for (int i = 1; i <= 9; ++i) add("softmax", fmt::format("torch, a long name {}", i), 0.11 * i);
  const Chart chart = share_chart(run, "cpu", series_styles(run));
  EXPECT_EQ(chart.key.size(), 9u);
  EXPECT_EQ(count(chart.svg, "<circle"), 10);
  EXPECT_EQ(count(chart.svg, "class='name'"), 1) << "compiled's";
}

TEST(Charts, WithoutCeilingsThereIsNoRoofline) {
  RunRecord run = synthetic::sample_run();
  run.environment.ceilings.clear();
  EXPECT_TRUE(roofline_chart(run, "cpu", series_styles(run)).svg.empty());
  EXPECT_TRUE(share_chart(run, "cuda:0", series_styles(run)).svg.empty());
}

TEST(Charts, WrongAndImpossibleRowsAreNotDrawn) {
  RunRecord run = synthetic::sample_run();
  run.rows[1].verdict = Verdict::impossible;
  EXPECT_EQ(count(roofline_chart(run, "cpu", series_styles(run)).svg, "<circle"), 4);
}

TEST(Ticks, AreRoundAndInside) {
  const auto texts = [](const AxisSpec& axis) {
    std::string all;
    for (const Tick& t : ticks(axis)) all += t.text + " ";
    return all;
  };
  EXPECT_EQ(texts({"", Scale::linear, 0, 50}), "0 10 20 30 40 50 ");
  EXPECT_EQ(texts({"", Scale::log10, 0.2, 2000}), "1 10 100 1k ");
  EXPECT_EQ(texts({"", Scale::log2, 4096, 65536}), "2¹² 2¹³ 2¹⁴ 2¹⁵ 2¹⁶ ");
  EXPECT_LE(ticks({"", Scale::log2, 1, 1 << 30}).size(), 9u);
}

TEST(Numbers, AreShort) {
  EXPECT_EQ(short_number(1500), "1.5k");
  EXPECT_EQ(short_number(2.1e9), "2.1G");
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(999.7), "1k");
}

}  // namespace
}  // namespace tilewright::lab
