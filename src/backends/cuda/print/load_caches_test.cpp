// The caches that loads go through, and that stores carry no cache hint.
#include "backends/cuda/cuda_backend.h"

#include <tilewright/tile/text.h>

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

// 65,536 programs add 4,096 elements each of `x` to `out`, 1 GiB that no cache holds.
constexpr const char* kUpdate =
    "kernel @kernel(%out: view<f32,[268435456],strides=[1],align=256>, %x: "
    "view<f32,[268435456],strides=[1],align=256>) grid(65536) {\n"
    "  %pid = program_id 0 : i64\n  %size = constant 4096 : i64\n  %first = mul %pid, %size : i64\n"
    "  %a = load %x[%first] : tile<f32,[4096]>\n  %b = load %out[%first] : tile<f32,[4096]>\n"
    "  %sum = add %a, %b : tile<f32,[4096]>\n  store %out[%first], %sum : tile<f32,[4096]>\n}\n";

TEST(LoadCaches, OnlyWhatNobodyWritesGoesByTheReadOnlyPath) {
  const tile::Kernel kernel = tile::parse(kUpdate).value();
  const auto backend = CudaBackend::open({.compile_only = "sm_90a"}).value();
  const std::string text = backend->print(kernel, backend->candidates(kernel).front().schedule).value().text;
  EXPECT_NE(text.find("Cache::constant>(x_at"), std::string::npos) << text;
  EXPECT_EQ(text.find("Cache::constant>(out_at"), std::string::npos) << text;
  EXPECT_NE(text.find("store("), std::string::npos) << text;
}

}  // namespace
}  // namespace tilewright::cuda
