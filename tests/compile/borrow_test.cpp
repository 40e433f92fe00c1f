// Foreign memory as tensors: what is used as it lies, what is copied, what is refused, and when its owner is
// told that it may go.
#include <tilewright/tile/builder.h>
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <numeric>
#include <optional>
#include <thread>

#include "support/errors.h"
#include "support/kernel_folder.h"
#include "tensor/storage.h"

namespace tilewright {
namespace {

using test::expect_says;
using Floats = std::vector<float>;

Floats elements_of(const Tensor& t) { return t.to_vector<float>(); }

// Numbers in memory that begins so many bytes behind a multiple of 256, and a count of releases.
class Lent {
 public:
  explicit Lent(std::size_t count, std::size_t shift_bytes = 0) : memory_(count * sizeof(float) + 512) {
    auto* at = memory_.data();
    at += (256 - reinterpret_cast<std::uintptr_t>(at) % 256) % 256 + shift_bytes;
    data = reinterpret_cast<float*>(at);
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(i);
      std::memcpy(at + i * sizeof value, &value, sizeof value);
    }
  }
  std::shared_ptr<void> owner() {
    return {data, [this](void*) { ++released; }};
  }
  float* data;
  int released = 0;

 private:
  std::vector<char> memory_;
};

class Borrow : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};
  std::string here_ = "(at borrow_test.cpp:";
  static const void* address(const Tensor& t) { return detail::storage_address(t); }
};

TEST_P(Borrow, UsesRowMajorMemoryAsItLies) {
  Lent lent(6);
  const Tensor x = borrow(ctx_, lent.data, {2, 3}, DType::f32);
  EXPECT_EQ(address(x), lent.data);
  EXPECT_EQ(elements_of(x + 1.f), (Floats{1, 2, 3, 4, 5, 6}));
  lent.data[0] = 40;
  EXPECT_EQ(elements_of(x)[0], 40) << "it is the same memory";
  // An axis of extent 1 has no next element: its stride says nothing.
  EXPECT_EQ(address(borrow(ctx_, lent.data, {1, 6, 1}, DType::f32, {.strides = {-77, 1, 0}})), lent.data);
  EXPECT_EQ(borrow(ctx_, lent.data, {}, DType::f32).item(), 40);
}

TEST_P(Borrow, CopiesOtherStridesWhereAsked) {
  const Lent lent(12);
  const struct {
    const char* what;
    std::ptrdiff_t first;
    Shape shape;
    Strides strides;
    Floats expected;
  } cases[] = {
      {"columns first", 0, {3, 2}, {1, 3}, {0, 3, 1, 4, 2, 5}},
      {"backwards", 5, {2, 3}, {-3, -1}, {5, 4, 3, 2, 1, 0}},
      {"each twice", 0, {2, 3}, {0, 1}, {0, 1, 2, 0, 1, 2}},
      {"overlapping windows", 0, {3, 3}, {1, 1}, {0, 1, 2, 1, 2, 3, 2, 3, 4}},
      {"every other", 1, {2, 1, 2}, {6, 99, 2}, {1, 3, 7, 9}},
      {"one number", 7, {2, 2}, {0, 0}, {7, 7, 7, 7}},
  };
  for (const auto& c : cases) {
    const BorrowOptions never{.strides = c.strides};
    expect_says([&] { borrow(ctx_, lent.data + c.first, c.shape, DType::f32, never); },
                {"borrow: strides [", "are not row-major", "copy = Copy::if_needed", here_});
    BorrowOptions copy = never;
    copy.copy = Copy::if_needed;
    const Tensor x = borrow(ctx_, lent.data + c.first, c.shape, DType::f32, copy);
    EXPECT_EQ(elements_of(x), c.expected) << c.what;
    EXPECT_EQ(elements_of(x * 2.f)[1], 2 * c.expected[1]) << c.what;
  }
}

