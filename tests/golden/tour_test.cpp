// The blocks that docs/tour.md shows, printed by the program it describes. With TILEWRIGHT_UPDATE set the
// file is rewritten instead; the change is read as a diff.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace tilewright {
namespace {

const std::string kTour = std::string(TW_TEST_FOLDER) + "/../../docs/tour.md";

// The tour's example, compiled for plain x86-64: the text is the same on every machine.
SpecialisationReport example() {
  Context ctx({.cache_directory = "", .threads = 1, .isa = "baseline"});
  const auto attention_row = compile([](const Tensor& scores) { return softmax(scores / 8.f); });
  attention_row(ctx.randn({512, 1000}));
  return attention_row.report().at(0);
}

std::string first_lines(const std::string& text, int count) {
  std::istringstream in(text);
  std::string out, line;
  for (int i = 0; i < count && std::getline(in, line); ++i) out += line + "\n";
  return out;
}

// The file with the lines between "```name" and "```" replaced by `body`.
std::string with_block(const std::string& markdown, const std::string& name, const std::string& body) {
  const std::string fence = "```" + name + "\n";
  const auto begin = markdown.find(fence);
  if (begin == std::string::npos) {
    ADD_FAILURE() << kTour << " has no block " << name;
    return markdown;
  }
  const auto from = begin + fence.size();
  return markdown.substr(0, from) + body + markdown.substr(markdown.find("```", from));
}

TEST(Tour, ShowsWhatTheStagesPrint) {
  std::ostringstream text;
  text << std::ifstream(kTour).rdbuf();
  const std::string said = text.str();
  const SpecialisationReport report = example();
  ASSERT_EQ(report.kernels.size(), 1u);
  std::string real = with_block(said, "graph", report.graph);
  real = with_block(real, "simplified", report.fused);
  real = with_block(real, "tile", report.kernels[0].tile);
  real = with_block(real, "cpu", first_lines(report.kernels[0].source, 32) + "    …\n");
  if (std::getenv("TILEWRIGHT_UPDATE") != nullptr) {
    std::ofstream(kTour) << real;
  } else {
    EXPECT_EQ(said, real) << "`make golden` rewrites it";
  }
}

}  // namespace
}  // namespace tilewright
