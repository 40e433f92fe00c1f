// See measure.h. Medians over repeats; the conditions are in each line.
#include "backends/cuda/gpu_tests/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "backends/cuda/host/graph.h"

namespace tilewright::cuda {
namespace {

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Median over 11 runs of the time per call, in µs; `after` runs outside the time.
double median_us(int calls, const std::function<void()>& call, const std::function<void()>& after) {
  std::vector<double> times;
  for (int run = 0; run < 11; ++run) {
    const double start = now_us();
    for (int i = 0; i < calls; ++i) call();
    times.push_back((now_us() - start) / calls);
    after();
  }
  std::nth_element(times.begin(), times.begin() + 5, times.end());
  return times[5];
}

void print(std::string_view what, double us, std::string_view conditions) {
  fmt::print("{{\"measure\":\"{}\",\"us\":{:.4f},\"conditions\":\"{}\"}}\n", what, us, conditions);
}

void measure_graphs(Gpu& gpu, const Function& empty) {
  const auto wait = [&] { gpu.synchronize(); };
  for (int nodes : {1, 10, 100, 1000}) {
    auto launch = must(PreparedLaunch::make(empty, {.block = {32, 1, 1}}, {}));
    const auto graph = must(CudaGraph::capture(gpu.context, gpu.stream, [&]() -> Status {
      for (int i = 0; i < nodes; ++i)
        if (Status status = launch.launch(gpu.stream.get()); !status) return status;
      return Unit{};
    }));
    const auto exec = must(graph.instantiate());
    must(exec.launch(gpu.stream.get()));
    wait();
    const auto replay = [&] { must(exec.launch(gpu.stream.get())); };
    print(fmt::format("graph_{}_host", nodes), median_us(20, replay, wait),
          "host time a replay, a chain of empty kernels");
    const auto replay_and_wait = [&] { replay(), wait(); };
    print(fmt::format("graph_{}_wait", nodes), median_us(20, replay_and_wait, [] {}),
          "replay and wait, a chain of empty kernels");
  }
}

void measure_pool(Gpu& gpu) {
  for (std::size_t bytes : {std::size_t{4096}, std::size_t{4} << 20, std::size_t{256} << 20}) {
    const auto pair = [&] { (void)must(gpu.pool.allocate(bytes, gpu.stream.get())); };
    pair();
    print(fmt::format("pool_{}", bytes), median_us(10000, pair, [] {}), "allocate and free from the cache");
  }
  std::vector<Buffer> many;
  many.reserve(1000);
  for (int i = 0; i < 1000; ++i)
    many.push_back(must(gpu.pool.allocate(std::size_t{1} << (9 + i % 14), gpu.stream.get())));
  const auto mixed = [&, i = std::size_t{0}]() mutable {
    i = (i + 617) % many.size();
    const std::size_t bytes = many[i].size_bytes();
    many[i].reset();
    many[i] = must(gpu.pool.allocate(bytes, gpu.stream.get()));
  };
  print("pool_mixed", median_us(10000, mixed, [] {}),
        "free and allocate among 1000 live buffers of 512 B to 4 MiB");
}

void measure_compile(Gpu& gpu) {
  const std::string source(embedded::gpu_test_simple);
  const NvrtcOptions options{.arch = gpu.context.limits().arch()};
  const auto binary = must(gpu.nvrtc.compile(source, options));
  print("compile",
        median_us(
            1, [&] { (void)must(gpu.nvrtc.compile(source, options)); }, [] {}),
        "three small kernels, warm NVRTC");
  print("module_load",
        median_us(1, [&] { (void)must(Module::load(gpu.context, binary.cubin)); }, [] {}), "load and unload");
}

}  // namespace

void measure_host_costs(Gpu& gpu) {
  const Module module = gpu.compile(embedded::gpu_test_simple);
  const Function empty = must(module.function("empty"));
  auto launch = must(PreparedLaunch::make(empty, {.block = {32, 1, 1}}, {}));
  const auto wait = [&] { gpu.synchronize(); };
  const auto once = [&] { must(launch.launch(gpu.stream.get())); };
  once();
  wait();
  print("launch_host", median_us(500, once, wait), "host time a launch, empty kernel, back to back");
  print("launch_wait", median_us(100, [&] { once(), wait(); }, [] {}), "launch and wait");
  api::LaunchConfig config{1, 1, 1, 32, 1, 1, 0, gpu.stream.get(), nullptr, 0};
  const auto bare = [&] { (void)gpu.driver.launch_kernel_ex(&config, empty.get(), nullptr, nullptr); };
  print("launch_bare", median_us(500, bare, wait), "cuLaunchKernelEx alone, for comparison");
  print("make_current", median_us(1000, [&] { must(gpu.context.make_current()); }, [] {}), "cuCtxSetCurrent");
  measure_graphs(gpu, empty);
  measure_pool(gpu);
  measure_compile(gpu);
}

void measure_copies(Gpu& gpu) {
  const Module module = gpu.compile(embedded::gpu_test_copy);
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  const Buffer from = must(gpu.pool.allocate(kBytes, gpu.stream.get())),
               to = must(gpu.pool.allocate(kBytes, gpu.stream.get()));
  must(fill(gpu.driver, from.address(), {0x12345678, 4}, kBytes, gpu.stream.get()));
  const auto start = must(Event::create(gpu.context, Event::Timing::on)),
             end = must(Event::create(gpu.context, Event::Timing::on));
  const auto time = [&](const std::string& what, const std::function<void()>& once,
                        const std::string& conditions) {
    std::vector<float> ms;
    for (int run = 0; run < 15; ++run) {
      must(start.record(gpu.stream.get()));
      once();
      must(end.record(gpu.stream.get()));
      must(end.synchronize());
      ms.push_back(must(end.elapsed_ms_since(start)));
    }
    std::nth_element(ms.begin(), ms.begin() + 7, ms.end());
    fmt::print("{{\"measure\":\"{}\",\"gb_per_s\":{:.0f},\"conditions\":\"1 GiB, {}\"}}\n", what,
               2e-6 * kBytes / ms[7], conditions);
  };
  time(
      "copy_driver",
      [&] { must(copy_on_device(gpu.driver, to.address(), from.address(), kBytes, gpu.stream.get())); },
      "cuMemcpyDtoDAsync");
  const auto kernel = [&](const std::string& name, const LaunchShape& shape) {
    Arguments arguments;
    arguments.add(from.address()).add(to.address()).add(std::uint64_t{kBytes});
    auto launch = must(PreparedLaunch::make(must(module.function(name)), shape, arguments));
    time(name, [&] { must(launch.launch(gpu.stream.get())); }, to_string(shape));
  };
  const unsigned sms = static_cast<unsigned>(gpu.context.limits().multiprocessors);
  for (const auto& [name, unroll] : {std::pair{"copy_normal_4", 4u},
                                     {"copy_in_turn_4", 4u},
                                     {"copy_constant_2", 2u},
                                     {"copy_constant_4", 4u},
                                     {"copy_constant_8", 8u}}) {
    for (unsigned threads : {256u, 512u}) {
      kernel(name, {.grid = {static_cast<unsigned>(kBytes / (16 * unroll * threads)), 1, 1},
                    .block = {threads, 1, 1}});
      kernel(name, {.grid = {sms * 2048 / threads, 1, 1}, .block = {threads, 1, 1}});
    }
  }
  kernel("copy_async", {.grid = {sms * 8, 1, 1}, .block = {256, 1, 1}});
  if (gpu.context.limits().compute_major < 9) return;
  for (unsigned blocks : {1u, 2u, 3u})
    kernel("copy_bulk", {.grid = {sms * blocks, 1, 1}, .block = {32, 1, 1}, .shared_bytes = 65536});
}

}  // namespace tilewright::cuda