TEST_P(Borrow, CopiesElementsOfEveryWidth) {
  for (const DType dtype : kAllDTypes) {
    std::vector<unsigned char> bytes(6 * size_bytes(dtype));
    std::iota(bytes.begin(), bytes.end(), 0);
    if (is_bool(dtype)) bytes = {0, 1, 0, 1, 1, 0};
    const Tensor x = borrow(ctx_, bytes.data(), {2, 3}, dtype, {.strides = {1, 2}, .copy = Copy::if_needed});
    std::vector<unsigned char> read(bytes.size());
    x.read(read.data(), dtype);
    for (std::size_t i = 0; i < 6; ++i)
      for (std::size_t b = 0; b < size_bytes(dtype); ++b)
        EXPECT_EQ(read[i * size_bytes(dtype) + b], bytes[(i / 3 + 2 * (i % 3)) * size_bytes(dtype) + b])
            << name(dtype);
  }
}

TEST_P(Borrow, SaysWhatAddressItWants) {
  const bool any_element = std::string(GetParam()) == "cpu";
  Lent element(64, 4), odd(64, 2);
  if (any_element) {
    const Tensor x = borrow(ctx_, element.data, {64}, DType::f32);
    EXPECT_EQ(address(x), element.data);
    Floats expected(64);
    for (std::size_t i = 0; i < 64; ++i) expected[i] = static_cast<float>(i * i);
    EXPECT_EQ(elements_of(x * x), expected);
  } else {
    expect_says([&] { borrow(ctx_, element.data, {64}, DType::f32); },
                {"not a multiple of 256 bytes", here_});
  }
  expect_says([&] { borrow(ctx_, odd.data, {64}, DType::f32); },
              {any_element ? "not a multiple of 4 bytes" : "not a multiple of 256 bytes", GetParam(), here_});
  const Tensor copy = borrow(ctx_, odd.data, {64}, DType::f32, {.copy = Copy::if_needed});
  EXPECT_NE(address(copy), odd.data);
  EXPECT_EQ(elements_of(copy)[63], 63);
}

// Kernels of every kind on addresses that are multiples of an element alone.
TEST_P(Borrow, KernelsTakeAnyElementsAddress) {
  constexpr Index n = 37;
  Lent a(n * n, 4), b(n * n, 12);
  const BorrowOptions lent{.copy = Copy::if_needed};
  const Tensor x = borrow(ctx_, a.data, {n, n}, DType::f32, lent),
               y = borrow(ctx_, b.data, {n, n}, DType::f32, lent);
  const Tensor p = ctx_.from(Floats(a.data, a.data + n * n), {n, n}),
               q = ctx_.from(Floats(b.data, b.data + n * n), {n, n});
  const auto f = compile([](const Tensor& s, const Tensor& t) {
    return std::tuple{softmax(s / 100.f, 1), matmul(s, t), sum(s, {0}), transpose(t, {1, 0}) + s,
                      cumsum(s, 1)};
  });
  const auto [s1, m1, r1, t1, c1] = f(x, y);
  const auto [s2, m2, r2, t2, c2] = f(p, q);
  EXPECT_EQ(elements_of(s1), elements_of(s2));
  EXPECT_EQ(elements_of(m1), elements_of(m2));
  EXPECT_EQ(elements_of(r1), elements_of(r2));
  EXPECT_EQ(elements_of(t1), elements_of(t2));
  EXPECT_EQ(elements_of(c1), elements_of(c2));
}

TEST_P(Borrow, OwnerGoesOnceAfterTheLastHandle) {
  Lent lent(4);
  std::optional<Tensor> result;
  {
    Tensor x = borrow(ctx_, lent.data, {4}, DType::f32, {.owner = lent.owner()});
    const auto add = compile([x](const Tensor& y) { return x + y; });  // holds a handle
    Tensor other = x;
    x = {};
    result = add(other);
    other = {};
    EXPECT_EQ(lent.released, 0) << "the function captures it";
    EXPECT_EQ(elements_of(*result), (Floats{0, 2, 4, 6}));
  }
  EXPECT_EQ(lent.released, 1);
  EXPECT_EQ(elements_of(*result), (Floats{0, 2, 4, 6})) << "a result has memory of its own";
}

