// Our declarations of NVIDIA's APIs against the real headers, at compile time, where these are installed.
#if __has_include(<cuda.h>) && __has_include(<nvrtc.h>)
#include <cuda.h>
#include <nvrtc.h>

#include <cstddef>
#include <type_traits>

#include "backends/cuda/host/driver.h"
#include "backends/cuda/nvrtc/nvrtc_api.h"

namespace tilewright::cuda {
namespace {

// NOLINTBEGIN(bugprone-sizeof-expression): sizes of pointers are compared on purpose.
// The same as seen by the calling convention: pointers meet pointers, and integers and enums meet by size.
template <class A, class B>
constexpr bool same_class =
    std::is_pointer_v<A>          ? std::is_pointer_v<B>
    : std::is_floating_point_v<A> ? std::is_same_v<A, B>
                                  : (std::is_integral_v<B> || std::is_enum_v<B>) && sizeof(A) == sizeof(B);
template <class Ours, class Theirs>
struct SameAbi : std::false_type {};
template <class R, class... A, class S, class... B>
struct SameAbi<R (*)(A...), S (*)(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) != sizeof...(B)) {
      return false;
    } else {
      return same_class<R, S> && (same_class<A, B> && ... && true);
    }
  }();
};

#define MATCHES(member, function) \
  static_assert(SameAbi<decltype(Driver::member), decltype(&::function)>::value, #function)
MATCHES(init, cuInit);
MATCHES(driver_get_version, cuDriverGetVersion);
MATCHES(get_error_name, cuGetErrorName);
MATCHES(get_error_string, cuGetErrorString);
MATCHES(device_get, cuDeviceGet);
MATCHES(device_get_count, cuDeviceGetCount);
MATCHES(device_get_name, cuDeviceGetName);
MATCHES(device_get_attribute, cuDeviceGetAttribute);
MATCHES(device_total_mem, cuDeviceTotalMem);
MATCHES(device_primary_ctx_retain, cuDevicePrimaryCtxRetain);
MATCHES(device_primary_ctx_release, cuDevicePrimaryCtxRelease);
MATCHES(ctx_set_current, cuCtxSetCurrent);
MATCHES(ctx_get_current, cuCtxGetCurrent);
MATCHES(ctx_synchronize, cuCtxSynchronize);
MATCHES(stream_create_with_priority, cuStreamCreateWithPriority);
MATCHES(stream_destroy, cuStreamDestroy);
MATCHES(stream_synchronize, cuStreamSynchronize);
MATCHES(stream_wait_event, cuStreamWaitEvent);
MATCHES(stream_begin_capture, cuStreamBeginCapture);
MATCHES(stream_end_capture, cuStreamEndCapture);
MATCHES(event_create, cuEventCreate);
MATCHES(event_destroy, cuEventDestroy);
MATCHES(event_record, cuEventRecord);
MATCHES(event_query, cuEventQuery);
MATCHES(event_synchronize, cuEventSynchronize);
MATCHES(event_elapsed_time, cuEventElapsedTime);
MATCHES(module_load_data, cuModuleLoadData);
MATCHES(module_unload, cuModuleUnload);
MATCHES(module_get_function, cuModuleGetFunction);
MATCHES(func_get_attribute, cuFuncGetAttribute);
MATCHES(func_set_attribute, cuFuncSetAttribute);
MATCHES(occupancy_max_active_blocks, cuOccupancyMaxActiveBlocksPerMultiprocessor);
MATCHES(occupancy_max_active_clusters, cuOccupancyMaxActiveClusters);
MATCHES(launch_kernel_ex, cuLaunchKernelEx);
MATCHES(mem_get_info, cuMemGetInfo);
MATCHES(mem_alloc, cuMemAlloc);
MATCHES(mem_free, cuMemFree);
MATCHES(pointer_get_attribute, cuPointerGetAttribute);
MATCHES(mem_host_alloc, cuMemHostAlloc);
MATCHES(mem_free_host, cuMemFreeHost);
MATCHES(memcpy_htod_async, cuMemcpyHtoDAsync);
MATCHES(memcpy_dtoh_async, cuMemcpyDtoHAsync);
MATCHES(memcpy_dtod_async, cuMemcpyDtoDAsync);
MATCHES(memset_d8_async, cuMemsetD8Async);
MATCHES(memset_d16_async, cuMemsetD16Async);
MATCHES(memset_d32_async, cuMemsetD32Async);
MATCHES(memset_d2_d32_async, cuMemsetD2D32Async);
MATCHES(graph_destroy, cuGraphDestroy);
MATCHES(graph_instantiate, cuGraphInstantiateWithFlags);
MATCHES(graph_exec_destroy, cuGraphExecDestroy);
MATCHES(graph_upload, cuGraphUpload);
MATCHES(graph_launch, cuGraphLaunch);
MATCHES(tensor_map_encode_tiled, cuTensorMapEncodeTiled);
#undef MATCHES

#define MATCHES(member, function) \
  static_assert(SameAbi<decltype(api::Nvrtc::member), decltype(&::function)>::value, #function)
MATCHES(version, nvrtcVersion);
MATCHES(get_error_string, nvrtcGetErrorString);
MATCHES(create_program, nvrtcCreateProgram);
MATCHES(destroy_program, nvrtcDestroyProgram);
MATCHES(compile_program, nvrtcCompileProgram);
MATCHES(get_program_log_size, nvrtcGetProgramLogSize);
MATCHES(get_program_log, nvrtcGetProgramLog);
MATCHES(get_cubin_size, nvrtcGetCUBINSize);
MATCHES(get_cubin, nvrtcGetCUBIN);
#undef MATCHES
static_assert(api::kNvrtcErrorCompilation == NVRTC_ERROR_COMPILATION);

static_assert(std::is_same_v<api::CUstream, ::CUstream> && std::is_same_v<api::CUgraphExec, ::CUgraphExec> &&
              std::is_same_v<api::CUdeviceptr, ::CUdeviceptr> && std::is_same_v<api::CUdevice, ::CUdevice>);
static_assert(api::kErrorInvalidValue == CUDA_ERROR_INVALID_VALUE &&
              api::kErrorOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY &&
              api::kErrorDeinitialized == CUDA_ERROR_DEINITIALIZED &&
              api::kErrorStubLibrary == CUDA_ERROR_STUB_LIBRARY &&
              api::kErrorNoDevice == CUDA_ERROR_NO_DEVICE && api::kErrorNotReady == CUDA_ERROR_NOT_READY);

#define EQUALS(ours, theirs) static_assert(static_cast<int>(api::ours) == static_cast<int>(theirs), #theirs)
EQUALS(kMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
EQUALS(kMaxRegistersPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
EQUALS(kClockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
EQUALS(kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
EQUALS(kPciBusId, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
EQUALS(kPciDeviceId, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
EQUALS(kPciDomainId, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
EQUALS(kMemoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
EQUALS(kGlobalMemoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
EQUALS(kL2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
EQUALS(kMaxThreadsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
EQUALS(kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
EQUALS(kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
EQUALS(kMaxSharedMemoryPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
EQUALS(kMaxRegistersPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
EQUALS(kMaxSharedMemoryPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
EQUALS(kMaxBlocksPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
EQUALS(kReservedSharedMemoryPerBlock, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
EQUALS(kClusterLaunch, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
EQUALS(kMemoryTypeHost, CU_MEMORYTYPE_HOST);
EQUALS(kMemoryTypeDevice, CU_MEMORYTYPE_DEVICE);
EQUALS(kPointerMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
EQUALS(kPointerDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
EQUALS(kFunctionMaxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
EQUALS(kFunctionSharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
EQUALS(kFunctionConstSizeBytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
EQUALS(kFunctionLocalSizeBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
EQUALS(kFunctionNumRegs, CU_FUNC_ATTRIBUTE_NUM_REGS);
EQUALS(kFunctionMaxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
EQUALS(kFunctionNonPortableClusterSizeAllowed, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
EQUALS(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
EQUALS(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
EQUALS(kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);
EQUALS(kCaptureModeRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
EQUALS(kMemoryTypeHost, CU_MEMORYTYPE_HOST);
EQUALS(kLaunchCooperative, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
EQUALS(kLaunchClusterDimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
EQUALS(kLaunchProgrammaticStreamSerialization, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
#undef EQUALS

#define SAME_PLACE(ours, member, theirs, field)                                                           \
  static_assert(                                                                                          \
      offsetof(ours, member) == offsetof(theirs, field) && sizeof(ours::member) == sizeof(theirs::field), \
      #field)
static_assert(sizeof(api::LaunchAttribute) == sizeof(CUlaunchAttribute));
SAME_PLACE(api::LaunchAttribute, id, CUlaunchAttribute, id);
SAME_PLACE(api::LaunchAttribute, value, CUlaunchAttribute, value);
static_assert(sizeof(api::LaunchConfig) == sizeof(CUlaunchConfig));
SAME_PLACE(api::LaunchConfig, grid_x, CUlaunchConfig, gridDimX);
SAME_PLACE(api::LaunchConfig, block_x, CUlaunchConfig, blockDimX);
SAME_PLACE(api::LaunchConfig, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_PLACE(api::LaunchConfig, stream, CUlaunchConfig, hStream);
SAME_PLACE(api::LaunchConfig, attributes, CUlaunchConfig, attrs);
SAME_PLACE(api::LaunchConfig, attribute_count, CUlaunchConfig, numAttrs);
static_assert(sizeof(api::TensorMap) == sizeof(CUtensorMap) &&
              alignof(api::TensorMap) == alignof(CUtensorMap));
#undef SAME_PLACE

}  // namespace
}  // namespace tilewright::cuda
#endif
// NOLINTEND(bugprone-sizeof-expression)
