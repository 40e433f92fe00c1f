// Plots through gnuplot: lines, points and marks to an SVG or PNG file.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tilewright::tw {

struct Series {
  std::string label;
  std::vector<std::pair<double, double>> points;
  bool as_points = false;  // marks instead of a line
};

struct Plot {
  std::string title;
  std::string x_label, y_label;
  bool log_x = false, log_y = false;
  std::vector<Series> series;
  std::vector<double> x_marks;  // dashed vertical lines
};

// The gnuplot script for `path`, whose extension says the format. Throws Error for another than .svg or .png.
std::string gnuplot_script(const Plot& plot, const std::string& path);

// Throws Error for a wrong extension, std::runtime_error when gnuplot is missing or fails.
void write_plot(const Plot& plot, const std::string& path);

}  // namespace tilewright::tw
