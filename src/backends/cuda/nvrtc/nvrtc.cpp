// Opens libnvrtc at run time and compiles with it; see nvrtc.h.
#include "backends/cuda/nvrtc/nvrtc.h"

#include <fmt/format.h>

#include <chrono>

#include "backends/cuda/host/library_symbols.h"
#include "backends/cuda/nvrtc/device_headers.h"
#include "backends/cuda/nvrtc/nvrtc_api.h"

namespace tilewright::cuda {

struct Nvrtc::State {
  api::Nvrtc functions;
  std::string path;
  std::string version;
  bool takes_minimal = false;
};

namespace {

constexpr const char* kLibraryNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
// CUDA 13's wheels share one folder, CUDA 12's have one each.
constexpr const char* kWheelFolders[] = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};

Status load_symbols(api::Nvrtc& nvrtc, void* library, const std::string& path) {
  LibrarySymbols symbols(library);
  const auto load = [&](const char* symbol, auto& slot) { symbols.load(symbol, slot); };
  load("nvrtcVersion", nvrtc.version);
  load("nvrtcGetErrorString", nvrtc.get_error_string);
  load("nvrtcCreateProgram", nvrtc.create_program);
  load("nvrtcDestroyProgram", nvrtc.destroy_program);
  load("nvrtcCompileProgram", nvrtc.compile_program);
  load("nvrtcGetProgramLogSize", nvrtc.get_program_log_size);
  load("nvrtcGetProgramLog", nvrtc.get_program_log);
  load("nvrtcGetCUBINSize", nvrtc.get_cubin_size);
  load("nvrtcGetCUBIN", nvrtc.get_cubin);
  return symbols.all_found(path);
}

// One nvrtcProgram, destroyed on the way out.
class Program {
 public:
  explicit Program(const api::Nvrtc& nvrtc) : nvrtc_(nvrtc) {}
  ~Program() {
    if (program_ != nullptr) (void)nvrtc_.destroy_program(&program_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Status create(const std::string& source, const NvrtcOptions& options) {
    std::vector<const char*> names, texts;
    for (const auto& header : options.headers) {
      names.push_back(header.name.c_str());
      texts.push_back(header.text.c_str());
    }
    if (options.device_headers) {
      for (const auto& header : device_headers()) {
        names.push_back(header.name);
        texts.push_back(header.text.data());
      }
    }
    return check(nvrtc_.create_program(&program_, source.c_str(), options.file_name.c_str(),
                                       static_cast<int>(names.size()), texts.data(), names.data()),
                 "nvrtcCreateProgram");
  }

  api::nvrtcResult compile(const std::vector<std::string>& flags) {
    std::vector<const char*> pointers;
    pointers.reserve(flags.size());
    for (const auto& flag : flags) pointers.push_back(flag.c_str());
    return nvrtc_.compile_program(program_, static_cast<int>(pointers.size()), pointers.data());
  }

  Result<std::string> log() const {
    return text(nvrtc_.get_program_log_size, nvrtc_.get_program_log, "nvrtcGetProgramLog");
  }
  Result<std::string> cubin() const { return text(nvrtc_.get_cubin_size, nvrtc_.get_cubin, "nvrtcGetCUBIN"); }

  Status check(api::nvrtcResult result, const char* what) const {
    if (result == api::kNvrtcSuccess) return Unit{};
    return failure(Failure::Kind::compile, fmt::format("{}: {}", what, nvrtc_.get_error_string(result)));
  }

 private:
  using SizeOf = api::nvrtcResult (*)(api::nvrtcProgram, std::size_t*);
  using Read = api::nvrtcResult (*)(api::nvrtcProgram, char*);
  Result<std::string> text(SizeOf size_of, Read read, const char* what) const {
    std::size_t size = 0;
    if (auto status = check(size_of(program_, &size), what); !status) return status.error();
    std::string out(size, '\0');
    if (auto status = check(read(program_, out.data()), what); !status) return status.error();
    return out;
  }

  const api::Nvrtc& nvrtc_;
  api::nvrtcProgram program_ = nullptr;
};

}  // namespace

Nvrtc::Nvrtc(std::unique_ptr<State> state) : state_(std::move(state)) {}
Nvrtc::Nvrtc(Nvrtc&&) noexcept = default;
Nvrtc& Nvrtc::operator=(Nvrtc&&) noexcept = default;
Nvrtc::~Nvrtc() = default;

const std::string& Nvrtc::version() const { return state_->version; }
const std::string& Nvrtc::library_path() const { return state_->path; }

LibrarySearch nvrtc_search_from_environment() { return library_search_from_environment("TILEWRIGHT_NVRTC"); }

Result<Nvrtc> Nvrtc::open(const LibrarySearch& search) {
  auto state = std::make_unique<State>();
  const OpenedLibrary library = open_library(search, {kLibraryNames, kWheelFolders});
  state->path = library.path;
  if (library.handle == nullptr) {
    return failure(
        Failure::Kind::not_found,
        fmt::format(
            "NVRTC, which compiles CUDA kernels at run time, was not found. Install it with "
            "`pip install nvidia-cuda-nvrtc` (no GPU needed) or the CUDA toolkit, or set TILEWRIGHT_NVRTC "
            "to libnvrtc.so.13 or its folder. Looked at:{}",
            library.tried));
  }
  if (auto status = load_symbols(state->functions, library.handle, state->path); !status)
    return status.error();
  int major = 0, minor = 0;
  if (state->functions.version(&major, &minor) != api::kNvrtcSuccess) {
    return failure(Failure::Kind::unsupported, fmt::format("{}: nvrtcVersion failed", state->path));
  }
  state->version = fmt::format("{}.{}", major, minor);
  constexpr int kFirstWithMinimal = 13;  // the first that was tried
  state->takes_minimal = major >= kFirstWithMinimal;
  return Nvrtc(std::move(state));
}

std::vector<std::string> nvrtc_flags(const NvrtcOptions& options) {
  std::vector<std::string> flags = {
      "-arch=" + options.arch.text(), "--std=c++17",
      "--ptxas-options=-v",           // registers and spills, for the report
      "-diag-suppress=177,550,1444",  // unused variables of generated text; deprecated names
  };
  if (options.lines) flags.emplace_back("-lineinfo");
  flags.insert(flags.end(), options.flags.begin(), options.flags.end());
  return flags;
}

Result<Binary> Nvrtc::compile(const std::string& source, const NvrtcOptions& options) const {
  const auto start = std::chrono::steady_clock::now();
  Program program(state_->functions);
  if (auto status = program.create(source, options); !status) return status.error();
  std::vector<std::string> flags = nvrtc_flags(options);
  // Textures, surfaces and the runtime's functions, which no kernel of ours has, are not declared: 7 to 14 ms
  // of each kernel's time (docs/launches.md).
  if (state_->takes_minimal) flags.emplace_back("--minimal");
  const auto compiled = program.compile(flags);
  auto log = program.log();
  if (!log) return log.error();
  while (!log->empty() && log->back() == '\0') log->pop_back();
  if (compiled != api::kNvrtcSuccess) {
    return failure(Failure::Kind::compile,
                   fmt::format("{} for {}: {}\n{}", options.file_name, options.arch.text(),
                               state_->functions.get_error_string(compiled), *log));
  }
  auto cubin = program.cubin();
  if (!cubin) return cubin.error();
  if (cubin->empty()) {
    return failure(Failure::Kind::compile,
                   fmt::format("NVRTC made no machine code for {}: name a real architecture (sm_90a)",
                               options.arch.text()));
  }
  Binary binary;
  binary.parsed = parse_compile_log(*log);
  binary.log = std::move(*log);
  binary.cubin = std::move(*cubin);
  binary.arch = options.arch;
  binary.compile_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return binary;
}

}  // namespace tilewright::cuda
