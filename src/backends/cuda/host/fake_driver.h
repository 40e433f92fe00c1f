// A driver for tests on machines without a GPU: device memory is a count of bytes, and every call is written
// down.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/host/driver.h"

namespace tilewright::cuda::fake {

struct State {
  std::size_t capacity = std::size_t{1} << 30;
  std::map<api::CUdeviceptr, std::size_t> allocations;
  api::CUdeviceptr next_address = 0x7f0000000000;
  int live_handles = 0;  // streams, events, modules, graphs, retained contexts
  bool events_done = true;
  api::CUcontext current = nullptr;
  std::map<api::CUstream, api::CUcontext> streams;  // of others: their contexts
  int max_threads = 1024;
  std::vector<std::string> calls;
  api::LaunchConfig last_config{};
  std::vector<api::LaunchAttribute> last_attributes;
  std::vector<int> last_arguments;  // each read as an int
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  std::vector<Copy> copies;  // queued

  std::size_t allocated_bytes() const {
    std::size_t sum = 0;
    for (const auto& [address, bytes] : allocations) sum += bytes;
    return sum;
  }
};

// The driver's functions are plain pointers: their state cannot be but global. Reset at the start of each
// test.
inline State& state() {
  static State one;
  return one;
}

template <class Handle>
Handle new_handle() {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(0x1000 + 16 * ++state().live_handles));
}

inline api::CUresult drop_handle() {
  --state().live_handles;
  return api::kSuccess;
}

inline void note(std::string call) { state().calls.push_back(std::move(call)); }

inline int attribute_value(int attribute) {
  switch (attribute) {
    case api::kComputeCapabilityMajor:
      return 9;
    case api::kComputeCapabilityMinor:
      return 0;
    case api::kMultiprocessorCount:
      return 132;
    case api::kMemoryClockRate:
      return 3201000;
    case api::kGlobalMemoryBusWidth:
      return 6144;
    case api::kMaxSharedMemoryPerBlockOptin:
      return 232448;
    case api::kClusterLaunch:
      return 1;
    default:
      return 1;
  }
}

inline void add_memory(Driver& d) {
  d.mem_get_info = [](std::size_t* free, std::size_t* total) {
    *total = state().capacity;
    *free = state().capacity - state().allocated_bytes();
    return api::kSuccess;
  };
  d.mem_alloc = [](api::CUdeviceptr* address, std::size_t bytes) {
    note(fmt::format("alloc {}", bytes));
    if (state().allocated_bytes() + bytes > state().capacity) return api::kErrorOutOfMemory;
    *address = state().next_address;
    state().next_address += bytes;
    state().allocations[*address] = bytes;
    return api::kSuccess;
  };
  // The host's below 2^40, memory of a second device above 2^48, unknown at 0.
  d.pointer_get_attribute = [](void* value, int attribute, api::CUdeviceptr address) {
    const bool is_host = address < (api::CUdeviceptr{1} << 40),
               is_other = address >= (api::CUdeviceptr{1} << 48);
    if (address == 0) return api::kErrorInvalidValue;
    *static_cast<int*>(value) = attribute == api::kPointerMemoryType
                                    ? (is_host ? api::kMemoryTypeHost : api::kMemoryTypeDevice)
                                    : (is_other ? 1 : 0);
    return api::kSuccess;
  };
  d.mem_free = [](api::CUdeviceptr address) {
    note("free");
    return state().allocations.erase(address) == 1 ? api::kSuccess : api::kErrorInvalidValue;
  };
}

inline void add_handles(Driver& d) {
  d.stream_create_with_priority = [](api::CUstream* out, unsigned, int) {
    *out = new_handle<api::CUstream>();
    return api::kSuccess;
  };
  d.stream_get_ctx = [](api::CUstream stream, api::CUcontext* context) {
    const auto known = state().streams.find(stream);
    if (known == state().streams.end()) return api::kErrorInvalidValue;
    *context = known->second;
    return api::kSuccess;
  };
  d.stream_destroy = [](api::CUstream) { return drop_handle(); };
  d.stream_begin_capture = [](api::CUstream, int) {
    note("begin_capture");
    return api::kSuccess;
  };
  d.stream_end_capture = [](api::CUstream, api::CUgraph* out) {
    note("end_capture");
    *out = new_handle<api::CUgraph>();
    return api::kSuccess;
  };
  d.event_create = [](api::CUevent* out, unsigned) {
    *out = new_handle<api::CUevent>();
    return api::kSuccess;
  };
  d.event_destroy = [](api::CUevent) { return drop_handle(); };
  d.event_record = [](api::CUevent, api::CUstream) { return api::kSuccess; };
  d.event_query = [](api::CUevent) { return state().events_done ? api::kSuccess : api::kErrorNotReady; };
  d.event_synchronize = [](api::CUevent) { return api::kSuccess; };
  d.stream_wait_event = [](api::CUstream stream, api::CUevent, unsigned) {
    note(fmt::format("wait {:#x}", reinterpret_cast<std::uintptr_t>(stream)));
    return api::kSuccess;
  };
}