TEST_P(Borrow, OwnerOutlivesTheContextWithTheTensor) {
  Lent lent(4);
  std::optional<Context> other(
      std::in_place, ContextOptions{.device = GetParam(), .cache_directory = test::kernel_folder()});
  Tensor x = borrow(*other, lent.data, {4}, DType::f32, {.owner = lent.owner()});
  other.reset();
  EXPECT_EQ(lent.released, 0);
  x = {};
  EXPECT_EQ(lent.released, 1);
}

TEST_P(Borrow, OwnerGoesWhereTheTensorDoesNotNeedIt) {
  Lent lent(4);
  const Tensor copied = borrow(ctx_, lent.data, {2, 2}, DType::f32,
                               {.strides = {1, 2}, .copy = Copy::if_needed, .owner = lent.owner()});
  EXPECT_EQ(lent.released, 1);
  const Tensor empty =
      borrow(ctx_, static_cast<float*>(nullptr), {0, 2}, DType::f32, {.owner = lent.owner()});
  EXPECT_EQ(lent.released, 2);
  EXPECT_EQ(empty.shape(), (Shape{0, 2}));
  EXPECT_NE(test::message_of([&] {
              borrow(ctx_, lent.data, {2, 2}, DType::f32, {.strides = {1, 2}, .owner = lent.owner()});
            }),
            "no error");
  EXPECT_EQ(lent.released, 3) << "behind an error, too";
}

