// Several kernels at once: each its own answer, equal ones one program.
#include "runtime/kernel_store.h"
#include "support/hand_kernels.h"

#include <gtest/gtest.h>

#include <thread>

namespace tilewright::runtime {
namespace {

TEST(KernelStore, CompilesSeveralSideBySide) {
  auto device = Device::open("cpu");
  ASSERT_TRUE(device) << device.error().message;
  KernelStore store(*device, nullptr);
  std::vector<tile::Kernel> kernels;
  kernels.reserve(4);
  for (const Index columns : {1000, 2000, 1000, 3000}) kernels.push_back(tile::samples::elu_of(columns, 256));
  const std::vector<KernelResult> all = store.get_all(kernels);
  ASSERT_EQ(all.size(), 4u);
  for (const KernelResult& one : all) ASSERT_TRUE(one.ok()) << one.error().message;
  EXPECT_EQ(*all[0], *all[2]);
  EXPECT_NE(*all[0], *all[1]);
  EXPECT_NE((*all[1])->source.text.find("2000"), std::string::npos);
  EXPECT_FALSE((*all[3])->candidates.empty());
  EXPECT_EQ(store.get(kernels[3]).value(), *all[3]);
}

TEST(KernelStore, ServesThreadsThatWantTheSame) {
  auto device = Device::open("cpu");
  ASSERT_TRUE(device) << device.error().message;
  KernelStore store(*device, nullptr);
  const std::vector<tile::Kernel> kernels = {tile::samples::elu_of(500, 64), tile::samples::elu_of(600, 64)};
  std::vector<std::shared_ptr<LoadedKernel>> got(4);
  std::vector<std::thread> threads;
  threads.reserve(got.size());
  for (auto& mine : got)
    threads.emplace_back([&store, &kernels, &mine] { mine = store.get_all(kernels)[1].value(); });
  for (std::thread& t : threads) t.join();
  for (const auto& mine : got) EXPECT_EQ(mine, got[0]);
}

}  // namespace
}  // namespace tilewright::runtime
