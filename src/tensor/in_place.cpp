// Which outputs are inputs, and how they get what was computed.
#include "tensor/in_place.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::detail {

OutputMemory::OutputMemory(const std::vector<Tensor>& outputs, const CompiledCall& call,
                           std::size_t arguments)
    : outputs_(outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::shared_ptr<runtime::Buffer>& buffer = outputs[i].impl()->buffer;
    const auto reads = [&](const Tensor& t) { return t.impl()->buffer == buffer; };
    const auto input = std::find_if(call.inputs.begin(), call.inputs.end(), reads);
    if (input == call.inputs.end()) continue;
    const auto k = static_cast<std::size_t>(input - call.inputs.begin());
    replaced_.push_back({i, k < arguments ? fmt::format("argument {}", k) : "captured by the function",
                         buffer.use_count() > 1});
  }
  buffers_.reserve(outputs.size());
  for (const Tensor& t : outputs) buffers_.push_back(t.impl()->buffer);
  for (const Replaced& r : replaced_) {
    const TensorImpl& t = *outputs[r.output].impl();
    buffers_[r.output] = allocate(t.device, t.type);
  }
}

Status OutputMemory::hand_over() {
  for (const Replaced& r : replaced_) {
    std::shared_ptr<runtime::Buffer>& to = outputs_[r.output].impl()->buffer;
    const std::shared_ptr<runtime::Buffer>& from = buffers_[r.output];
    if (!r.shared) {
      to = from;
    } else if (to->bytes() > 0) {
      Status copied = to->device().backend().copy(to->data(), from->data(), to->bytes(),
                                                  backends::CopyKind::device_to_device);
      if (!copied) return copied;
    }
  }
  return Unit{};
}

std::vector<std::string> OutputMemory::lines() const {
  std::vector<std::string> lines;
  lines.reserve(replaced_.size());
  for (const Replaced& r : replaced_)
    lines.push_back(
        fmt::format("output {} is {}: written to new memory, which {}", r.output, r.input,
                    r.shared ? "is copied to the tensor's own, as others share it" : "becomes the tensor's"));
  return lines;
}

}  // namespace tilewright::detail
