// Drawing of charts.
#include "harness/report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "harness/report/table.h"

namespace tilewright::lab {

namespace {

// Pixels around the plotting area: room for the tick texts and the axis labels.
constexpr double kLeft = 62, kRight = 18, kTop = 34, kBottom = 46;
constexpr double kCharacter = 6.4;  // mean width of a character at the label size of 11.5 px

double transformed(double value, Scale scale) {
  switch (scale) {
    case Scale::linear:
      return value;
    case Scale::log10:
      return std::log10(value);
    case Scale::log2:
      return std::log2(value);
  }
  return value;
}

double share(double value, const AxisSpec& axis) {
  const double low = transformed(axis.low, axis.scale), high = transformed(axis.high, axis.scale);
  return high > low ? (transformed(value, axis.scale) - low) / (high - low) : 0.5;
}

std::vector<Tick> linear_ticks(const AxisSpec& axis) {
  const double rough = (axis.high - axis.low) / 6;
  const double decade = std::pow(10, std::floor(std::log10(std::max(rough, 1e-300))));
  double step = 10 * decade;
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * decade >= rough) {
      step = factor * decade;
      break;
    }
  }
  std::vector<Tick> all;
  const double first = std::ceil(axis.low / step) * step;
  const int count = static_cast<int>(std::floor((axis.high - first) / step + 1e-9)) + 1;
  for (int i = 0; i < count; ++i) {
    const double v = first + i * step;
    all.push_back({v, short_number(v)});
  }
  return all;
}

// Decades; over fewer than three of them also twice and five times.
std::vector<Tick> decimal_ticks(const AxisSpec& axis) {
  const double decades = std::log10(axis.high / axis.low);
  std::vector<Tick> all;
  const int first = static_cast<int>(std::floor(std::log10(axis.low)));
  const int last = static_cast<int>(std::floor(std::log10(axis.high)));
  for (int exponent = first; exponent <= last; ++exponent) {
    const double decade = std::pow(10, exponent);
    for (double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * decade;
      if (factor > 1 && decades >= 3) continue;
      if (value >= axis.low * (1 - 1e-9) && value <= axis.high * (1 + 1e-9))
        all.push_back({value, short_number(value)});
    }
  }
  return all;
}

std::vector<Tick> binary_ticks(const AxisSpec& axis) {
  const int first = static_cast<int>(std::ceil(std::log2(axis.low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log2(axis.high) + 1e-9));
  const int step = std::max(1, (last - first + 7) / 8);
  std::vector<Tick> all;
  for (int e = first; e <= last; e += step) all.push_back({std::exp2(e), fmt::format("2{}", superscript(e))});
  return all;
}

}  // namespace

std::string svg_line(const std::string& style, Point from, Point to) {
  return fmt::format("<line class='{}' x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}'/>\n", style, from.x,
                     from.y, to.x, to.y);
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string superscript(int number) {
  constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out;
  for (char c : fmt::format("{}", number)) out += c == '-' ? "⁻" : kDigits[c - '0'];
  return out;
}

std::string short_number(double value) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (std::fabs(value) >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.3g}{}", std::fabs(value) < 1e-12 ? 0.0 : value, kPrefixes[prefix]);
}

std::vector<Tick> ticks(const AxisSpec& axis) {
  switch (axis.scale) {
    case Scale::linear:
      return linear_ticks(axis);
    case Scale::log10:
      return decimal_ticks(axis);
    case Scale::log2:
      return binary_ticks(axis);
  }
  return {};
}

Plot::Plot(AxisSpec x, AxisSpec y, int width, int height, std::string title)
    : x_(std::move(x)), y_(std::move(y)), width_(width), height_(height), title_(std::move(title)) {
  grid();
}

double Plot::px(double x) const { return kLeft + share(x, x_) * (width_ - kLeft - kRight); }
double Plot::py(double y) const { return height_ - kBottom - share(y, y_) * (height_ - kTop - kBottom); }

void Plot::grid() {
  const double bottom = height_ - kBottom, right = width_ - kRight;
  for (const Tick& t : ticks(x_)) {
    const double at = px(t.value);
    body_ += svg_line("grid", {at, kTop}, {at, bottom});
    body_ += fmt::format("<text class='tick' x='{:.1f}' y='{:.1f}' text-anchor='middle'>{}</text>", at,
                         bottom + 16, t.text);
  }
  for (const Tick& t : ticks(y_)) {
    const double at = py(t.value);
    body_ += svg_line("grid", {kLeft, at}, {right, at});
    body_ += fmt::format("<text class='tick' x='{:.1f}' y='{:.1f}' text-anchor='end'>{}</text>", kLeft - 7,
                         at + 4, t.text);
  }
  body_ += fmt::format("<text class='axis' x='{:.1f}' y='{}' text-anchor='middle'>{}</text>",
                       (kLeft + right) / 2, height_ - 9, escape_html(x_.label));
  body_ += fmt::format("<text class='axis' x='{}' y='{}'>{}</text>\n", 6, 16, escape_html(y_.label));
}

