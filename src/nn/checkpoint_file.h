// One checkpoint's file: how it is written from a copy in the host's memory, by any thread.
#pragma once

#include <tilewright/formats/safetensors.h>
#include <tilewright/nn/host_copy.h>

namespace tilewright::nn::detail {

// Tensors, words, and a checksum of both, in a safetensors file that takes its name last. Throws Error, which
// names the file.
void write_checkpoint(const std::string& path, const HostCopy& copy, const Metadata& words,
                      const Location& where);

}  // namespace tilewright::nn::detail
