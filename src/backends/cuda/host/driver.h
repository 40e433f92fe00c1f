// NVIDIA's driver, opened at run time: a table of its functions and the one place that turns its error codes
// into words.
#pragma once

#include <string>
#include <string_view>

#include "backends/cuda/host/driver_api.h"
#include "tilewright/base/error.h"

namespace tilewright::cuda {

// Members are called as NVIDIA's functions without "cu"; driver.cpp pairs them with the exported names (with
// _v2). A plain struct, so that tests can fill it with functions of their own.
struct Driver {
  using R = api::CUresult;
  R (*init)(unsigned flags) = nullptr;
  R (*driver_get_version)(int* version) = nullptr;
  R (*get_error_name)(R error, const char** name) = nullptr;
  R (*get_error_string)(R error, const char** text) = nullptr;

  R (*device_get)(api::CUdevice* device, int ordinal) = nullptr;
  R (*device_get_count)(int* count) = nullptr;
  R (*device_get_name)(char* name, int length, api::CUdevice device) = nullptr;
  R (*device_get_attribute)(int* value, int attribute, api::CUdevice device) = nullptr;
  R (*device_total_mem)(std::size_t* bytes, api::CUdevice device) = nullptr;
  R (*device_primary_ctx_retain)(api::CUcontext* context, api::CUdevice device) = nullptr;
  R (*device_primary_ctx_release)(api::CUdevice device) = nullptr;
  R (*ctx_set_current)(api::CUcontext context) = nullptr;
  R (*ctx_get_current)(api::CUcontext* context) = nullptr;
  R (*ctx_synchronize)() = nullptr;

  R (*stream_create_with_priority)(api::CUstream* stream, unsigned flags, int priority) = nullptr;
  R (*stream_destroy)(api::CUstream stream) = nullptr;
  R (*stream_synchronize)(api::CUstream stream) = nullptr;
  R (*stream_get_ctx)(api::CUstream stream, api::CUcontext* context) = nullptr;
  R (*stream_wait_event)(api::CUstream stream, api::CUevent event, unsigned flags) = nullptr;
  R (*stream_begin_capture)(api::CUstream stream, int mode) = nullptr;
  R (*stream_end_capture)(api::CUstream stream, api::CUgraph* graph) = nullptr;
  R (*event_create)(api::CUevent* event, unsigned flags) = nullptr;
  R (*event_destroy)(api::CUevent event) = nullptr;
  R (*event_record)(api::CUevent event, api::CUstream stream) = nullptr;
  R (*event_query)(api::CUevent event) = nullptr;
  R (*event_synchronize)(api::CUevent event) = nullptr;
  R (*event_elapsed_time)(float* ms, api::CUevent start, api::CUevent end) = nullptr;

  R (*module_load_data)(api::CUmodule* module, const void* image) = nullptr;
  R (*module_unload)(api::CUmodule module) = nullptr;
  R (*module_get_function)(api::CUfunction* function, api::CUmodule module, const char* name) = nullptr;
  R (*func_get_attribute)(int* value, int attribute, api::CUfunction function) = nullptr;
  R (*func_set_attribute)(api::CUfunction function, int attribute, int value) = nullptr;
  R (*occupancy_max_active_blocks)(int* blocks, api::CUfunction function, int threads,
                                   std::size_t shared_bytes) = nullptr;
  R (*occupancy_max_active_clusters)(int* clusters, api::CUfunction function,
                                     const api::LaunchConfig* config) = nullptr;
  R (*launch_kernel_ex)(const api::LaunchConfig* config, api::CUfunction function, void** params,
                        void** extra) = nullptr;