void Plot::line(const std::vector<Point>& points, const std::string& style, const std::string& tooltip) {
  std::string path;
  for (const Point& p : points)
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : " L", px(p.x), py(p.y));
  body_ += fmt::format("<path class='line {}' d='{}'><title>{}</title></path>\n", style, path,
                       escape_html(tooltip));
}

void Plot::point(Point at, const std::string& style, const std::string& tooltip) {
  const double x = px(at.x), y = py(at.y);
  body_ += fmt::format("<circle class='dot {}' cx='{:.1f}' cy='{:.1f}' r='4.5'><title>{}</title></circle>\n",
                       style, x, y, escape_html(tooltip));
  taken_.push_back({x - 5, y - 5, x + 5, y + 5});
}

void Plot::whisker(double x, const Interval& y, const std::string& style) {
  body_ += svg_line("line " + style, {px(x), py(y.low)}, {px(x), py(y.high)});
}

bool Plot::free(const Box& box) const {
  if (box.left < kLeft || box.right > width_ - 2 || box.top < kTop - 8 || box.bottom > height_ - kBottom)
    return false;
  return std::none_of(taken_.begin(), taken_.end(), [&](const Box& b) {
    return box.left < b.right && b.left < box.right && box.top < b.bottom && b.top < box.bottom;
  });
}

void Plot::label(Point at, const std::string& text, const std::string& style) {
  const double x = px(at.x), y = py(at.y);
  const double w = kCharacter * static_cast<double>(display_width(text)), h = 12;
  // Right, left, above, below, then farther above and below.
  const Point corners[] = {{x + 8, y - h / 2},      {x - 8 - w, y - h / 2}, {x - w / 2, y - h - 7},
                           {x - w / 2, y + 7},      {x + 8, y - h - 6},     {x + 8, y + 6},
                           {x - w / 2, y - h - 20}, {x - w / 2, y + 20}};
  for (const Point& corner : corners) {
    const Box box{corner.x, corner.y, corner.x + w, corner.y + h};
    if (!free(box)) continue;
    taken_.push_back(box);
    body_ += fmt::format("<text class='label {}' x='{:.1f}' y='{:.1f}'>{}</text>\n", style, box.left,
                         box.bottom - 2, escape_html(text));
    return;
  }
}

void Plot::text(Point at, const std::string& text, const std::string& style, Anchor anchor, double dy_px) {
  const double x = px(at.x), y = py(at.y) + dy_px;
  const double w = kCharacter * static_cast<double>(display_width(text));
  const double left = anchor == Anchor::start ? x : x - w;
  taken_.push_back({left, y - 11, left + w, y + 2});
  body_ += fmt::format("<text class='label {}' x='{:.1f}' y='{:.1f}' text-anchor='{}'>{}</text>\n", style, x,
                       y, anchor == Anchor::start ? "start" : "end", escape_html(text));
}

void Plot::text_along(Point from, Point to, const std::string& text, const std::string& style) {
  const double x = px(from.x), y = py(from.y);
  const double angle = std::atan2(py(to.y) - y, px(to.x) - x);
  const double w = kCharacter * static_cast<double>(display_width(text));
  // Boxes are upright: a chain of small ones covers the slanted text.
  const int boxes = static_cast<int>(std::ceil(w / 10));
  for (int box = 0; box < boxes; ++box) {
    const double at = 8 + 10 * box;
    const double cx = x + at * std::cos(angle), cy = y + at * std::sin(angle) - 6;
    taken_.push_back({cx - 5, cy - 7, cx + 5, cy + 7});
  }
  body_ += fmt::format(
      "<text class='label {}' transform='translate({:.1f},{:.1f}) rotate({:.1f})' x='8' y='-5'>{}</text>\n",
      style, x, y, angle * 180 / std::numbers::pi, escape_html(text));
}

std::string Plot::svg() const {
  return fmt::format(
      "<svg viewBox='0 0 {0} {1}' role='img' aria-label='{2}' "
      "xmlns='http://www.w3.org/2000/svg'>\n{3}</svg>\n",
      width_, height_, escape_html(title_), body_);
}

}  // namespace tilewright::lab
