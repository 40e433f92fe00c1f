// Drawing of charts.
#include "harness/report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/report/table.h"

namespace tilewright::lab {

namespace {

// Pixels around the plotting area: room for the tick texts and the axis labels.
constexpr double kLeft = 62, kRight = 18, kTop = 34, kBottom = 46;
constexpr double kCharacter = 6.4;  // mean width of a character at the label size of 11.5 px
constexpr double kHeight = 12;      // of a label
constexpr double kSwatch = 14;      // length of the piece of line in front of a curve's name
constexpr double kNameAt = 26;      // where the name begins, behind the chart

double text_width(const std::string& text) { return kCharacter * static_cast<double>(display_width(text)); }

struct Rectangle {
  double left, top, right, bottom;
};
// Whether a part of the stroke lies within, by Liang and Barsky's clipping.
bool crosses(const Rectangle& box, Point from, Point to) {
  double enters = 0, leaves = 1;
  const auto clip = [&](double step, double room) {
    if (step == 0) return room >= 0;
    const double at = room / step;
    if (step < 0)
      enters = std::max(enters, at);
    else
      leaves = std::min(leaves, at);
    return enters <= leaves;
  };
  return clip(from.x - to.x, from.x - box.left) && clip(to.x - from.x, box.right - from.x) &&
         clip(from.y - to.y, from.y - box.top) && clip(to.y - from.y, box.bottom - from.y);
}

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

std::string svg_of(int width, double height, const std::string& title, const std::string& body) {
  return fmt::format(
      "<svg viewBox='0 0 {} {:.0f}' role='img' aria-label='{}' "
      "xmlns='http://www.w3.org/2000/svg'>\n{}</svg>\n",
      width, height, escape_html(title), body);
}

Plot::Plot(AxisSpec x, AxisSpec y, PlotFrame frame)
    : x_(std::move(x)), y_(std::move(y)), frame_(std::move(frame)), right_(kRight) {
  if (frame_.width > kNarrowWidth)
    for (const std::string& name : frame_.names) right_ = std::max(right_, kNameAt + text_width(name) + 4);
  grid();
}

double Plot::px(double x) const { return kLeft + share(x, x_) * (frame_.width - kLeft - right_); }
double Plot::py(double y) const {
  return frame_.height - kBottom - share(y, y_) * (frame_.height - kTop - kBottom);
}

void Plot::grid() {
  const double bottom = frame_.height - kBottom, right = frame_.width - right_;
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
                       (kLeft + right) / 2, frame_.height - 9, escape_html(x_.label));
  body_ += fmt::format("<text class='axis' x='{}' y='{}'>{}</text>\n", 6, 16, escape_html(y_.label));
}

void Plot::line(const std::vector<Point>& points, const std::string& style, const std::string& tooltip) {
  std::string path;
  for (std::size_t i = 1; i < points.size(); ++i)
    strokes_.push_back({{px(points[i - 1].x), py(points[i - 1].y)}, {px(points[i].x), py(points[i].y)}});
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
  const Point low{px(x), py(y.low)}, high{px(x), py(y.high)};
  strokes_.emplace_back(low, high);
  body_ += svg_line("line " + style, low, high);
}

bool Plot::free(const Box& box) const {
  const double right = right_ > kRight ? frame_.width - right_ : frame_.width - 2;
  if (box.left < kLeft || box.right > right || box.top < kTop - 8 || box.bottom > frame_.height - kBottom)
    return false;
  const bool covers = std::any_of(taken_.begin(), taken_.end(), [&](const Box& b) {
    return box.left < b.right && b.left < box.right && box.top < b.bottom && b.top < box.bottom;
  });
  return !covers && std::none_of(strokes_.begin(), strokes_.end(), [&](const auto& stroke) {
    return crosses({box.left, box.top, box.right, box.bottom}, stroke.first, stroke.second);
  });
}

bool Plot::put(Point corner, const std::string& text, const std::string& style) {
  const Box box{corner.x, corner.y, corner.x + text_width(text), corner.y + kHeight};
  if (!free(box)) return false;
  taken_.push_back(box);
  body_ += fmt::format("<text class='label {}' x='{:.1f}' y='{:.1f}'>{}</text>\n", style, box.left,
                       box.bottom - 2, escape_html(text));
  return true;
}

void Plot::label(Point at, const std::string& text, const std::string& style) {
  const double x = px(at.x), y = py(at.y), w = text_width(text), h = kHeight;
  // Right, left, above, below, beside these, then farther above and below.
  const Point corners[] = {{x + 8, y - h / 2},      {x - 8 - w, y - h / 2}, {x - w / 2, y - h - 7},
                           {x - w / 2, y + 7},      {x + 8, y - h - 6},     {x + 8, y + 6},
                           {x - 8 - w, y - h - 6},  {x - 8 - w, y + 6},     {x - w / 2, y - h - 20},
                           {x - w / 2, y + 20},     {x + 8, y - h - 18},    {x + 8, y + 18},
                           {x - 8 - w, y - h - 18}, {x - 8 - w, y + 18}};
  for (const Point& corner : corners)
    if (put(corner, text, style)) return;
}

void Plot::name_line(const std::vector<Point>& line, const std::string& text, const std::string& style) {
  constexpr double kStep = 8, kGap = 4;
  const double w = text_width(text);
  for (std::size_t i = line.size(); i-- > 1;) {
    const Point end{px(line[i].x), py(line[i].y)}, begin{px(line[i - 1].x), py(line[i - 1].y)};
    const int steps = 1 + static_cast<int>(std::hypot(end.x - begin.x, end.y - begin.y) / kStep);
    for (int step = 0; step <= steps; ++step) {
      const double part = static_cast<double>(step) / steps;
      const double x = end.x + part * (begin.x - end.x), y = end.y + part * (begin.y - end.y);
      for (const double top : {y - kGap - kHeight, y + kGap})
        for (const double left : {x - kGap - w, x + kGap})
          if (put({left, top}, text, style)) return;
    }
  }
}

void Plot::end_names(std::vector<EndName> names) {
  constexpr double kApart = 14, kBetween = 18;
  const auto draw = [&](const EndName& name, double x, double y) {
    body_ += svg_line("line " + name.style, {x, y}, {x + kSwatch, y});
    body_ += fmt::format("<text class='label ink' x='{:.1f}' y='{:.1f}'>{}</text>\n", x + kSwatch + 5, y + 4,
                         escape_html(name.text));
  };
  if (frame_.width <= kNarrowWidth) {
    constexpr double kFirst = 8;
    double x = kFirst;
    below_ = kBetween;
    for (const EndName& name : names) {
      const double width = kSwatch + 5 + text_width(name.text);
      if (x > kFirst && x + width > frame_.width) x = kFirst, below_ += kBetween;
      draw(name, x, frame_.height + below_ - 8);
      x += width + kBetween;
    }
    return;
  }
  std::stable_sort(names.begin(), names.end(),
                   [](const EndName& a, const EndName& b) { return a.at.y > b.at.y; });
  std::vector<double> heights;
  heights.reserve(names.size());
  for (const EndName& name : names)
    heights.push_back(heights.empty() ? py(name.at.y) : std::max(py(name.at.y), heights.back() + kApart));
  double lowest = frame_.height - kBottom;
  for (std::size_t i = names.size(); i-- > 0; lowest = heights[i] - kApart)
    heights[i] = std::min(heights[i], lowest);
  for (std::size_t i = 0; i < names.size(); ++i)
    draw(names[i], frame_.width - right_ + kNameAt - kSwatch - 5, heights[i]);
}

std::string Plot::svg() const { return svg_of(frame_.width, frame_.height + below_, frame_.title, body_); }

}  // namespace tilewright::lab
