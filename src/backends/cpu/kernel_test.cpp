// Hand-written tile kernels through the Backend interface, on every instruction set, against plain loops.
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/print/printer.h"
#include "backends/cpu/testing.h"

#include <tilewright/tile/builder.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "support/random_numbers.h"

namespace tilewright::cpu {
namespace {

using tile::Builder;
using tile::Monoid;
using tile::Value;

std::vector<float> random_floats(std::size_t n, int seed) {
  std::mt19937_64 engine(static_cast<std::uint64_t>(seed));
  std::vector<float> v(n);
  for (float& x : v) x = static_cast<float>(test::random_between(engine, -2, 2));
  return v;
}

class KernelTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!host_runs(GetParam())) GTEST_SKIP() << "this machine lacks " << name(GetParam());
    auto opened = CpuBackend::open({.threads = 2, .isa = std::string(name(GetParam()))});
    backend_ = std::move(opened).value();
  }

  // Prints, compiles, loads and launches.
  void run(const tile::Kernel& kernel, const std::vector<void*>& views,
           std::vector<std::int64_t> scalars = {},
           const tile::Schedule& schedule = {.kind = tile::CpuLoops{.unroll = 4}}) {
    auto source = backend_->print(kernel, schedule);
    ASSERT_TRUE(source.ok()) << source.error().message;
    text_ = source->text;
    auto binary = backend_->compile(kernel, *source);
    ASSERT_TRUE(binary.ok()) << binary.error().message << "\n" << text_;
    auto program = backend_->load(kernel, *source, *binary);
    ASSERT_TRUE(program.ok()) << program.error().message << "\n" << text_;
    backends::LaunchArgs args{.views = views.data(), .scalars = scalars.data()};
    const std::vector<Index> grid = tile::grid_extents(kernel, scalars);
    std::copy(grid.begin(), grid.end(), args.grid);
    ASSERT_TRUE((*program)->launch(args).ok());
  }

  std::unique_ptr<backends::Backend> backend_;
  std::string text_;
};

TEST_P(KernelTest, EluOfRaggedSizes) {
  for (const Index n : {1, 7, 17, 100, 1000, 5000}) {
    Builder k("elu");
    Value count = k.scalar("n");
    auto x = k.view("x", DType::f32, {count}), y = k.view("y", DType::f32, {count});
    const Index block = k.constant("BLOCK", 1024);
    Value start = k.program_id(0) * block;
    Value t = k.load(x, {start}, {.shape = {block}, .fill = 0.0});
    k.store(y, {start}, where(t > 0.f, t, exp(t) - 1.f), {.bounded = true});
    const tile::Kernel kernel = k.finish({{{count, block}}});
    std::vector<float> in = random_floats(static_cast<std::size_t>(n), 1), out(in.size() + 16, -77.f);
    run(kernel, {in.data(), out.data()}, {n});
    for (std::size_t i = 0; i < in.size(); ++i)
      ASSERT_NEAR(out[i], in[i] > 0 ? in[i] : std::exp(in[i]) - 1, 1e-6) << i << "\n" << text_;
    for (std::size_t i = in.size(); i < out.size(); ++i) ASSERT_EQ(out[i], -77.f) << "written beyond the end";
  }
}

// Resident, and as rows that come from memory are walked.
TEST_P(KernelTest, SoftmaxOfRows) {
  const tile::Schedule schedules[] = {
      {.kind = tile::CpuLoops{.unroll = 4}},
      {.kind = tile::CpuLoops{.unroll = 4, .fetch_ahead = true, .streaming_stores = true}}};
  for (const auto& [columns, added, from_memory] : {std::tuple<Index, Index, int>{1, 0, 0},
                                                    {1, 13, 0},
                                                    {7, 0, 0},
                                                    {7, 13, 1},
                                                    {17, 0, 0},
                                                    {17, 13, 0},
                                                    {100, 0, 1},
                                                    {100, 13, 0},
                                                    {1000, 0, 0},
                                                    {1000, 13, 1},
                                                    {5000, 0, 0},
                                                    {5000, 13, 0},
                                                    {5000, 0, 1},
                                                    {5000, 13, 1},
                                                    {8192, 0, 1}}) {
    const Index tile_columns = columns + added;
    const Index rows = 9;
    Builder k("softmax");
    auto x = k.view("x", DType::f32, {rows, columns}), y = k.view("y", DType::f32, {rows, columns});
    Value r = k.program_id(0);
    const bool exact = tile_columns == columns;
    tile::LoadOptions load{.shape = {tile_columns}};
    if (!exact) load.fill = -std::numeric_limits<double>::infinity();
    Value t = k.load(x, {r, 0}, load);
    Value e = exp(t - k.reduce(Monoid::max, t, 0));
    Value s = k.reduce(Monoid::sum, e, 0);
    k.store(y, {r, 0}, e * (1.f / s), {.bounded = !exact});
    const tile::Kernel kernel = k.finish({{{rows, 1}}});
    std::vector<float> in = random_floats(static_cast<std::size_t>(rows * columns), 2),
                       out(in.size() + 16, -77);
    run(kernel, {in.data(), out.data()}, {}, schedules[from_memory]);
    for (Index i = 0; i < rows; ++i) {
      const float* row = &in[static_cast<std::size_t>(i * columns)];
      const double most = *std::max_element(row, row + columns);
      double sum = 0;
      for (Index c = 0; c < columns; ++c) sum += std::exp(row[c] - most);
      for (Index c = 0; c < columns; ++c)
        ASSERT_NEAR(out[static_cast<std::size_t>(i * columns + c)], std::exp(row[c] - most) / sum, 1e-6)
            << text_;
    }
    ASSERT_EQ(out[in.size()], -77);
  }
}