  R (*mem_get_info)(std::size_t* free, std::size_t* total) = nullptr;
  R (*mem_alloc)(api::CUdeviceptr* address, std::size_t bytes) = nullptr;
  R (*mem_free)(api::CUdeviceptr address) = nullptr;
  R (*pointer_get_attribute)(void* value, int attribute, api::CUdeviceptr address) = nullptr;
  R (*mem_host_alloc)(void** address, std::size_t bytes, unsigned flags) = nullptr;
  R (*mem_free_host)(void* address) = nullptr;
  R (*memcpy_htod_async)(api::CUdeviceptr to, const void* from, std::size_t bytes,
                         api::CUstream stream) = nullptr;
  R (*memcpy_dtoh_async)(void* to, api::CUdeviceptr from, std::size_t bytes, api::CUstream stream) = nullptr;
  R (*memcpy_dtod_async)(api::CUdeviceptr to, api::CUdeviceptr from, std::size_t bytes,
                         api::CUstream stream) = nullptr;
  R (*memset_d8_async)(api::CUdeviceptr to, unsigned char value, std::size_t count,
                       api::CUstream stream) = nullptr;
  R (*memset_d16_async)(api::CUdeviceptr to, unsigned short value, std::size_t count,
                        api::CUstream stream) = nullptr;
  R (*memset_d32_async)(api::CUdeviceptr to, unsigned value, std::size_t count,
                        api::CUstream stream) = nullptr;
  R (*memset_d2_d32_async)(api::CUdeviceptr to, std::size_t pitch_bytes, unsigned value, std::size_t width,
                           std::size_t height, api::CUstream stream) = nullptr;

  R (*graph_destroy)(api::CUgraph graph) = nullptr;
  R (*graph_instantiate)(api::CUgraphExec* exec, api::CUgraph graph, unsigned long long flags) = nullptr;
  R (*graph_exec_destroy)(api::CUgraphExec exec) = nullptr;
  R (*graph_upload)(api::CUgraphExec exec, api::CUstream stream) = nullptr;
  R (*graph_launch)(api::CUgraphExec exec, api::CUstream stream) = nullptr;

  R (*tensor_map_encode_tiled)(api::TensorMap* map, int data_type, std::uint32_t rank, void* address,
                               const std::uint64_t* extents, const std::uint64_t* strides_bytes,
                               const std::uint32_t* box, const std::uint32_t* element_strides, int interleave,
                               int swizzle, int l2_promotion, int oob_fill) = nullptr;
};

struct DriverOptions {
  std::string library = "libcuda.so.1";  // a name for the loader or a path
};

// Opens and initialises the driver. Fails with not_found (no driver library), unsupported (a driver older
// than CUDA 12.0: the message names the missing function) or device (the driver refuses to start, or sees no
// GPU). The library stays open until the process ends, as NVIDIA's driver does not support being unloaded.
Result<Driver> open_driver(const DriverOptions& options = {});

// "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"
std::string error_text(const Driver& driver, api::CUresult result);
// Success, or a Failure "<what>: <error text>"; out of memory keeps its own kind.
Status check(const Driver& driver, api::CUresult result, std::string_view what);
Failure driver_failure(const Driver& driver, api::CUresult result, std::string_view what);
// 13000 → "13.0"
Result<std::string> driver_version(const Driver& driver);

// A handle of the driver that is destroyed with its owner. The Driver must outlive it.
template <class Handle, api::CUresult (*Driver::*kDestroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  Owned(const Driver& driver, Handle handle) : driver_(&driver), handle_(handle) {}
  Owned(Owned&& other) noexcept : driver_(other.driver_), handle_(other.release()) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      reset();
      driver_ = other.driver_;
      handle_ = other.release();
    }
    return *this;
  }
  ~Owned() { reset(); }

  Handle get() const { return handle_; }
  const Driver& driver() const { return *driver_; }
  explicit operator bool() const { return handle_ != Handle{}; }

 private:
  Handle release() {
    Handle handle = handle_;
    handle_ = {};
    return handle;
  }
  // At process exit the driver may already be gone: its answer to a destroy is of no use to anyone.
  void reset() {
    if (handle_ != Handle{}) (void)(driver_->*kDestroy)(release());
  }

  const Driver* driver_ = nullptr;
  Handle handle_{};
};

}  // namespace tilewright::cuda
