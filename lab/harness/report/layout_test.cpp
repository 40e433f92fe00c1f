// The page in a real browser, as wide as a laptop's window and as a phone: nothing is cut off.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "harness/report/report.h"
#include "harness/run/sample_run.h"

namespace tilewright::lab {
namespace {

std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string text;
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, got);
  ::pclose(pipe);
  return text;
}

std::string browser() {
  std::string path =
      output_of("command -v chromium || command -v chromium-browser || command -v google-chrome");
  while (!path.empty() && path.back() == '\n') path.pop_back();
  return path;
}

// Says how wide the page is, what leaves it on the right although nothing around it scrolls,
// what scrolls, and which texts leave their chart.
constexpr const char* kLook = R"js(<script>
const width = document.documentElement.clientWidth, outside = [], scrolling = [], cut = [];
const name = e => e.tagName + ' ' + (e.getAttribute('class') || '') + ' ' + e.textContent.slice(0, 20);
const scrolls = e => ['auto', 'scroll'].includes(getComputedStyle(e).overflowX);
for (const e of document.body.querySelectorAll('*')) {
  if (scrolls(e) && e.scrollWidth > e.clientWidth + 1) scrolling.push(name(e));
  let inside = false;
  for (let around = e.parentElement; around; around = around.parentElement) inside ||= scrolls(around);
  const box = e.getBoundingClientRect();
  if (!inside && box.width > 0 && box.right > width + 0.5) outside.push(name(e));
}
for (const e of document.querySelectorAll('svg text')) {
  const box = e.getBoundingClientRect(), chart = e.closest('svg').getBoundingClientRect();
  if (box.left < chart.left - 1 || box.right > chart.right + 1) cut.push(name(e));
}
parent.postMessage(`SEEN width ${width} outside [${outside}] scrolling [${scrolling}] cut [${cut}] END`, '*');
</script>)js";

std::string seen_at(int width, const std::string& html) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / fmt::format("page_layout_{}", ::getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "page.html") << html << kLook;
  // In a frame, which may be narrower than any window.
  std::ofstream(folder / "frame.html") << fmt::format(
      "<iframe src='page.html' style='border:0; width:{}px; height:900px'></iframe>"
      "<script>onmessage = said => document.title = said.data</script>",
      width);
  // Chromium has no sandbox in tests that run as root.
  const std::string text = output_of(
      fmt::format("timeout 60 '{}' --headless --no-sandbox --disable-gpu --user-data-dir='{}/profile' "
                  "--hide-scrollbars --virtual-time-budget=5000 --dump-dom 'file://{}/frame.html' 2>&1",
                  browser(), folder.string(), folder.string()));
  std::filesystem::remove_all(folder);
  const auto begin = text.find("SEEN "), end = text.find(" END");
  return begin == std::string::npos ? "the browser showed nothing: " + text.substr(0, 500)
                                    : text.substr(begin, end - begin);
}

// The sample, and names and figures as long as real ones are.
std::string page() {
  RunRecord run = synthetic::sample_run();
  for (const char* contender : {"eager", "compiled", "torch, pages kept", "torch max-autotune"}) {
    Row row = synthetic::row_of("dropout_add_layernorm_gradient", contender,
                                "32768x4096x7168 G8 contiguous, groups of 128", 123456, Verdict::faster);
    row.device_us = 123450;
    run.rows.push_back(row);
    run.environment.work.push_back(
        {row.target, row.device, row.shape, row.dtype, vector_work(1e9, DType::f32, 1e7, 1e7)});
  }
  return render_html(run);
}

TEST(Layout, NothingOfThePageIsCutOff) {
  if (browser().empty())
    GTEST_SKIP() << "no browser is on this machine: nobody looked at the page (apt-get install chromium)";
  EXPECT_EQ(seen_at(1280, page()), "SEEN width 1280 outside [] scrolling [] cut []");
  EXPECT_EQ(seen_at(390, page()), "SEEN width 390 outside [] scrolling [] cut []");
}

TEST(Layout, WhatIsCutOffIsSeen) {
  if (browser().empty()) GTEST_SKIP() << "no browser is on this machine";
  const std::string seen = seen_at(390, page() + "<p style='width:800px'>wide</p>");
  EXPECT_NE(seen.find("outside [P  wide]"), std::string::npos) << seen;
}

}  // namespace
}  // namespace tilewright::lab
