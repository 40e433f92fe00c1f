// Writing a gnuplot script and running it through a pipe.
#include "tw/command/plot.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

namespace tilewright::tw {

namespace {

// Single-quoted for gnuplot, where a quote is doubled and nothing else is special.
std::string gnuplot_string(std::string_view text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'') out += '\'';
    out += c;
  }
  return out + "'";
}

std::string terminal_for(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".svg")
    return "svg size 900,560 dynamic background '#ffffff' font 'sans-serif,14' noenhanced";
  if (extension == ".png") return "pngcairo size 1350,840 font 'sans,20' noenhanced";
  throw Error(fmt::format("cannot plot to '{}': the name must end in .svg or .png", path));
}

bool on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const auto colon = rest.find(':');
    const auto file = std::filesystem::path(rest.substr(0, colon)) / program;
    if (::access(file.c_str(), X_OK) == 0) return true;
    rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  }
  return false;
}

}  // namespace

std::string gnuplot_script(const Plot& plot, const std::string& path) {
  std::string out = fmt::format("set terminal {}\nset output {}\n", terminal_for(path), gnuplot_string(path));
  out += fmt::format("set title {}\nset xlabel {}\nset ylabel {}\n", gnuplot_string(plot.title),
                     gnuplot_string(plot.x_label), gnuplot_string(plot.y_label));
  out +=
      "set grid linetype 1 linewidth 1 linecolor rgb '#e0e0e0'\nset key bottom right\nset border 3\nset tics "
      "nomirror\n";
  out += "set yrange [0:*]\n";
  if (plot.log_x) out += "set logscale x\n";
  if (plot.log_y) out += "set logscale y\nset yrange [*:*]\n";
  for (double x : plot.x_marks) {
    out += fmt::format(
        "set arrow from first {0}, graph 0 to first {0}, graph 1 nohead dashtype 2 linecolor '#888888'\n", x);
  }
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    out += fmt::format("$data{} << END\n", i);
    for (const auto& [x, y] : plot.series[i].points) out += fmt::format("{} {}\n", x, y);
    out += "END\n";
  }
  constexpr std::string_view kColors[] = {"#1f6fb4", "#d1495b", "#3a8f5c", "#8a5fb0", "#c98a1b", "#4a4a4a"};
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    const Series& s = plot.series[i];
    const std::string_view how = s.as_points ? "points pointtype 7 pointsize 1.2" : "lines linewidth 2.5";
    out += fmt::format("{} $data{} using 1:2 with {} linecolor '{}' title {}", i == 0 ? "plot" : ", \\\n    ",
                       i, how, kColors[i % std::size(kColors)], gnuplot_string(s.label));
  }
  return out + "\n";
}

void write_plot(const Plot& plot, const std::string& path) {
  const std::string script = gnuplot_script(plot, path);
  if (!on_path("gnuplot")) {
    throw std::runtime_error(
        "--plot needs gnuplot, which is not on the PATH; install it (apt-get install gnuplot-nox)");
  }
  if (!std::ofstream(path)) throw std::runtime_error(fmt::format("cannot write '{}'", path));
  // A gnuplot that dies early must give an exit status, not a signal to us.
  const auto old_handler = std::signal(SIGPIPE, SIG_IGN);
  std::FILE* pipe = ::popen("gnuplot >/dev/null", "w");
  const bool started = pipe != nullptr;
  if (started) std::fwrite(script.data(), 1, script.size(), pipe);
  const int status = started ? ::pclose(pipe) : -1;
  std::signal(SIGPIPE, old_handler);
  if (status != 0) {
    throw std::runtime_error(fmt::format("gnuplot could not write '{}' (status {})", path, status));
  }
}

}  // namespace tilewright::tw