// Copies wait for the host to wait for the device, as behind kernels that take long.
inline void run_copies() {
  for (const auto& copy : std::exchange(state().copies, {})) std::memcpy(copy.to, copy.from, copy.bytes);
}

inline void add_copies(Driver& d) {
  d.mem_host_alloc = [](void** address, std::size_t bytes, unsigned) {
    *address = std::malloc(bytes);
    return api::kSuccess;
  };
  d.mem_free_host = [](void* address) { return std::free(address), api::kSuccess; };
  d.memcpy_htod_async = [](api::CUdeviceptr to, const void* from, std::size_t bytes, api::CUstream) {
    state().copies.push_back({reinterpret_cast<void*>(to), from, bytes});
    return api::kSuccess;
  };
  d.memcpy_dtoh_async = [](void* to, api::CUdeviceptr from, std::size_t bytes, api::CUstream) {
    state().copies.push_back({to, reinterpret_cast<const void*>(from), bytes});
    return api::kSuccess;
  };
  d.event_synchronize = [](api::CUevent) {
    note("wait for an event");
    run_copies();
    return api::kSuccess;
  };
}

inline void add_launches(Driver& d) {
  d.func_get_attribute = [](int* value, int attribute, api::CUfunction) {
    *value = attribute == api::kFunctionMaxThreadsPerBlock ? state().max_threads : 32;
    return api::kSuccess;
  };
  d.func_set_attribute = [](api::CUfunction, int attribute, int value) {
    note(fmt::format("set {} {}", attribute, value));
    return api::kSuccess;
  };
  d.launch_kernel_ex = [](const api::LaunchConfig* config, api::CUfunction, void** params, void**) {
    state().last_config = *config;
    state().last_attributes.assign(config->attributes, config->attributes + config->attribute_count);
    for (auto& argument : state().last_arguments) argument = *static_cast<int*>(*params++);
    return api::kSuccess;
  };
  d.graph_destroy = [](api::CUgraph) { return drop_handle(); };
}

// A device like an H200 with `capacity` bytes of memory.
inline Driver make(std::size_t capacity = std::size_t{1} << 30) {
  state() = {};
  state().capacity = capacity;
  Driver d;
  d.get_error_name = [](api::CUresult result, const char** name) {
    *name = result == api::kErrorOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER";
    return api::kSuccess;
  };
  d.get_error_string = [](api::CUresult, const char** text) {
    *text = "as the fake driver says";
    return api::kSuccess;
  };
  d.device_get_count = [](int* count) { return *count = 1, api::kSuccess; };
  d.device_get = [](api::CUdevice* device, int ordinal) { return *device = ordinal, api::kSuccess; };
  d.device_get_name = [](char* name, int length, api::CUdevice) {
    fmt::format_to_n(name, static_cast<std::size_t>(length - 1), "Fake H200");
    return api::kSuccess;
  };
  d.device_total_mem = [](std::size_t* bytes, api::CUdevice) {
    return *bytes = state().capacity, api::kSuccess;
  };
  d.device_get_attribute = [](int* value, int attribute, api::CUdevice) {
    return *value = attribute_value(attribute), api::kSuccess;
  };
  d.device_primary_ctx_retain = [](api::CUcontext* context, api::CUdevice) {
    *context = new_handle<api::CUcontext>();
    return api::kSuccess;
  };
  d.device_primary_ctx_release = [](api::CUdevice) { return drop_handle(); };
  d.ctx_set_current = [](api::CUcontext context) {
    note("set_current");
    state().current = context;
    return api::kSuccess;
  };
  d.ctx_get_current = [](api::CUcontext* context) { return *context = state().current, api::kSuccess; };
  d.ctx_synchronize = [] {
    note("synchronize");
    state().events_done = true;
    return api::kSuccess;
  };
  add_memory(d);
  add_handles(d);
  add_copies(d);
  add_launches(d);
  return d;
}

}  // namespace tilewright::cuda::fake
