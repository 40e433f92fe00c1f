// Opens libcuda at run time and fills the table; see driver.h.
#include "backends/cuda/host/driver.h"

#include "backends/cuda/host/library_symbols.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace tilewright::cuda {
namespace {

// Calls visit(exported name, slot) for each function. The names carry the version whose signature driver.h
// declares.
template <class Visit>
void visit_management(Driver& d, const Visit& visit) {
  visit("cuInit", d.init);
  visit("cuDriverGetVersion", d.driver_get_version);
  visit("cuGetErrorName", d.get_error_name);
  visit("cuGetErrorString", d.get_error_string);
  visit("cuDeviceGet", d.device_get);
  visit("cuDeviceGetCount", d.device_get_count);
  visit("cuDeviceGetName", d.device_get_name);
  visit("cuDeviceGetAttribute", d.device_get_attribute);
  visit("cuDeviceTotalMem_v2", d.device_total_mem);
  visit("cuDevicePrimaryCtxRetain", d.device_primary_ctx_retain);
  visit("cuDevicePrimaryCtxRelease_v2", d.device_primary_ctx_release);
  visit("cuCtxSetCurrent", d.ctx_set_current);
  visit("cuCtxGetCurrent", d.ctx_get_current);
  visit("cuCtxSynchronize", d.ctx_synchronize);
  visit("cuStreamCreateWithPriority", d.stream_create_with_priority);
  visit("cuStreamDestroy_v2", d.stream_destroy);
  visit("cuStreamSynchronize", d.stream_synchronize);
  visit("cuStreamGetCtx", d.stream_get_ctx);
  visit("cuStreamWaitEvent", d.stream_wait_event);
  visit("cuStreamBeginCapture_v2", d.stream_begin_capture);
  visit("cuStreamEndCapture", d.stream_end_capture);
  visit("cuEventCreate", d.event_create);
  visit("cuEventDestroy_v2", d.event_destroy);
  visit("cuEventRecord", d.event_record);
  visit("cuEventQuery", d.event_query);
  visit("cuEventSynchronize", d.event_synchronize);
  visit("cuEventElapsedTime", d.event_elapsed_time);
}

template <class Visit>
void visit_work(Driver& d, const Visit& visit) {
  visit("cuModuleLoadData", d.module_load_data);
  visit("cuModuleUnload", d.module_unload);
  visit("cuModuleGetFunction", d.module_get_function);
  visit("cuFuncGetAttribute", d.func_get_attribute);
  visit("cuFuncSetAttribute", d.func_set_attribute);
  visit("cuOccupancyMaxActiveBlocksPerMultiprocessor", d.occupancy_max_active_blocks);
  visit("cuOccupancyMaxActiveClusters", d.occupancy_max_active_clusters);
  visit("cuLaunchKernelEx", d.launch_kernel_ex);
  visit("cuMemGetInfo_v2", d.mem_get_info);
  visit("cuMemAlloc_v2", d.mem_alloc);
  visit("cuMemFree_v2", d.mem_free);
  visit("cuPointerGetAttribute", d.pointer_get_attribute);
  visit("cuMemHostAlloc", d.mem_host_alloc);
  visit("cuMemFreeHost", d.mem_free_host);
  visit("cuMemcpyHtoDAsync_v2", d.memcpy_htod_async);
  visit("cuMemcpyDtoHAsync_v2", d.memcpy_dtoh_async);
  visit("cuMemcpyDtoDAsync_v2", d.memcpy_dtod_async);
  visit("cuMemsetD8Async", d.memset_d8_async);
  visit("cuMemsetD16Async", d.memset_d16_async);
  visit("cuMemsetD32Async", d.memset_d32_async);
  visit("cuMemsetD2D32Async", d.memset_d2_d32_async);
  visit("cuGraphDestroy", d.graph_destroy);
  visit("cuGraphInstantiateWithFlags", d.graph_instantiate);
  visit("cuGraphExecDestroy", d.graph_exec_destroy);
  visit("cuGraphUpload", d.graph_upload);
  visit("cuGraphLaunch", d.graph_launch);
  visit("cuTensorMapEncodeTiled", d.tensor_map_encode_tiled);
}

Status load_symbols(Driver& driver, void* library, const std::string& name) {
  LibrarySymbols symbols(library);
  const auto load = [&](const char* symbol, auto& slot) { symbols.load(symbol, slot); };
  visit_management(driver, load);
  visit_work(driver, load);
  return symbols.all_found(name,
                           ": Tilewright needs an NVIDIA driver for CUDA 12.0 or newer (525.60 or later)");
}

Status start(const Driver& driver, const std::string& name) {
  const api::CUresult started = driver.init(0);
  if (started == api::kErrorStubLibrary) {
    return failure(Failure::Kind::device,
                   fmt::format("{} is CUDA's link-time stub, not a driver; install the NVIDIA driver "
                               "or let the loader find its libcuda.so.1 first",
                               name));
  }
  if (started == api::kErrorNoDevice) {
    return failure(Failure::Kind::device, fmt::format("{} was opened but sees no NVIDIA GPU (cuInit: {})",
                                                      name, error_text(driver, started)));
  }
  if (started != api::kSuccess) return driver_failure(driver, started, "cuInit");
  int count = 0;
  if (auto status = check(driver, driver.device_get_count(&count), "cuDeviceGetCount"); !status)
    return status;
  if (count > 0) return Unit{};
  return failure(Failure::Kind::device, fmt::format("{} was opened but sees no NVIDIA GPU", name));
}

}  // namespace

Result<Driver> open_driver(const DriverOptions& options) {
  void* library = dlopen(options.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return failure(
        Failure::Kind::not_found,
        fmt::format(
            "no NVIDIA driver: {} could not be opened ({}); CUDA kernels need an NVIDIA GPU and its driver",
            options.library, dlerror()));
  }
  Driver driver;
  if (auto status = load_symbols(driver, library, options.library); !status) return status.error();
  if (auto status = start(driver, options.library); !status) return status.error();
  return driver;
}

std::string error_text(const Driver& driver, api::CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.get_error_name != nullptr) (void)driver.get_error_name(result, &name);
  if (driver.get_error_string != nullptr) (void)driver.get_error_string(result, &text);
  return fmt::format("{} ({}): {}", name != nullptr ? name : "CUDA error", result,
                     text != nullptr ? text : "unknown to this driver");
}

Failure driver_failure(const Driver& driver, api::CUresult result, std::string_view what) {
  const auto kind = result == api::kErrorOutOfMemory ? Failure::Kind::out_of_memory : Failure::Kind::device;
  return failure(kind, fmt::format("{}: {}", what, error_text(driver, result)));
}

Status check(const Driver& driver, api::CUresult result, std::string_view what) {
  if (result == api::kSuccess) return Unit{};
  return driver_failure(driver, result, what);
}

Result<std::string> driver_version(const Driver& driver) {
  int version = 0;
  if (auto status = check(driver, driver.driver_get_version(&version), "cuDriverGetVersion"); !status)
    return status.error();
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace tilewright::cuda
