// The part of NVRTC's C API that we use, declared here so that no CUDA is needed to build; api_test.cpp
// compares it with nvrtc.h where that file exists.
#pragma once

#include <cstddef>

struct _nvrtcProgram;  // NOLINT(bugprone-reserved-identifier): its name in nvrtc.h

namespace tilewright::cuda::api {

using nvrtcResult = int;
using nvrtcProgram = ::_nvrtcProgram*;
inline constexpr nvrtcResult kNvrtcSuccess = 0;
inline constexpr nvrtcResult kNvrtcErrorCompilation = 6;

// Functions of libnvrtc, called as NVIDIA's without "nvrtc".
struct Nvrtc {
  nvrtcResult (*version)(int* major, int* minor) = nullptr;
  const char* (*get_error_string)(nvrtcResult result) = nullptr;
  nvrtcResult (*create_program)(nvrtcProgram* program, const char* source, const char* name, int header_count,
                                const char* const* headers, const char* const* include_names) = nullptr;
  nvrtcResult (*destroy_program)(nvrtcProgram* program) = nullptr;
  nvrtcResult (*compile_program)(nvrtcProgram program, int option_count,
                                 const char* const* options) = nullptr;
  nvrtcResult (*get_program_log_size)(nvrtcProgram program, std::size_t* size) = nullptr;
  nvrtcResult (*get_program_log)(nvrtcProgram program, char* log) = nullptr;
  nvrtcResult (*get_cubin_size)(nvrtcProgram program, std::size_t* size) = nullptr;
  nvrtcResult (*get_cubin)(nvrtcProgram program, char* code) = nullptr;
};

}  // namespace tilewright::cuda::api
