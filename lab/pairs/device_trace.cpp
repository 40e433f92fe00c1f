// CUPTI, opened at run time: nothing of CUDA is needed to build. Declared here is what is called of it; its
// records keep the places of their times since CUDA 8.
#include "pairs/device_trace.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

namespace tilewright::lab {

namespace {

// CUpti_ActivityKind: what occupies the device. Kernels of replayed graphs are kernels.
constexpr int kMemcpy = 1, kMemset = 2, kConcurrentKernel = 10;
constexpr int kKinds[] = {kConcurrentKernel, kMemcpy, kMemset};
constexpr std::uint32_t kFlushForced = 1;  // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED
constexpr std::size_t kBufferBytes = 4 << 20, kBufferAlignment = 8;

using Requested = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
using Completed = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size,
                           std::size_t valid);
struct Api {
  int (*register_callbacks)(Requested, Completed) = nullptr;
  int (*enable)(int kind) = nullptr;
  int (*disable)(int kind) = nullptr;
  int (*flush_all)(std::uint32_t flag) = nullptr;
  int (*next_record)(std::uint8_t* buffer, std::size_t valid, void** record) = nullptr;
};

// What CUPTI's callbacks read: they take no pointer of ours, so it cannot be a member. They may come from a
// thread of CUPTI's.
struct Collected {
  std::mutex mutex;
  Api api;
  std::vector<Span> spans;
};
Collected& collected() {
  static Collected& one = *new Collected;  // never destroyed: CUPTI may call when the program ends
  return one;
}

bool is_device_work(int kind) {
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

void buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
  *size = *buffer != nullptr ? kBufferBytes : 0;
  *most_records = 0;  // as many as fit
}

void buffer_completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  Collected& to = collected();
  const std::lock_guard lock(to.mutex);
  for (void* record = nullptr; valid > 0 && to.api.next_record(buffer, valid, &record) == 0;) {
    int kind = 0;
    std::memcpy(&kind, record, sizeof kind);
    if (is_device_work(kind)) to.spans.push_back(span_of_record(record));
  }
  std::free(buffer);
}

Failure refused(const char* call, int code) {
  return failure(Failure::Kind::device, fmt::format("CUPTI: {} returned {}", call, code));
}

class DeviceTrace final : public Timer {
 public:
  explicit DeviceTrace(std::function<Status()> synchronize) : synchronize_(std::move(synchronize)) {}
  std::string_view name() const override { return "CUPTI"; }
  bool waits() const override { return true; }
  bool counts_gaps() const override { return false; }

  Status start() override {
    if (Status idle = synchronize_(); !idle) return idle;
    for (const int kind : kKinds) {
      if (const int code = api().enable(kind); code != 0) return refused("cuptiActivityEnable", code);
    }
    const std::lock_guard lock(collected().mutex);
    collected().spans.clear();
    return Unit{};
  }

  Result<double> stop_us() override {
    const Status done = synchronize_();
    const int flushed = api().flush_all(kFlushForced);
    for (const int kind : kKinds) (void)api().disable(kind);
    if (!done) return done.error();
    if (flushed != 0) return refused("cuptiActivityFlushAll", flushed);
    std::vector<Span> spans;
    {
      const std::lock_guard lock(collected().mutex);
      spans.swap(collected().spans);
    }
    const auto unknown = [](const Span& s) { return s.begin_ns == 0 || s.end_ns < s.begin_ns; };
    if (const auto count = std::count_if(spans.begin(), spans.end(), unknown); count > 0)
      return failure(Failure::Kind::device,
                     fmt::format("CUPTI: {} of {} records have no times", count, spans.size()));
    return busy_us(std::move(spans));
  }

 private:
  static const Api& api() { return collected().api; }
  std::function<Status()> synchronize_;
};

// The loader's own search, the toolkit's folders, and where pip puts it beside PyTorch.
void* open_library(std::string& why) {
  std::vector<std::string> files = {"libcupti.so.13", "libcupti.so.12"};
  const auto add = [&](const std::string& pattern) {
    glob_t found{};
    if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
      for (std::size_t i = 0; i < found.gl_pathc; ++i) files.emplace_back(found.gl_pathv[i]);
    }
    globfree(&found);
  };
  for (const char* folder : {"/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64",
                             "/usr/local/lib/python3*/*-packages/nvidia/cu13/lib",
                             "/usr/local/lib/python3*/*-packages/nvidia/cuda_cupti/lib",
                             "/usr/lib/python3*/*-packages/nvidia/cu13/lib"})
    add(std::string(folder) + "/libcupti.so.1[23]");
  for (const std::string& file : files) {
    if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
    if (why.empty()) why = dlerror();
  }
  return nullptr;
}

template <class F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

Result<Api> open_api() {
  std::string why;
  void* library = open_library(why);  // never closed: its threads may still run
  if (library == nullptr) return failure(Failure::Kind::not_found, "no CUPTI: " + why);
  Api api;
  const bool all = find(library, "cuptiActivityRegisterCallbacks", api.register_callbacks) &&
                   find(library, "cuptiActivityEnable", api.enable) &&
                   find(library, "cuptiActivityDisable", api.disable) &&
                   find(library, "cuptiActivityFlushAll", api.flush_all) &&
                   find(library, "cuptiActivityGetNextRecord", api.next_record);
  if (!all) return failure(Failure::Kind::unsupported, "CUPTI lacks a function of its activity interface");
  return api;
}

}  // namespace

double busy_us(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; });
  std::uint64_t busy_ns = 0, until_ns = 0;
  for (const Span& span : spans) {
    const std::uint64_t from_ns = std::max(span.begin_ns, until_ns);
    if (span.end_ns > from_ns) busy_ns += span.end_ns - from_ns;
    until_ns = std::max(until_ns, span.end_ns);
  }
  return static_cast<double>(busy_ns) * 1e-3;
}

Span span_of_record(const void* record) {
  constexpr std::size_t kStart = 16;  // in CUpti_ActivityKernel*, …Memcpy* and …Memset*; the end follows
  Span span;
  std::memcpy(&span, static_cast<const std::uint8_t*>(record) + kStart, sizeof span);
  return span;
}

Result<std::shared_ptr<Timer>> open_device_trace(std::function<Status()> synchronize) {
  const auto api = open_api();
  if (!api) return api.error();
  {
    const std::lock_guard lock(collected().mutex);
    collected().api = *api;
  }
  if (const int code = api->register_callbacks(buffer_requested, buffer_completed); code != 0)
    return refused("cuptiActivityRegisterCallbacks", code);
  auto trace = std::make_shared<DeviceTrace>(std::move(synchronize));
  // Once now: graphs that are made before CUPTI first looks at the device would stay unseen.
  if (Status started = trace->start(); !started) return started.error();
  if (const auto us = trace->stop_us(); !us) return us.error();
  return std::shared_ptr<Timer>(std::move(trace));
}

}  // namespace tilewright::lab
