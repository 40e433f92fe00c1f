// What a trace's records say, without a device.
#include "pairs/device_trace.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tilewright::lab {
namespace {

TEST(BusyUs, GapsDoNotCountAndOverlapsCountOnce) {
  EXPECT_EQ(busy_us({}), 0);
  EXPECT_EQ(busy_us({{1000, 3000}, {5000, 6000}}), 3);
  EXPECT_EQ(busy_us({{5000, 6000}, {1000, 3000}, {2000, 4000}, {2500, 2600}}), 4);
  EXPECT_EQ(busy_us({{1000, 2000}, {2000, 4000}}), 3) << "back to back";
}

// CUpti_ActivityKernel: kind, five fields in 12 bytes, start, end, completed, …
TEST(SpanOfRecord, ReadsTheTimesWhereCuptiPutsThem) {
  struct Kernel {
    std::int32_t kind = 10;
    std::uint8_t cache = 0, shared = 0;
    std::uint16_t registers = 32;
    std::int32_t requested = 0, executed = 0;
    std::uint64_t start = 7'000, end = 9'500, completed = 11'000;
  } kernel;
  const Span span = span_of_record(&kernel);
  EXPECT_EQ(span.begin_ns, 7'000u);
  EXPECT_EQ(span.end_ns, 9'500u);
}

// A machine without a GPU has no such clock, whether it has CUPTI or not, and says why.
TEST(DeviceTrace, WhereItCannotBeOpenedThereIsAReason) {
  const auto trace =
      open_device_trace([]() -> Status { return failure(Failure::Kind::device, "no device"); });
  ASSERT_FALSE(trace.ok());
  EXPECT_FALSE(trace.error().message.empty());
}

}  // namespace
}  // namespace tilewright::lab
