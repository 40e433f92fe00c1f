// Which loads leave no trace in the caches.
#include "backends/cuda/cuda_backend.h"

#include <tilewright/tile/text.h>

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

std::string printed(const std::string& text) {
  const tile::Kernel kernel = tile::parse(text).value();
  const auto backend = CudaBackend::open({.compile_only = "sm_90a"}).value();
  return backend->print(kernel, backend->candidates(kernel).front().schedule).value().text;
}

// 64 programs add blocks of 512 elements of a tensor and of a table, which 8 or 64 programs have read.
std::string sum_with_table(int blocks_of_table) {
  const std::string n = std::to_string(blocks_of_table);
  return "kernel @kernel(%out: view<f32,[32768],strides=[1],align=256>, %x: "
         "view<f32,[32768],strides=[1],align=256>, "
         "%table: view<f32,[" +
         std::to_string(blocks_of_table * 512) + "],strides=[1],align=256>) grid(64) {\n" +
         "  %pid = program_id 0 : i64\n  %n = constant " + n +
         " : i64\n  %part = rem %pid, %n : i64\n  %size = constant 512 : i64\n  %first = mul %pid, %size : "
         "i64\n"
         "  %first_of_table = mul %part, %size : i64\n  %a = load %x[%first] : tile<f32,[512]>\n"
         "  %b = load %table[%first_of_table] : tile<f32,[512]>\n  %sum = add %a, %b : tile<f32,[512]>\n"
         "  store %out[%first], %sum : tile<f32,[512]>\n}\n";
}

// A rotary embedding's tables, a norm's weights, a bias: 140 us where their loads bypassed the first-level
// cache, 103 where they did not (docs/notes/2026-11-28-small-kernels.md).
TEST(LoadCaches, WhatSeveralProgramsReadStaysInTheCaches) {
  const std::string text = printed(sum_with_table(8));
  EXPECT_NE(text.find("Cache::stream_constant>(x_at"), std::string::npos) << text;
  EXPECT_NE(text.find("Cache::constant>(table_at"), std::string::npos) << text;
}

TEST(LoadCaches, WhatOneProgramReadsDoesNot) {
  const std::string text = printed(sum_with_table(64));
  EXPECT_NE(text.find("Cache::stream_constant>(x_at"), std::string::npos) << text;
  EXPECT_NE(text.find("Cache::stream_constant>(table_at"), std::string::npos) << text;
}

}  // namespace
}  // namespace tilewright::cuda
