#include "harness/run/knobs.h"

#include <gtest/gtest.h>
#include <tilewright/base/error.h>

namespace tilewright::lab {
namespace {

const Knob kColumns{
    .name = "cols", .values = {1024, 8192}, .doc = "columns of a row", .cuda_values = {65536}};
const Knob kShape{.name = "shape", .values = {Shape{8, 4}}, .doc = "rows x columns"};
const Knob kType{
    .name = "dtype", .values = {DType::f32}, .doc = "element type", .choices = {DType::f32, DType::bf16}};
const Knob kRate{.name = "p", .values = {0.1}, .doc = "drop probability", .least = 0, .most = 1};

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Knobs, EveryCombinationIsOneInstanceTheLastKnobFastest) {
  const Knob knobs[] = {kColumns, kRate};
  const auto all = expand(knobs, DeviceKind::cpu, {});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].to_string(), "cols=1024 p=0.1");
  EXPECT_EQ(all[1].integer("cols"), 8192);
  EXPECT_EQ(all[1].real("p"), 0.1);
}

TEST(Knobs, AGpuHasItsOwnDefaultsWhenDeclared) {
  const Knob knobs[] = {kColumns, kRate};
  const auto all = expand(knobs, DeviceKind::cuda, {});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].integer("cols"), 65536);
}

TEST(Knobs, SettingsOverrideAndTheLastOneWins) {
  const Knob knobs[] = {kColumns};
  const Setting settings[] = {parse_setting("cols=4"), parse_setting("softmax.cols=2^3..2^5,7")};
  EXPECT_EQ(settings[1].pair, "softmax");
  const auto all = expand(knobs, DeviceKind::cpu, settings);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].integer("cols"), 8);
  EXPECT_EQ(all[2].integer("cols"), 32);
  EXPECT_EQ(all[3].integer("cols"), 7);
}

TEST(Knobs, EachTypeParses) {
  EXPECT_EQ(std::get<Shape>(parse_values(kShape, "2^10x3")[0]), (Shape{1024, 3}));
  EXPECT_EQ(std::get<DType>(parse_values(kType, "bf16")[0]), DType::bf16);
  EXPECT_EQ(std::get<double>(parse_values(kRate, "1e-3")[0]), 1e-3);
  EXPECT_EQ(std::get<std::int64_t>(parse_values(kColumns, "5")[0]), 5);
}

TEST(Knobs, WrongValuesSayWhatWasExpected) {
  EXPECT_EQ(message_of([] { parse_values(kColumns, "12k"); }),
            "--set cols=12k: not an integer (knob cols: columns of a row; write for example 8192, 2^13 or "
            "2^10..2^16)");
  EXPECT_EQ(message_of([] { parse_values(kType, "f64"); }),
            "--set dtype=f64: must be one of f32, bf16 (knob dtype: element type)");
  EXPECT_NE(message_of([] { parse_values(kType, "float"); }).find("not a dtype"), std::string::npos);
  EXPECT_NE(message_of([] { parse_values(kShape, "4x"); }).find("not a shape"), std::string::npos);
  EXPECT_NE(message_of([] { parse_values(kShape, "4x-1"); }).find("not a shape"), std::string::npos);
  EXPECT_NE(message_of([] { parse_values(kRate, "nan"); }).find("not a number"), std::string::npos);
  for (const char* bad : {"2^63", "10^19", "", "1,,2", "9..1", "0..8", "99999999999999999999"}) {
    EXPECT_NE(message_of([&] { parse_values(kColumns, bad); }).find("not an integer"), std::string::npos)
        << bad;
  }
}

TEST(Knobs, ValuesOutOfRangeSayTheRange) {
  EXPECT_EQ(message_of([] { parse_values(kColumns, "-5"); }),
            "--set cols=-5: must be 1 to 1099511627776 (knob cols: columns of a row)");
  for (const char* bad : {"0", "2^41", "9223372036854775807", "8,0", "2^40..2^42"})
    EXPECT_NE(message_of([&] { parse_values(kColumns, bad); }).find("must be 1 to"), std::string::npos)
        << bad;
  EXPECT_NE(message_of([] { parse_values(kShape, "4x0"); }).find("each extent must be 1 to"),
            std::string::npos);
  EXPECT_NE(message_of([] { parse_values(kShape, "2^40x2^40"); }).find("more than any memory holds"),
            std::string::npos);
  EXPECT_NE(message_of([] { parse_values(kRate, "1.5"); }).find("must be 0 to 1"), std::string::npos);
  EXPECT_NE(message_of([] { parse_values(kRate, "-0.1"); }).find("must be 0 to 1"), std::string::npos);
  const Knob window{.name = "window", .values = {256}, .doc = "keys; 0: all", .least = 0};
  EXPECT_EQ(std::get<std::int64_t>(parse_values(window, "0")[0]), 0);
}

TEST(Knobs, UnknownKeysListTheKnobs) {
  const Knob knobs[] = {kColumns, kType};
  const Setting settings[] = {parse_setting("colums=4")};
  EXPECT_EQ(message_of([&] { expand(knobs, DeviceKind::cpu, settings); }),
            "--set colums=4: there is no such knob; the knobs are cols, dtype");
}

TEST(Knobs, MalformedSettingsAreRefused) {
  for (const char* bad : {"cols", "=4", "cols=", ".cols=4", "softmax.=4", ""}) {
    EXPECT_NE(message_of([&] { parse_setting(bad); }), "nothing was thrown") << bad;
  }
}

TEST(Knobs, RangesStopBeforeTheyOverflow) {
  Knob any = kColumns;
  any.most = 0x1p63;
  const auto values = parse_values(any, "2^61..9223372036854775807");
  EXPECT_EQ(values.size(), 2u);
}

TEST(Knobs, AskingForAKnobOfAnotherTypeIsABug) {
  Knobs knobs;
  knobs.set("cols", 4);
  EXPECT_THROW(knobs.real("cols"), std::logic_error);
  EXPECT_THROW(knobs.integer("rows"), std::logic_error);
}

}  // namespace
}  // namespace tilewright::lab
