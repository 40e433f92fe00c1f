// AnyFunction: what it holds, copies and calls.
#include "base/plain_message.h"

#include <tilewright/base/any_function.h>
#include <tilewright/base/error.h>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

namespace tilewright {
namespace {

int twice(int x) { return 2 * x; }
struct Counter {
  int value = 0;
  int next(int by) { return value += by; }
  int plus(int other) const { return value + other; }
};

TEST(AnyFunction, CallsWhateverCanBeCalled) {
  const int three = static_cast<int>(std::string("abc").size());
  const AnyFunction<int(int)> lambda = [three](int x) { return three * x; }, pointer = twice,
                              standard = std::function<int(int)>(twice);
  EXPECT_EQ(lambda(5), 15);
  EXPECT_EQ(pointer(5), 10);
  EXPECT_EQ(standard(5), 10);
  const AnyFunction<int(Counter&, int)> changes = &Counter::next;
  const AnyFunction<int(const Counter&, int)> reads = &Counter::plus;
  const AnyFunction<int(const Counter&)> member = &Counter::value;
  Counter counter;
  EXPECT_EQ(changes(counter, 4), 4);
  EXPECT_EQ(reads(counter, 5), 9);
  EXPECT_EQ(member(counter), 4);
}

TEST(AnyFunction, ConvertsWhatIsReturned) {
  const AnyFunction<std::string(const char*)> text = [](const char* c) { return c; };
  EXPECT_EQ(text("a"), "a");
  const AnyFunction<void()> nothing = [] { return 3; };
  nothing();
  EXPECT_FALSE((std::is_constructible_v<AnyFunction<int(int)>, std::string>));
  EXPECT_FALSE((std::is_constructible_v<AnyFunction<int(int)>, int (*)(std::string)>));
}

TEST(AnyFunction, PassesWhatCanOnlyBeMoved) {
  const AnyFunction<int(std::unique_ptr<int>)> takes = [](std::unique_ptr<int> p) { return *p; };
  EXPECT_EQ(takes(std::make_unique<int>(7)), 7);
}

TEST(AnyFunction, ACopyHasWhatItCallsForItself) {
  AnyFunction<int()> counts = [n = 0]() mutable { return ++n; };
  EXPECT_EQ(counts(), 1);
  AnyFunction<int()> copy = counts;
  EXPECT_EQ(counts(), 2);
  EXPECT_EQ(counts(), 3);
  EXPECT_EQ(copy(), 2);
  copy = counts;
  EXPECT_EQ(copy(), 4);
  EXPECT_EQ(counts(), 4);
}

TEST(AnyFunction, LetsGoOfWhatItHeld) {
  const auto held = std::make_shared<int>(1);
  {
    AnyFunction<int()> f = [held] { return *held; };
    AnyFunction<int()> moved = std::move(f);
    EXPECT_EQ(held.use_count(), 2);
    const AnyFunction<int()> copy = moved;
    EXPECT_EQ(held.use_count(), 3);
    moved = nullptr;
    EXPECT_EQ(held.use_count(), 2);
    EXPECT_EQ(copy(), 1);
  }
  EXPECT_EQ(held.use_count(), 1);
}

TEST(AnyFunction, OfNothingIsEmpty) {
  int (*const no_pointer)(int) = nullptr;
  EXPECT_FALSE((AnyFunction<int(int)>()));
  EXPECT_FALSE((AnyFunction<int(int)>(nullptr)));
  EXPECT_FALSE((AnyFunction<int(int)>(no_pointer)));
  EXPECT_FALSE((AnyFunction<int(int)>(std::function<int(int)>())));
  EXPECT_FALSE((AnyFunction<int(int)>(AnyFunction<short(int)>())));
  EXPECT_TRUE((AnyFunction<int(int)>(twice)));
  try {
    AnyFunction<int(int)>()(3);
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the function that is called is empty");
  }
}

}  // namespace
}  // namespace tilewright
