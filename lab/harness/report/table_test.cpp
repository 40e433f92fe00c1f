#include "harness/report/table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/run/sample_run.h"

namespace tilewright::lab {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  auto lines = split(text, '\n');
  lines.pop_back();
  return lines;
}

TEST(DisplayWidth, CountsCharactersAndNoColours) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("±1.2µs×"), 7u);
  EXPECT_EQ(display_width("\x1b[32mFASTER\x1b[0m"), 6u);
}

TEST(TimeText, KeepsFourDigitsAndChoosesTheUnit) {
  EXPECT_EQ(time_text(1.5), "1.500 us");
  EXPECT_EQ(time_text(12.345), "12.35 us");
  EXPECT_EQ(time_text(999.99), "1000 us");
  EXPECT_EQ(time_text(1000), "1.000 ms");
  EXPECT_EQ(time_text(2.5e6), "2.500 s ");
}

TEST(TextTable, ColumnsAlignByWhatOneSees) {
  TextTable table;
  table.column("name", Align::left);
  table.column("value", Align::right);
  table.row({"ü", "1"});
  table.row({"long", "1×"});
  EXPECT_EQ(table.to_string(80), "name  value\n───────────\nü         1\nlong     1×\n");
}

TEST(TextTable, TheFirstColumnGivesWay) {
  TextTable table;
  table.column("workload", Align::left);
  table.column("x", Align::left);
  table.row({"a_very_long_wörkload_name", "12345"});
  for (const std::string& line : lines_of(table.to_string(20))) EXPECT_LE(display_width(line), 20u) << line;
  EXPECT_NE(table.to_string(20).find("a_very_long_…  12345"), std::string::npos) << table.to_string(20);
}

TEST(RenderTable, SaysWhatEagerIsWhereItTakesPart) {
  RunRecord run = synthetic::sample_run();
  EXPECT_NE(render_table(run).find("eager: the program as written"), std::string::npos);
  EXPECT_EQ(render_table(run).find("decomposed: "), std::string::npos);
  run.rows[2].contender = "decomposed";
  EXPECT_NE(render_table(run).find("decomposed: each primitive operation"), std::string::npos);
  std::erase_if(run.rows, [](const Row& row) { return row.contender == "eager"; });
  EXPECT_EQ(render_table(run).find("eager: "), std::string::npos);
}

TEST(RenderTable, FitsTheTerminal) {
  RunRecord run = synthetic::sample_run();
  run.rows[0].target = "a_workload_with_a_name_that_is_far_too_long_for_any_terminal_table";
  run.rows[2].note =
      std::string(70, 'x') + " " + std::string(90, 'y') + " and more words until the line is full";
  const std::string text = render_table(run);
  for (const std::string& line : lines_of(text)) EXPECT_LE(display_width(line), 140u) << line;
}

TEST(RenderTable, ShowsTheFiguresBesideTheirFloorBaselineAndError) {
  const std::string text = render_table(synthetic::sample_run());
  const auto lines = lines_of(text);
  const auto row =
      std::find_if(lines.begin(), lines.end(), [](const auto& l) { return l.find("compiled") != l.npos; });
  ASSERT_NE(row, lines.end());
  for (const char* part :
       {"1.000 ms ± 1.5%", "40.0 GB/s", "90%", "3.00× [2.90–3.10]", "4.2e-07/4.8e-06", "FASTER"}) {
    EXPECT_NE(row->find(part), std::string::npos) << part << " in " << *row;
  }
  EXPECT_NE(text.find("softmax 8192x1024 f32/tile: round 1: y[3,17]"), std::string::npos);
  EXPECT_NE(text.find("0.012 us of each iteration"), std::string::npos);
}

TEST(RenderTable, ShowsTheDevicesOwnTimeOrWhyThereIsNone) {
  RunRecord run = synthetic::sample_run();
  const std::string on_the_host = render_table(run);
  EXPECT_NE(on_the_host.find("1.000 ms ± 1.5%       =  40.0 GB/s"), std::string::npos) << on_the_host;
  EXPECT_NE(on_the_host.find("where the device is the host"), std::string::npos);
  for (Row& row : run.rows) row.device = "cuda:0";
  run.rows[1].device_us = 812.5;
  const std::string on_a_gpu = render_table(run);
  EXPECT_NE(on_a_gpu.find("1.000 ms ± 1.5%  0.8125 ms  40.0 GB/s"), std::string::npos) << on_a_gpu;
  EXPECT_NE(on_a_gpu.find("3.000 ms ± 1.5%          –  13.3 GB/s"), std::string::npos) << on_a_gpu;
  EXPECT_EQ(on_a_gpu.find("where the device is the host"), std::string::npos);
}

TEST(RenderTable, ShowsWhatCompilingTookWhereSomeRowSays) {
  RunRecord run = synthetic::sample_run();
  EXPECT_EQ(render_table(run).find("compile "), std::string::npos);
  run.rows[1].compile_ms = 31.4;
  EXPECT_NE(render_table(run).find("  31 ms  "), std::string::npos) << render_table(run);
  run.rows[1].from_disk = true;
  EXPECT_NE(render_table(run).find(" 31 ms* "), std::string::npos) << render_table(run);
  EXPECT_NE(render_table(run).find("were found on disk"), std::string::npos);
}

TEST(RenderTable, ShowsWhatWasWaitedForWhereSomeRowSays) {
  RunRecord run = synthetic::sample_run();
  EXPECT_EQ(render_table(run).find("waits "), std::string::npos);
  run.rows[1].waited_us = 31.4;
  EXPECT_NE(render_table(run).find("waits "), std::string::npos);
  EXPECT_NE(render_table(run).find("  31.40 us  "), std::string::npos) << render_table(run);
}

TEST(RenderTable, ColoursOnlyWhenAsked) {
  EXPECT_EQ(render_table(synthetic::sample_run()).find('\x1b'), std::string::npos);
  TableOptions coloured;
  coloured.colour = TableOptions::Colour::ansi;
  EXPECT_NE(render_table(synthetic::sample_run(), coloured).find("\x1b[31mWRONG"), std::string::npos);
}

TEST(RenderTable, ExactOutputsSaySo) {
  RunRecord run;
  run.rows.push_back(synthetic::row_of("copy", "tile", "4096", 2, Verdict::baseline));
  run.rows[0].max_rel_err = run.rows[0].tolerance = 0;
  EXPECT_NE(render_table(run).find("exact"), std::string::npos);
}

TEST(Export, MarkdownAndCsvHaveALineForEachRow) {
  const RunRecord run = synthetic::sample_run();
  EXPECT_EQ(lines_of(render_markdown(run.rows)).size(), run.rows.size() + 2);
  const auto csv = lines_of(render_csv(run.rows));
  ASSERT_EQ(csv.size(), run.rows.size() + 1);
  const auto columns = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
  for (const std::string& line : csv) EXPECT_EQ(columns(line), columns(csv[0])) << line;
}

TEST(Export, CsvQuotesWhatNeedsIt) {
  Row row = synthetic::row_of("a,\"b\"", "tile", "4", 1, Verdict::same);
  EXPECT_NE(render_csv({row}).find("\"a,\"\"b\"\"\",tile"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::lab
