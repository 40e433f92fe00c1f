// Tables for a terminal, Markdown and CSV.
#pragma once

#include <string>
#include <vector>

#include "harness/run/record.h"

namespace tilewright::lab {

enum class Align { left, right };

// Columns that align by what one sees: UTF-8 counts by characters, colours count nothing.
class TextTable {
 public:
  void column(std::string header, Align align);
  void row(std::vector<std::string> cells);  // as many as there are columns
  void rule();                               // a line between groups
  // No line is wider than `width`: the first column gives way, ending in "…".
  std::string to_string(int width) const;
  std::string to_markdown() const;

 private:
  struct Column {
    std::string header;
    Align align;
  };
  std::vector<std::size_t> widths(int width) const;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty one is a rule
};

// Characters on screen of UTF-8 text; escape sequences have none.
std::size_t display_width(std::string_view text);
std::string time_text(double us);  // four digits: "12.34 us", "1.204 ms", "2.310 s"
// The same in the unit in which `like_us` is written: what stands in one line is read together.
std::string time_text(double us, double like_us);

// The device's time in the unit of the row's call. "=": the calls are the work, and there is no second time.
// "–": there should be one and is none.
std::string device_time_text(const Row& row);
std::string device_time_text(const Row& row, double like_us);
// "4120 GB/s", "36.75 TFLOP/s"; empty where there is none.
std::string short_rate_text(const Row& row);

// What contenders of the run are that its reader cannot know, a sentence each: "eager: …".
std::vector<std::string> contender_notes(const RunRecord& run);

struct TableOptions {
  int width = 140;
  enum class Colour { none, ansi } colour = Colour::none;
};
// Workload, contender, time of a call ± 95 % interval, the device's own time, rate, share of the roofline,
// speedup over the baseline with its interval, worst error / bound, verdict; below it the notes, and the
// harness's own share of an iteration.
std::string render_table(const RunRecord& run, const TableOptions& options = {});
std::string render_markdown(const std::vector<Row>& rows);
std::string render_csv(const std::vector<Row>& rows);  // one column per JSON field, intervals as two

}  // namespace tilewright::lab
