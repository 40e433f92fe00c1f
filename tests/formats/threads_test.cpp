// Files that several threads read at once, by one opened file and by files of their own (make tsan).
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "formats/files.h"

namespace tilewright {
namespace {

const ContextOptions kHere{.device = "reference", .cache_directory = ""};

TEST(ThreadsAtOnce, ReadOneOpenedFileAndWriteOthers) {
  const test::Folder folder;
  Context ctx(kHere);
  save_safetensors(folder.file("m.safetensors"), {{"w", ctx.full({8}, 3)}, {"b", ctx.full({4}, 5)}},
                   {.metadata = {{"made by", "a test"}}});
  const Safetensors file(folder.file("m.safetensors"));
  constexpr int kThreads = 4, kRounds = 10;
  std::barrier begin(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      Context own(kHere);
      Context& context = i % 2 == 0 ? ctx : own;
      begin.arrive_and_wait();
      for (int round = 0; round < kRounds; ++round) {
        EXPECT_EQ(file.load(context, "w").to_vector<float>()[7], 3);
        EXPECT_EQ(file.load(context, "b").to_vector<float>()[3], 5);
        EXPECT_TRUE(file.contains("w"));
        EXPECT_EQ(file.tensors().size() + file.metadata().size(), 3U);
        const std::string array = folder.file("x" + std::to_string(i) + ".npy");
        save_npy(array, file.load(context, "w"));
        EXPECT_EQ(load_npy(context, array).to_vector<float>()[0], 3);
        // One name, which the last to write it has.
        save_safetensors(folder.file("all.safetensors"), {{"w", file.load(context, "w")}});
        EXPECT_EQ(load_safetensors(context, folder.file("all.safetensors")).at(0).tensor.size(), 8);
      }
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace tilewright
