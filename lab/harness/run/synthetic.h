// A workload for the harness's own tests: y = 2x + 1 on host memory, and a clock that only contenders
// advance. No tensor library, no real time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <utility>

#include "harness/run/workload.h"

namespace tilewright::lab::synthetic {

// Time that passes only when someone says so.
struct FakeClock {
  double now_us = 0;
  std::function<double()> reader() {
    return [this] { return now_us; };
  }
};

class FakeTimer final : public Timer {
 public:
  explicit FakeTimer(FakeClock& clock, double cost_us = 0) : clock_(clock), cost_us_(cost_us) {}
  std::string_view name() const override { return "fake"; }
  Status start() override {
    start_us_ = clock_.now_us;
    clock_.now_us += cost_us_;
    return Unit{};
  }
  Result<double> stop_us() override { return clock_.now_us - start_us_; }
  bool waits() const override { return false; }

 private:
  FakeClock& clock_;
  double cost_us_ = 0, start_us_ = 0;
};

// A device that works by itself: a call costs the host its time and leaves work in a queue.
struct FakeDevice {
  FakeClock& clock;
  double free_us = 0;  // when all that was queued is done
  double busy_us = 0;  // how long it has worked so far
  void launch(double host_us, double work_us) {
    clock.now_us += host_us;
    free_us = std::max(free_us, clock.now_us) + work_us;
    busy_us += work_us;
  }
  Status wait() {
    clock.now_us = std::max(clock.now_us, free_us);
    return Unit{};
  }
};

// Sees the device's work and no gap.
class FakeTrace final : public Timer {
 public:
  explicit FakeTrace(FakeDevice& device) : device_(device) {}
  std::string_view name() const override { return "fake trace"; }
  Status start() override {
    start_us_ = device_.busy_us;
    return device_.wait();
  }
  Result<double> stop_us() override {
    (void)device_.wait();
    return device_.busy_us - start_us_;
  }
  bool waits() const override { return true; }
  bool counts_gaps() const override { return false; }

 private:
  FakeDevice& device_;
  double start_us_ = 0;
};

// The memory of one instance, shared by its functions.
struct Memory {
  std::vector<std::vector<float>> inputs;   // one per copy
  std::vector<std::vector<float>> outputs;  // one per contender
};

using Body = std::function<void(const std::vector<float>& x, std::vector<float>& y, std::int64_t iteration)>;

inline void right(const std::vector<float>& x, std::vector<float>& y, std::int64_t) {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = 2 * x[i] + 1;
}

inline OutputAccess output_of(const std::shared_ptr<Memory>& memory, std::size_t c) {
  return {.poison = [memory, c](std::uint8_t byte) -> Status {
            std::memset(memory->outputs[c].data(), byte, memory->outputs[c].size() * sizeof(float));
            return Unit{};
          },
          .read = [memory, c](const ElementsVisitor& visit) -> Status {
            const std::vector<float>& y = memory->outputs[c];
            visit({y.data(), DType::f32, 0, std::ssize(y)});
            return Unit{};
          },
          .memory = [memory, c]() -> MemoryRange {
            return {reinterpret_cast<std::uintptr_t>(memory->outputs[c].data()),
                    memory->outputs[c].size() * sizeof(float)};
          }};
}

// Adds a contender that does `body`; returns it for changes.
inline Contender& add(PairInstance& instance, const std::shared_ptr<Memory>& memory, std::string name,
                      Body body) {
  const std::size_t c = instance.contenders.size();
  memory->outputs.emplace_back(memory->inputs.front().size());
  Contender contender{.name = std::move(name)};
  contender.run = [memory, c, body = std::move(body)](std::int64_t iteration) -> Status {
    body(memory->inputs[static_cast<std::size_t>(iteration) % memory->inputs.size()], memory->outputs[c],
         iteration);
    return Unit{};
  };
  contender.outputs.push_back(output_of(memory, c));
  instance.contenders.push_back(std::move(contender));
  return instance.contenders.back();
}

// An instance of `n` elements without contenders, and its memory.
inline std::pair<PairInstance, std::shared_ptr<Memory>> instance(std::int64_t n = 1000, int copies = 2) {
  auto memory = std::make_shared<Memory>();
  memory->inputs.resize(static_cast<std::size_t>(copies), std::vector<float>(static_cast<std::size_t>(n)));
  PairInstance instance{.target = "affine", .device = "cpu", .shape = shape_text(Shape{n}), .dtype = "f32"};
  const double bytes = 4.0 * static_cast<double>(n);
  instance.work = vector_work(2.0 * static_cast<double>(n), DType::f32, bytes, bytes);
  instance.outputs = {{"y", DType::f32, Shape{n}, {.storage = DType::f32, .operations = 2}}};
  instance.input_copies = copies;
  instance.reference = [memory](std::int64_t iteration) {
    const auto& x = memory->inputs[static_cast<std::size_t>(iteration) % memory->inputs.size()];
    Reference y;
    for (float v : x) y.values.push_back(2.0 * v + 1.0);
    for (float v : x) y.magnitude.push_back(std::fabs(2.0 * v) + 1.0);  // 2x and 1 may cancel
    return std::vector<Reference>{y};
  };
  instance.refresh_inputs = [memory](std::uint64_t seed) -> Status {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<float> uniform(-4, 4);
    for (auto& x : memory->inputs) {
      for (float& v : x) v = uniform(random);
    }
    return Unit{};
  };
  instance.input_digest = [memory]() -> Result<std::uint64_t> {
    std::uint64_t hash = 1;
    for (const auto& x : memory->inputs) hash = digest(x.data(), x.size() * sizeof(float), hash);
    return hash;
  };
  instance.input_memory = [memory] {
    std::vector<MemoryRange> ranges;
    for (const auto& x : memory->inputs) {
      ranges.push_back({reinterpret_cast<std::uintptr_t>(x.data()), x.size() * sizeof(float)});
    }
    return ranges;
  };
  return {std::move(instance), memory};
}

}  // namespace tilewright::lab::synthetic
