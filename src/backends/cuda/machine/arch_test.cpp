// Architectures are compared as numbers: as text "sm_100" would stand before "sm_90".
#include "backends/cuda/machine/arch.h"

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

TEST(Arch, KeepsItsText) {
  for (const char* text : {"sm_80", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_103a", "sm_120"}) {
    const auto arch = Arch::parse(text);
    ASSERT_TRUE(arch.ok()) << arch.error().message;
    EXPECT_EQ(arch->text(), text);
  }
}

TEST(Arch, LaterOnesKeepWhatHopperBroughtButItsDots) {
  for (const char* text : {"sm_90a", "sm_100", "sm_120"}) {
    const Arch arch = Arch::parse(text).value();
    EXPECT_TRUE(arch.has_clusters() && arch.overlaps_launches()) << text;
    EXPECT_EQ(arch.has_warpgroup_dots(), std::string(text) == "sm_90a") << text;
  }
  EXPECT_FALSE(Arch::parse("sm_90").value().has_warpgroup_dots());
  EXPECT_FALSE(Arch::parse("sm_89").value().has_clusters());
}

TEST(Arch, RefusesWhatIsNone) {
  for (const char* text : {"", "sm_", "sm_9", "sm_x0", "sm_90b", "compute_90a", "90"})
    EXPECT_EQ(Arch::parse(text).error().kind, Failure::Kind::invalid) << text;
  EXPECT_EQ(Arch::parse("sm_75").error().kind, Failure::Kind::unsupported);
}

TEST(Arch, OfADeviceHasItsOwnInstructionsWhereKernelsUseThem) {
  EXPECT_EQ(Arch::of_device(9, 0).text(), "sm_90a");
  EXPECT_EQ(Arch::of_device(8, 6).text(), "sm_86");
  EXPECT_EQ(Arch::of_device(10, 0).text(), "sm_100");
}

}  // namespace
}  // namespace tilewright::cuda
