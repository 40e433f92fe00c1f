// The list of libraries, and what is done with their calls.
#include "backends/cuda/library/cublaslt.h"
#include "backends/cuda/library/library.h"

#include <fmt/format.h>

namespace tilewright::cuda {

LibrarySet open_libraries(const std::vector<std::string>& paths, const LibraryHost& host) {
  std::vector<std::unique_ptr<Library>> all;
  std::string unusable;
  const auto add = [&](auto opened) {
    if (opened)
      all.push_back(std::move(*opened));
    else if (opened.error().kind != Failure::Kind::not_found)
      unusable += (unusable.empty() ? "" : "; ") + opened.error().message;
  };
  add(open_cublaslt(paths, host));
  return LibrarySet(std::move(all), std::move(unusable));
}

Result<Library*> LibrarySet::find(const tile::LibraryCall& call) const {
  for (const auto& library : all_)
    if (library->name() == call.name) return library.get();
  return failure(Failure::Kind::not_found, fmt::format("library {}: this machine has none", call.name));
}

std::vector<backends::Candidate> LibrarySet::candidates(const tile::Kernel& kernel) const {
  std::vector<backends::Candidate> out;
  for (const auto& library : all_)
    for (int i = 0, count = library->algorithms(kernel); i < count; ++i)
      out.push_back({.schedule = {.kind = tile::LibraryCall{.name = library->name(), .algorithm = i}}});
  return out;
}

Result<backends::Source> LibrarySet::print(const tile::Kernel& kernel, const tile::LibraryCall& call) const {
  const auto library = find(call);
  if (!library) return library.error();
  auto text = (*library)->print(kernel, call.algorithm);
  if (!text) return text.error();
  return backends::Source{
      .text = std::move(*text), .entry = kernel.name, .launch = {}, .schedule = {.kind = call}};
}

Result<backends::Binary> LibrarySet::compile(const tile::Kernel& kernel, const tile::LibraryCall& call,
                                             const backends::Source& source) const {
  const auto printed = print(kernel, call);
  if (!printed) return printed.error();
  if (source.text != printed->text)
    return failure(Failure::Kind::compile,
                   fmt::format("{}: a library's call cannot be edited; with Libraries::none a kernel of ours "
                               "takes its place",
                               kernel.name));
  return backends::Binary{.bytes = source.text, .log = "", .compile_ms = 0};
}

Result<std::unique_ptr<PreparedCall>> LibrarySet::prepare(const tile::Kernel& kernel,
                                                          const tile::LibraryCall& call) const {
  const auto library = find(call);
  if (!library) return library.error();
  return (*library)->prepare(kernel, call.algorithm);
}

}  // namespace tilewright::cuda
