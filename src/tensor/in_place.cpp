// Which outputs are inputs, and how they get what was computed.
#include "tensor/in_place.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::detail {

std::vector<passes::Overwrite> overwrites(const std::vector<Tensor>& outputs,
                                          const std::vector<Tensor>& inputs) {
  std::vector<passes::Overwrite> all;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    passes::Overwrite o{static_cast<int>(i), {}};
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (inputs[k].impl()->buffer == outputs[i].impl()->buffer) o.inputs.push_back(static_cast<int>(k));
    if (!o.inputs.empty()) all.push_back(std::move(o));
  }
  return all;
}

OutputMemory::OutputMemory(const std::vector<Tensor>& outputs, std::size_t arguments,
                           const std::vector<passes::Overwriting>& overwriting)
    : outputs_(outputs) {
  buffers_.reserve(outputs.size());
  for (const Tensor& t : outputs) buffers_.push_back(t.impl()->buffer);
  for (const passes::Overwriting& o : overwriting) {
    const auto output = static_cast<std::size_t>(o.what.output);
    const TensorImpl& t = *outputs[output].impl();
    const int input = o.what.inputs.front();
    std::string line =
        fmt::format("output {} is {}: written ", output,
                    static_cast<std::size_t>(input) < arguments ? fmt::format("argument {}", input)
                                                                : "captured by the function");
    if (o.why_not.empty()) {
      lines_.push_back(line + "in place");
      continue;
    }
    replaced_.push_back({output, buffers_[output].use_count() > 2});  // the tensor's, and that of buffers_
    buffers_[output] = allocate(t.device, t.type);
    lines_.push_back(line + fmt::format("to new memory, which {}: {}",
                                        replaced_.back().shared
                                            ? "is copied to the tensor's own, as others share it"
                                            : "becomes the tensor's",
                                        o.why_not));
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

}  // namespace tilewright::detail
