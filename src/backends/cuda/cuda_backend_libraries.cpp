// Vendors' libraries in the place of kernels: what CudaBackend does with their calls.
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/library_program.h"

#include <fmt/format.h>

namespace tilewright::cuda {

const Libraries& CudaBackend::libraries() const {
  const std::lock_guard lock(libraries_mutex_);
  if (!libraries_) libraries_.emplace(open_libraries(library_paths_, library_host_));
  return *libraries_;
}

Result<Library*> CudaBackend::library(const tile::LibraryCall& call) const {
  for (const auto& library : libraries())
    if (library->name() == call.name) return library.get();
  return failure(Failure::Kind::not_found, fmt::format("library {}: this machine has none", call.name));
}

std::vector<backends::Candidate> CudaBackend::library_candidates(const tile::Kernel& kernel) {
  std::vector<backends::Candidate> out;
  if (!enter()) return out;
  for (const auto& library : libraries())
    for (int i = 0, count = library->algorithms(kernel); i < count; ++i)
      out.push_back({.schedule = {.kind = tile::LibraryCall{.name = library->name(), .algorithm = i}}});
  return out;
}

Result<backends::Source> CudaBackend::print_call(const tile::Kernel& kernel,
                                                 const tile::LibraryCall& call) const {
  const auto found = library(call);
  if (!found) return found.error();
  auto text = (*found)->print(kernel, call.algorithm);
  if (!text) return text.error();
  return backends::Source{
      .text = std::move(*text), .entry = kernel.name, .launch = {}, .schedule = {.kind = call}};
}

// There is nothing to compile, and nothing that another text could change.
Result<backends::Binary> CudaBackend::compile_call(const tile::Kernel& kernel, const tile::LibraryCall& call,
                                                   const backends::Source& source) const {
  const auto printed = print_call(kernel, call);
  if (!printed) return printed.error();
  if (source.text != printed->text)
    return failure(Failure::Kind::compile,
                   fmt::format("{}: a library's call cannot be edited; without max_autotune, or with "
                               "Libraries::none, a kernel takes its place",
                               kernel.name));
  return backends::Binary{.bytes = source.text, .log = "", .compile_ms = 0};
}

Result<std::unique_ptr<backends::Program>> CudaBackend::load_call(const tile::Kernel& kernel,
                                                                  const tile::LibraryCall& call) {
  const auto found = library(call);
  if (!found) return found.error();
  auto prepared = (*found)->prepare(kernel, call.algorithm);
  if (!prepared) return prepared.error();
  return std::unique_ptr<backends::Program>(new LibraryProgram(*this, std::move(*prepared)));
}

}  // namespace tilewright::cuda
