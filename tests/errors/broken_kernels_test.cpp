// Kernels that a user edited and broke: the message is the compiler's, with the user's line.
#include "runtime/executable.h"
#include "support/hand_kernels.h"

#include <tilewright/tile/text.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace tilewright::runtime {
namespace {

// Puts `line` in front of the line that contains `marker`; the number of the line it became.
int insert_before(std::string& text, const std::string& marker, const std::string& line) {
  const auto found = text.find(marker);
  EXPECT_NE(found, std::string::npos) << text;
  const auto at = text.rfind('\n', found) + 1;
  text.insert(at, line + "\n");
  return static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) + 1;
}

TEST(BrokenKernels, EditedCppIsQuotedWithItsLine) {
  auto device = Device::open("cpu");
  ASSERT_TRUE(device) << device.error().message;
  KernelStore store(*device, nullptr);
  const tile::Kernel kernel = tile::samples::elu_of(1000, 256);
  backends::Source source = store.get(kernel).value()->source;
  const int line = insert_before(source.text, "extern \"C\"", "int wrong = nowhere;");
  const auto broken = store.get_edited(kernel, source);
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().kind, Failure::Kind::compile);
  EXPECT_NE(broken.error().message.find("nowhere"), std::string::npos) << broken.error().message;
  EXPECT_NE(broken.error().message.find(":" + std::to_string(line) + ":"), std::string::npos)
      << broken.error().message;
}

TEST(BrokenKernels, EditedTileIrIsQuotedWithItsLine) {
  std::string text = tile::print(tile::samples::elu_of(1000, 256));
  const int line = insert_before(text, "store", "  %wrong = nonsense %x");
  const auto broken = tile::parse(text);
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(broken.error().message.find(std::to_string(line)), std::string::npos) << broken.error().message;
  EXPECT_NE(broken.error().message.find("nonsense"), std::string::npos) << broken.error().message;
}

// A cache whose folder cannot be used costs compiling again, and no more.
TEST(BrokenKernels, ACacheThatCannotBeWrittenStopsNothing) {
  auto device = Device::open("reference");
  BinaryCache cache("/proc/tilewright");
  KernelStore store(*device, &cache);
  EXPECT_TRUE(store.get(tile::samples::elu_of(1000, 256)).ok());
}

}  // namespace
}  // namespace tilewright::runtime
