// A chart as SVG text: axes, grid, lines, points, labels. Colours are CSS classes (s0 … s7, ink, muted,
// grid), so that a page can show the same chart light and dark.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/stats/stats.h"

namespace tilewright::lab {

enum class Scale { linear, log10, log2 };

struct AxisSpec {
  std::string label;
  Scale scale = Scale::linear;
  double low = 0, high = 1;
};

// Ticks of an axis with their texts: decades, powers of two ("2¹²"), or about six round numbers.
struct Tick {
  double value = 0;
  std::string text;
};
std::vector<Tick> ticks(const AxisSpec& axis);

struct Point {
  double x = 0, y = 0;
};

// A chart is drawn twice, for a window and for a phone: text keeps its size, so that little of a wide one
// could be read there.
inline constexpr int kChartWidth = 720, kNarrowWidth = 350;  // in the SVG's own units; the page scales it

struct PlotFrame {
  int width = kChartWidth, height = 0;
  std::string title = {};
  std::vector<std::string> names = {};  // what end_names() is going to print
};

class Plot {
 public:
  Plot(AxisSpec x, AxisSpec y, PlotFrame frame);
  // `style` is a CSS class list: "s0", "ceiling".
  void line(const std::vector<Point>& points, const std::string& style, const std::string& tooltip);
  void point(Point at, const std::string& style, const std::string& tooltip);
  void whisker(double x, const Interval& y, const std::string& style);
  // Text beside a point, at the first of several places that no other label, point or line covers; dropped
  // when all are. What is drawn later is not avoided: names come last.
  void label(Point at, const std::string& text, const std::string& style);
  // The same of a line: beside it, as near to the end of `line` as there is such a place.
  void name_line(const std::vector<Point>& line, const std::string& text, const std::string& style);
  // The names of curves, each behind a piece of its line: right of the chart, at the height at which the
  // curve ends or as near as names do not cover each other; below a narrow chart.
  struct EndName {
    Point at;
    std::string text, style;
  };
  void end_names(std::vector<EndName> names);
  std::string svg() const;

 private:
  struct Box {
    double left, top, right, bottom;
  };
  double px(double x) const;
  double py(double y) const;
  bool free(const Box& box) const;
  bool put(Point corner, const std::string& text, const std::string& style);  // false: something is there
  void grid();

  AxisSpec x_, y_;
  PlotFrame frame_;
  double right_, below_ = 0;  // margins for names
  std::string body_;
  std::vector<Box> taken_;                        // labels and points, in pixels
  std::vector<std::pair<Point, Point>> strokes_;  // pieces of lines, in pixels
};

// An SVG line between two places in pixels.
std::string svg_line(const std::string& style, Point from, Point to);
// A chart as SVG of that size: what the page scales.
std::string svg_of(int width, double height, const std::string& title, const std::string& body);
std::string escape_html(std::string_view text);
std::string superscript(int number);     // "¹²"
std::string short_number(double value);  // 1500 → "1.5k", 2.1e9 → "2.1G", 0.25 → "0.25"

}  // namespace tilewright::lab
