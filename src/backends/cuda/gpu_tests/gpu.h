// What every GPU test needs: the device, the compiler, and short ways to compile, copy and launch.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/gpu_tests/kernels.h"
#include "backends/cuda/gpu_tests/must.h"
#include "backends/cuda/host/copy.h"
#include "backends/cuda/host/launch.h"
#include "backends/cuda/host/memory_pool.h"
#include "backends/cuda/nvrtc/nvrtc.h"

namespace tilewright::cuda {

struct Gpu {
  Driver driver;
  Context context;
  Entered entered;
  Nvrtc nvrtc;
  Stream stream;
  MemoryPool pool;
  Staging staging;

  static Gpu& open();  // once a process

  // `flags` as for NVRTC: "-DNAME=value".
  Module compile(std::string_view source, std::vector<std::string> flags = {});
  void launch(const Function& function, const LaunchShape& shape, Arguments arguments);
  void synchronize() { must(stream.synchronize()); }

  template <class T>
  Buffer upload(const std::vector<T>& values) {
    Buffer buffer = must(pool.allocate(values.size() * sizeof(T), stream.get()));
    must(staging.upload(buffer.address(), values.data(), values.size() * sizeof(T), stream));
    return buffer;
  }
  template <class T>
  std::vector<T> download(const Buffer& buffer, std::size_t count) {
    std::vector<T> values(count);
    must(staging.download(values.data(), buffer.address(), count * sizeof(T), stream));
    return values;
  }
  // Filled with a pattern that no result has: a kernel that does not write is seen.
  template <class T>
  Buffer poisoned(std::size_t count) {
    Buffer buffer = must(pool.allocate(count * sizeof(T), stream.get()));
    must(fill(driver, buffer.address(), {0xfa}, count * sizeof(T), stream.get()));
    return buffer;
  }

 private:
  Gpu();
};

}  // namespace tilewright::cuda
