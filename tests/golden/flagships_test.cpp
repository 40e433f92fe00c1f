// The kernels of the flagships (flagships.h) as CUDA C++ for sm_90a, a file each, headed by the schedule and
// what it is predicted to take. With TILEWRIGHT_UPDATE set the files are rewritten; the change is read as a
// diff.
#include "golden/flagships.h"

#include "passes/pipeline.h"
#include "runtime/device.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace tilewright {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class Flagships : public ::testing::TestWithParam<Flagship> {
 protected:
  // Texts of the kernels in the order in which they are launched, by file name.
  static std::map<std::string, std::string> printed() {
    const auto device = runtime::Device::open("cuda", {.compile_only = "sm_90a"}).value();
    const backends::Backend& backend = device->backend();
    const passes::Compiled compiled = passes::run_pipeline(GetParam().graph(), backend.target());
    EXPECT_TRUE(compiled.taken_apart.empty());
    std::map<std::string, std::string> texts;
    for (const tile::Kernel& kernel : compiled.plan.kernels) {
      const backends::Candidate best = backend.candidates(kernel).front();
      EXPECT_EQ(best.refusal, "") << kernel.name;
      texts[fmt::format("{:02}_{}.cu", texts.size(), kernel.name)] =
          fmt::format("// {}; predicted {:.3g} us\n{}", to_string(best.schedule), best.predicted_us,
                      backend.print(kernel, best.schedule).value().text);
    }
    return texts;
  }
  static fs::path folder() { return fs::path(TW_TEST_FOLDER) / "flagships" / GetParam().name; }
};

TEST_P(Flagships, PrintedCuda) {
  const std::map<std::string, std::string> texts = printed();
  if (std::getenv("TILEWRIGHT_UPDATE") != nullptr) {
    fs::remove_all(folder());
    fs::create_directories(folder());
    for (const auto& [name, text] : texts) std::ofstream(folder() / name) << text;
    return;
  }
  for (const auto& [name, text] : texts)
    EXPECT_EQ(text, content(folder() / name))
        << folder() / name << " differs; if the change is meant, `make golden` rewrites it; read the diff";
  for (const auto& entry : fs::directory_iterator(folder()))
    EXPECT_EQ(texts.count(entry.path().filename().string()), 1U) << entry.path() << " is no kernel any more";
}

INSTANTIATE_TEST_SUITE_P(Programs, Flagships, ::testing::ValuesIn(flagships().begin(), flagships().end()),
                         [](const auto& program) { return std::string(program.param.name); });

}  // namespace
}  // namespace tilewright
