// Tensors copied to the host and back.
#include <tilewright/nn/host_copy.h>

namespace tilewright::nn {

void HostCopy::take_tensors(const NamedTensors& tensors, const Location& where) {
  entries_.resize(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i].tensor;
    Entry& entry = entries_[i];
    entry.name = tensors[i].name;
    entry.dtype = tensor.dtype(where);
    entry.shape = tensor.shape(where);
    entry.bytes.resize(static_cast<std::size_t>(tensor.size(where)) * size_bytes(entry.dtype));
    tensor.read(entry.bytes.data(), entry.dtype, where);
  }
}

NamedTensors HostCopy::tensors_on(Context& ctx, const Location& where) const {
  NamedTensors tensors;
  tensors.reserve(entries_.size());
  for (const Entry& e : entries_)
    tensors.push_back(
        {e.name, ctx.from_memory(e.bytes.data(), e.dtype, e.shape.size(), e.shape, e.dtype, where)});
  return tensors;
}

}  // namespace tilewright::nn