tile::Kernel walks_of_a_row(bool with_exp, Index columns = 256) {
  Builder k("normalise");
  const auto x = k.view("x", DType::f32, {9, columns}), y = k.view("y", DType::f32, {9, columns});
  const Value r = k.program_id(0);
  Value t = k.load(x, {r, 0}, {.shape = {columns}});
  if (with_exp) t = exp(t - k.reduce(Monoid::max, t, 0));
  k.store(y, {r, 0}, t * k.reduce(Monoid::sum, t, 0));
  return k.finish({{{9, 1}}});
}

// The next row belongs to a program 16 KiB further on; it is fetched in two walks, each of which fetches
// quarters of every step by what it has to do.
TEST(RowWalksTest, TheNextRowIsFetchedInTheTwoLongest) {
  const auto text = [&](bool with_exp, const tile::Schedule& schedule) {
    return print_kernel(walks_of_a_row(with_exp), schedule, /*lanes=*/16).value().text;
  };
  EXPECT_EQ(text(false, {.kind = tile::CpuLoops{.unroll = 4}}).find("fetch_ahead"), std::string::npos);

  const tile::Schedule streaming{
      .kind = tile::CpuLoops{.unroll = 4, .fetch_ahead = true, .streaming_stores = true}};
  const std::string sum = text(false, streaming), softmax = text(true, streaming);
  const auto places = [](const std::string& in, const std::vector<std::string>& parts) {
    std::vector<std::size_t> found;
    found.reserve(parts.size());
    for (const std::string& part : parts) found.push_back(in.find(part));
    return found;
  };
  const auto in_order = [](const std::vector<std::size_t>& found) {
    return std::is_sorted(found.begin(), found.end()) && found.back() != std::string::npos;
  };
  EXPECT_TRUE(in_order(
      places(sum, {"x_next = x + program * 256 + 4096;", "fetch_ahead<64>(x_next + i / 4);", "reduce_sum(",
                   "x_next_b = x + program * 256 + 4160;", "fetch_ahead<192>(x_next_b + i * 3 / 4);"})))
      << sum;
  EXPECT_TRUE(in_order(
      places(softmax, {"reduce_max(", "fetch_ahead<128>(x_next + i / 2);", "reduce_sum(",
                       "x_next_b = x + program * 256 + 4224;", "fetch_ahead<128>(x_next_b + i / 2);"})))
      << softmax;
}

// Rows that take, with their exponentials, more than 32 KiB, but not ten times as much: each walk begins
// where the one before it ended, unless the order matters. The next row is fetched forwards all the same.
TEST(RowWalksTest, EveryOtherGoesBackwards) {
  const auto text = [&](const tile::Kernel& kernel) {
    return print_kernel(kernel,
                        {.kind = tile::CpuLoops{.unroll = 4, .fetch_ahead = true, .streaming_stores = true}},
                        /*lanes=*/16)
        .value()
        .text;
  };
  const auto loops = [&](const tile::Kernel& kernel) {
    const std::string printed = text(kernel);
    std::string found;
    for (std::size_t at = printed.find("for (i64 i = "); at != std::string::npos;
         at = printed.find("for (i64 i = ", at + 1))
      found += printed.substr(at, printed.find('{', at) - at);
    return found;
  };
  const std::string forwards = "for (i64 i = 0; i < 2048; i += 16) ",
                    // a sum, in blocks
      backwards = "for (i64 i = block + 512 - 16; i >= block; i -= 16) ";
  EXPECT_EQ(loops(walks_of_a_row(true, 8192)), forwards + backwards + forwards);
  EXPECT_NE(text(walks_of_a_row(true, 8192)).find("for (i64 block = 1536; block >= 0; block -= 512)"),
            std::string::npos);
  EXPECT_NE(text(walks_of_a_row(true, 8192)).find("fetch_ahead<128>(x_next + (2032 - i) * 2);"),
            std::string::npos);
  for (const Index columns : {2048, 65536})
    EXPECT_EQ(loops(walks_of_a_row(true, columns)).find("i -= "), std::string::npos) << columns;

  const auto reduced = [&](Monoid monoid) {
    Builder k("reduced_twice");
    const auto x = k.view("x", DType::f32, {9, 16384});
    const auto y = k.view("y", monoid == Monoid::argmax ? DType::i64 : DType::f32, {9});
    const Value r = k.program_id(0);
    const Value t = k.load(x, {r, 0}, {.shape = {16384}});
    k.store(y, {r}, k.reduce(monoid, t - k.reduce(Monoid::sum, t, 0), 0));
    return k.finish({{{9, 1}}});
  };
  EXPECT_NE(loops(reduced(Monoid::max)).find("i -= "), std::string::npos);
  EXPECT_EQ(loops(reduced(Monoid::argmax)).find("i -= "), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, KernelTest, ::testing::ValuesIn(kAllIsas),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace tilewright::cpu