TEST_P(Borrow, OwnersGoOnOtherThreads) {
  Lent lent(256);
  std::vector<std::thread> threads;
  {
    const Tensor x = borrow(ctx_, lent.data, {256}, DType::f32, {.owner = lent.owner()});
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([x] {
        for (int k = 0; k < 20; ++k) EXPECT_EQ(sum(x).item(), 256 * 255 / 2);
      });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(lent.released, 1);
}

TEST_P(Borrow, IntoWritesTheLendersMemory) {
  Lent lent(4), other(4);
  const Tensor x = borrow(ctx_, lent.data, {4}, DType::f32);
  const auto twice = compile([](const Tensor& t) { return 2.f * t; });
  twice.into({x}, {x});
  EXPECT_EQ(Floats(lent.data, lent.data + 4), (Floats{0, 2, 4, 6}));
  // What cannot be written in place reaches it as well.
  const auto back = compile([](const Tensor& t) { return flip(t, {0}) + cumsum(t, 0); });
  back.into({x}, {x});
  EXPECT_EQ(Floats(lent.data, lent.data + 4), (Floats{6, 6, 8, 12}));
}

TEST_P(Borrow, MemoryLentTwiceIsOneMemory) {
  Lent lent(6);
  const Tensor a = borrow(ctx_, lent.data, {4}, DType::f32), b = borrow(ctx_, lent.data, {4}, DType::f32);
  const auto back = compile([](const Tensor& t) { return flip(t, {0}) + 0.f * sum(t); });
  back.into({a}, {b});
  EXPECT_EQ(elements_of(b), (Floats{3, 2, 1, 0}));
  const Tensor tail = borrow(ctx_, static_cast<const float*>(lent.data), {6}, DType::f32);
  const auto head = compile([](const Tensor& t) { return slice(t, 0, {.stop = 4}); });
  expect_says([&] { head.into({a}, {tail}); },
              {"into: output 0, f32[4], shares a part of its memory with f32[6]", here_});
  const auto both = compile([](const Tensor& s) { return std::tuple{s, s}; });
  expect_says([&] { both.into({a, b}, {ctx_.ones({4})}); }, {"outputs 0 and 1 are the same tensor", here_});
  const Lent large(68);
  const Tensor end = borrow(ctx_, large.data + 64, {4}, DType::f32),
               all = borrow(ctx_, large.data, {68}, DType::f32);
  const auto two = compile([](const Tensor& s) { return std::tuple{slice(s, 0, {.stop = 4}), s}; });
  expect_says([&] { two.into({end, all}, {ctx_.ones({68})}); },
              {"outputs 0 and 1 share a part of their memory", here_});
  const auto given = compile([](const Tensor& s, const Tensor& t) { return s + t; }, {.donate = {0}});
  expect_says([&] { given(a, b); }, {"argument 0 is donated", "argument 1", here_});
}

TEST_P(Borrow, NothingIsWrittenIntoReadOnlyMemory) {
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* mapped = mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  expect_says([&] { borrow(ctx_, mapped, {4}, DType::f32); },
              {"borrow: f32[4] at 0x", "is read-only", here_});
  {
    const Tensor x = borrow(ctx_, static_cast<const void*>(mapped), {4}, DType::f32);
    const auto plus = compile([](const Tensor& t) { return t + 1.f; });
    expect_says([&] { plus.into({x}, {ctx_.ones({4})}); },
                {"into: output 0 is borrowed memory that is read-only", here_});
    const auto given = compile([](const Tensor& t) { return t + 1.f; }, {.donate = {0}});
    EXPECT_EQ(elements_of(given(x)), (Floats{1, 1, 1, 1})) << "a donated tensor is copied";
    const Tensor y = borrow(ctx_, mapped, {4}, DType::f32, {.access = Access::read_only});
    tile::Builder k("fill");
    const auto out = k.view("y", DType::f32, {4});
    k.store(out, {k.program_id(0) * 4}, k.literal(DType::f32, 1.0, {4}));
    const TileFunction fill(k.finish({{{4, 4}}}));
    expect_says([&] { fill({into(y)}); }, {"view y is written", "read-only", here_});
  }
  munmap(mapped, page);
  expect_says([&] { borrow(ctx_, static_cast<const void*>(mapped), {4}, DType::f32); },
              {"there is no memory at 0x", here_});
  mapped = mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  expect_says([&] { borrow(ctx_, static_cast<const void*>(mapped), {4}, DType::f32); },
              {"may not read", here_});
  munmap(mapped, page);
}

TEST_P(Borrow, RefusesWhatIsNoMemory) {
  Lent lent(4);
  float* const null = nullptr;
  expect_says([&] { borrow(ctx_, null, {4}, DType::f32); }, {"borrow: the pointer is null", "f32[4]", here_});
  expect_says([&] { borrow(ctx_, lent.data, {-1, 2}, DType::f32); },
              {"borrow: shape [-1,2] has a negative extent", here_});
  const Index huge = Index{1} << 40;
  expect_says([&] { borrow(ctx_, lent.data, {huge, huge}, DType::f32); }, {"too many elements", here_});
  expect_says([&] { borrow(ctx_, lent.data, {Index{1} << 50}, DType::f32); },
              {"f32[1125899906842624] at", "no memory", here_});
  expect_says([&] { borrow(ctx_, lent.data, {3, 2}, DType::f32, {.strides = {INT64_MAX, INT64_MAX}}); },
              {"reach further than any memory", here_});
  expect_says([&] { borrow(ctx_, lent.data, {3}, DType::f32, {.strides = {INT64_MIN}}); },
              {"reach further", here_});
  expect_says([&] { borrow(ctx_, lent.data, {2}, DType::f32, {.strides = {-(Index{1} << 60)}}); },
              {"past the end of the address space", here_});
  expect_says([&] { borrow(ctx_, lent.data, {2, 2}, DType::f32, {.strides = {1}}); },
              {"1 strides are given for the 2 axes", here_});
  expect_says([&] { borrow(ctx_, lent.data, {4}, DType::f32, {.device = "gpu"}); },
              {"borrow: unknown device 'gpu'", here_});
}

INSTANTIATE_TEST_SUITE_P(Devices, Borrow, ::testing::Values("cpu", "reference"));

}  // namespace
}  // namespace tilewright
