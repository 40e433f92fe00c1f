// A chart as SVG text: axes, grid, lines, points, labels. Colours are CSS classes (s0 … s7, ink, muted,
// grid), so that a page can show the same chart light and dark.
#pragma once

#include <string>
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

class Plot {
 public:
  Plot(AxisSpec x, AxisSpec y, int width, int height, std::string title);
  // `style` is a CSS class list: "s0", "ceiling".
  void line(const std::vector<Point>& points, const std::string& style, const std::string& tooltip);
  void point(Point at, const std::string& style, const std::string& tooltip);
  void whisker(double x, const Interval& y, const std::string& style);
  // Text beside a point, at the first of several places that no other label or point covers; dropped when all
  // are.
  void label(Point at, const std::string& text, const std::string& style);
  // Text at exactly this place, `dy_px` below it.
  enum class Anchor { start, end };
  void text(Point at, const std::string& text, const std::string& style, Anchor anchor, double dy_px);
  // Text along a line, just above its `from` end.
  void text_along(Point from, Point to, const std::string& text, const std::string& style);
  std::string svg() const;

 private:
  struct Box {
    double left, top, right, bottom;
  };
  double px(double x) const;
  double py(double y) const;
  bool free(const Box& box) const;
  void grid();

  AxisSpec x_, y_;
  int width_, height_;
  std::string title_, body_;
  std::vector<Box> taken_;  // labels and points, in pixels
};

// An SVG line between two places in pixels.
std::string svg_line(const std::string& style, Point from, Point to);
std::string escape_html(std::string_view text);
std::string superscript(int number);     // "¹²"
std::string short_number(double value);  // 1500 → "1.5k", 2.1e9 → "2.1G", 0.25 → "0.25"

}  // namespace tilewright::lab
