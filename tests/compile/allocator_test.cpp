// Memory and streams that the program gives: everything comes from its allocator and goes back to it, and one
// that has no memory, or gives what cannot be used, is an error that says so.
#include <tilewright/tilewright.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace tilewright {
namespace {

using testing::HasSubstr;

// Keeps a list of what is out, and looks whether it comes back as it went.
class Counting : public Allocator {
 public:
  ~Counting() override { EXPECT_TRUE(out_.empty()); }

  void* allocate(std::size_t bytes, std::size_t alignment, std::uintptr_t stream) override {
    EXPECT_GT(bytes, 0U);
    EXPECT_EQ(stream, 0U);
    const std::lock_guard lock(mutex_);
    if (in_use_ + bytes > limit) return nullptr;
    void* address = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    out_[address] = bytes;
    in_use_ += bytes;
    ++calls_;
    return address;
  }
  void release(void* address, std::size_t bytes, std::uintptr_t) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto known = out_.find(address);
    ASSERT_NE(known, out_.end());
    EXPECT_EQ(known->second, bytes);
    in_use_ -= bytes;
    out_.erase(known);
    std::free(address);
  }

  std::size_t in_use() const { return in_use_; }
  int calls() const { return calls_; }
  bool holds(const void* address) const {
    const auto after = out_.upper_bound(const_cast<void*>(address));
    if (after == out_.begin()) return false;
    const auto at = std::prev(after);
    return static_cast<const char*>(address) < static_cast<const char*>(at->first) + at->second;
  }

  std::size_t limit = ~std::size_t{0};

 private:
  std::mutex mutex_;
  std::map<void*, std::size_t> out_;
  std::size_t in_use_ = 0;
  int calls_ = 0;
};

class Allocators : public testing::TestWithParam<const char*> {};

TEST_P(Allocators, GiveAllMemoryOfTheDevice) {
  const auto memory = std::make_shared<Counting>();
  {
    Context context({.device = GetParam(), .allocator = memory});
    const Tensor x = context.randn({64, 64});
    const auto f = compile([](const Tensor& a) { return softmax(matmul(a, a), 1) + sum(a, 0); });
    const Tensor y = f(x) * 2.0;
    EXPECT_GE(memory->in_use(), 2U * 64 * 64 * 4);
    EXPECT_EQ(y.to_vector<float>().size(), 64U * 64);
    auto* shared = to_dlpack(y);
    EXPECT_TRUE(memory->holds(shared->tensor.data));
    shared->deleter(shared);
    EXPECT_EQ(context.stream(), 0U);
    EXPECT_EQ(context.memory().bytes, memory->in_use());
  }
  EXPECT_EQ(memory->in_use(), 0U);
  EXPECT_GT(memory->calls(), 2);
}

TEST_P(Allocators, AreCountedAsTheDevicesOwnMemoryIs) {
  constexpr std::size_t kBytes = 4 * 64 * 64;
  for (const auto& memory : {std::make_shared<Counting>(), std::shared_ptr<Counting>()}) {
    Context context({.device = GetParam(), .allocator = memory});
    const std::size_t before = context.memory().bytes;
    {
      const Tensor x = context.ones({64, 64});
      EXPECT_EQ(context.memory().bytes, before + kBytes);
      const Tensor y = x + 1.0;
      EXPECT_EQ(context.memory().bytes, before + 2 * kBytes);
    }
    EXPECT_EQ(context.memory().bytes, before);
    EXPECT_EQ(context.memory().peak_bytes, before + 2 * kBytes);
    context.reset_peak_memory();
    EXPECT_EQ(context.memory().peak_bytes, before);
    if (memory) {
      EXPECT_EQ(memory->in_use(), before);
    }
  }
}

TEST_P(Allocators, WithoutMemoryMakeTheCallAnOutOfMemory) {
  const auto memory = std::make_shared<Counting>();
  Context context({.device = GetParam(), .allocator = memory});
  const Tensor x = context.ones({32, 32});
  memory->limit = memory->in_use() + 100;
  try {
    (void)(x + 1.0);
    FAIL() << "1024 floats do not fit";
  } catch (const OutOfMemory& e) {
    EXPECT_THAT(e.what(), HasSubstr("ContextOptions::allocator has no 4096 bytes; 4096 bytes are in use"));
    EXPECT_THAT(e.what(), HasSubstr("f32[32,32] on "));
  }
  memory->limit = ~std::size_t{0};
  EXPECT_EQ((x + 1.0).to_vector<float>()[5], 2.0F) << "the tensors that are there stay usable";
}

TEST_P(Allocators, MayThrowWhateverTheyLike) {
  struct Throwing : Allocator {
    void* allocate(std::size_t, std::size_t, std::uintptr_t) override { throw 42; }
    void release(void*, std::size_t, std::uintptr_t) noexcept override {}
  };
  Context context({.device = GetParam(), .allocator = std::make_shared<Throwing>()});
  EXPECT_THROW(context.empty({4}), OutOfMemory);
}

INSTANTIATE_TEST_SUITE_P(Devices, Allocators, testing::Values("cpu", "reference"));

TEST(Allocators, ServeSeveralThreads) {
  const auto memory = std::make_shared<Counting>();
  {
    Context context({.allocator = memory});
    const auto f = compile([](const Tensor& a) { return exp(a) + 1.0; });
    constexpr int kThreads = 4;
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int n = 0; n < kThreads; ++n)
      threads.emplace_back([&, n] {
        for (int i = 0; i < 50; ++i) EXPECT_EQ(f(context.zeros({n + 1, 16})).shape(), Shape({n + 1, 16}));
      });
    for (std::thread& t : threads) t.join();
  }
  EXPECT_EQ(memory->in_use(), 0U);
}

TEST(Allocators, MustGiveMemoryThatIsAligned) {
  struct Odd : Allocator {
    void* allocate(std::size_t, std::size_t, std::uintptr_t) override { return memory + 8; }
    void release(void*, std::size_t, std::uintptr_t) noexcept override { ++back; }
    alignas(256) char memory[512] = {};
    int back = 0;
  };
  const auto odd = std::make_shared<Odd>();
  Context context({.allocator = odd});
  try {
    (void)context.zeros({4});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("which is no multiple of 256 bytes"));
  }
  EXPECT_EQ(odd->back, 1);
}

TEST(Allocators, ThatThrowAreQuoted) {
  struct Full : Allocator {
    void* allocate(std::size_t, std::size_t, std::uintptr_t) override {
      throw std::runtime_error("the pool of step 12 is full");
    }
    void release(void*, std::size_t, std::uintptr_t) noexcept override {}
  };
  Context context({.allocator = std::make_shared<Full>()});
  try {
    (void)context.zeros({4});
    FAIL();
  } catch (const OutOfMemory& e) {
    EXPECT_THAT(e.what(), HasSubstr("(the pool of step 12 is full)"));
  }
}

TEST(Streams, AreOfGpusAlone) {
  for (const char* device : {"cpu", "reference"}) {
    try {
      Context context({.device = device, .stream = 1});
      FAIL() << device;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("has no streams: ContextOptions::stream is one of a GPU"));
    }
  }
}

}  // namespace
}  // namespace tilewright
