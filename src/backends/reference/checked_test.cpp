#include <gtest/gtest.h>
#include <tilewright/tile/builder.h>

#include <functional>

#include "backends/reference/interpreter.h"

namespace tilewright::reference {
namespace {

using tile::Builder;
using tile::Value;
using tile::View;

// A kernel over x [n] and y [n] (n a scalar, so that the verifier can prove nothing), run checked on 16
// elements.
struct Parts {
  Builder k{"k"};
  Value n = k.scalar("n");
  View x = k.view("x", DType::f32, {n}), y = k.view("y", DType::f32, {n});
  Value p = k.program_id(0);
};

std::string problem_of(const std::function<void(Parts&)>& body, Index programs = 1, bool same_buffer = false,
                       bool initialized = true, Index bytes = 64) {
  Parts s;
  body(s);
  alignas(16) float x[16] = {}, y[16] = {};
  const tile::Kernel kernel = s.k.finish({{{programs, 1}}});
  const std::vector<ViewBinding> views{
      {.data = x, .extent_bytes = bytes, .initialized = initialized},
      {.data = same_buffer ? x : y, .extent_bytes = bytes, .initialized = initialized}};
  const Status status = run(kernel, views, {16}, {.checked = true});
  return status.ok() ? "" : status.error().message;
}

#define EXPECT_REPORTED(text, ...)                                                  \
  do {                                                                              \
    const std::string problem = problem_of(__VA_ARGS__);                            \
    EXPECT_NE(problem.find(text), std::string::npos) << problem;                    \
    EXPECT_NE(problem.find("(at checked_test.cpp:"), std::string::npos) << problem; \
  } while (false)

TEST(CheckedRun, AcceptsACorrectKernel) {
  EXPECT_EQ(
      problem_of([](Parts& s) { s.k.store(s.y, {s.p * 4}, s.k.load(s.x, {s.p * 4}, {.shape = {4}})); }, 4),
      "");
}

TEST(CheckedRun, ReportsBlocksOutsideTheView) {
  EXPECT_REPORTED(
      "load %x[%3] : tile<f32,[4]>: dim 0 goes from 14 to 18 in a view of 16 in program (2)",
      [](Parts& s) { s.k.load(s.x, {s.p * 7}, {.shape = {4}}); }, 3);
  EXPECT_REPORTED("dim 0 goes from -1 to 3", [](Parts& s) { s.k.load(s.x, {s.n - 17}, {.shape = {4}}); });
  EXPECT_REPORTED("store %y", [](Parts& s) { s.k.store(s.y, {s.n - 2}, s.k.literal(DType::f32, 0, {4})); });
}

TEST(CheckedRun, ReportsElementsOutsideTheBuffer) {
  EXPECT_REPORTED(
      "element [0,8] of the block: element 8 lies outside the buffer of 32 bytes",
      [](Parts& s) { s.k.load(s.x, {0}, {.shape = {16}}); }, 1, false, true, 32);
}

TEST(CheckedRun, ReportsIndicesOutOfRange) {
  EXPECT_REPORTED("gather %x[%4] : tile<f32,[4]>: element 3: index 16 along dim 0 of 16",
                  [](Parts& s) { s.k.gather(s.x, {s.k.arange(4) + 13}); });
  EXPECT_REPORTED("index -1", [](Parts& s) {
    s.k.scatter(s.y, {s.k.arange(4) + (s.n - 17)}, s.k.literal(DType::f32, 0, {4}));
  });
  EXPECT_EQ(problem_of([](Parts& s) {
              const Value i = s.k.arange(4) + 13;
              s.k.gather(s.x, {i}, {.mask = i < s.n});
            }),
            "");
}

TEST(CheckedRun, ReportsReadsOfWhatWasNotWritten) {
  EXPECT_REPORTED("nothing was written here before", [](Parts& s) { s.k.load(s.x, {3}); }, 1, false, false);
  EXPECT_EQ(problem_of(
                [](Parts& s) {
                  s.k.store(s.y, {0}, s.k.literal(DType::f32, 1));
                  s.k.load(s.y, {0});
                },
                1, false, false),
            "");
}

TEST(CheckedRun, ReportsStoresOfTwoProgramsToOneElement) {
  EXPECT_REPORTED(
      "element [0,0] of the block: program 0 writes here too in program (1)",
      [](Parts& s) { s.k.store(s.y, {(s.p + s.n) / 2 - 8}, s.k.literal(DType::f32, 1)); }, 2);
}

TEST(CheckedRun, ReportsRacesThroughViewsOfOneBuffer) {
  const auto shift = [](Parts& s) { s.k.store(s.y, {s.p + 1}, s.k.load(s.x, {s.p})); };
  EXPECT_EQ(problem_of(shift, 2), "");
  EXPECT_REPORTED("load %x[%1] : f32: element [0,0] of the block: program 0 writes here too in program (1)",
                  shift, 2, true);
  EXPECT_REPORTED(
      "program 0 reads this in program (1)",
      [](Parts& s) { s.k.store(s.y, {s.p}, s.k.load(s.x, {s.p + 1})); }, 2, true);
}

TEST(CheckedRun, ReportsScatteredElementsThatMeet) {
  EXPECT_REPORTED("element 2: two scattered elements meet here",
                  [](Parts& s) { s.k.scatter(s.y, {s.k.arange(4) % 2}, s.k.literal(DType::f32, 0, {4})); });
  EXPECT_EQ(
      problem_of([](Parts& s) { s.k.atomic_add(s.y, {s.k.arange(4) % 2}, s.k.literal(DType::f32, 0, {4})); },
                 3),
      "");
}

TEST(CheckedRun, ReportsALoopThatDoesNotAdvance) {
  EXPECT_REPORTED("the step is 0", [](Parts& s) {
    s.k.loop(0, 4, s.n - 16, {}, [](Value, const std::vector<Value>&) { return std::vector<Value>{}; });
  });
}

}  // namespace
}  // namespace tilewright::reference
