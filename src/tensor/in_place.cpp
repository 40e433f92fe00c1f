// Which outputs are inputs, and how they get what was computed.
#include "tensor/in_place.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::detail {

std::vector<passes::Overwrite> overwrites(const std::vector<Tensor>& outputs,
                                          const std::vector<Tensor>& arguments,
                                          const std::vector<Tensor>& captured) {
  std::vector<passes::Overwrite> all;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    passes::Overwrite o{static_cast<int>(i), {}};
    const TensorImpl& output = *outputs[i].impl();
    for (std::size_t k = 0; k < arguments.size() + captured.size(); ++k) {
      const bool given = k < arguments.size();
      const TensorImpl& input = *(given ? arguments[k] : captured[k - arguments.size()]).impl();
      if (!input.buffer->overlaps(*output.buffer)) continue;
      if (!input.buffer->is_same_memory(*output.buffer) || !(input.type == output.type))
        throw Error(fmt::format(
            "into: output {}, {}, shares a part of its memory with {}, which the function reads: borrow them "
            "as one tensor, or apart",
            i, to_string(output.type), to_string(input.type)));
      o.inputs.push_back(static_cast<int>(k));
    }
    if (!o.inputs.empty()) all.push_back(std::move(o));
  }
  return all;
}

namespace {

// The same values in memory of its own.
std::shared_ptr<runtime::Buffer> copy_of(const TensorImpl& t) {
  std::shared_ptr<runtime::Buffer> copy = allocate(t.device, t.type);
  if (copy->bytes() == 0) return copy;
  Status copied = t.device->backend().copy(copy->data(), t.buffer->data(), copy->bytes(),
                                           backends::CopyKind::device_to_device);
  if (!copied) raise(copied.error(), copied.error().message);
  return copy;
}

}  // namespace

Donation::Donation(const std::vector<int>& donated, const std::vector<Tensor>& inputs, std::size_t arguments,
                   const GivenNames& names)
    : inputs_(inputs), donated_(donated) {
  for (const int d : donated) {
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (k != static_cast<std::size_t>(d) &&
          inputs[k].impl()->buffer->overlaps(*inputs[static_cast<std::size_t>(d)].impl()->buffer))
        throw Error(fmt::format("compile: {} is donated, and {}: its memory cannot be both",
                                names.of(static_cast<std::size_t>(d)),
                                k < arguments ? fmt::format("it is {} as well", names.of(k))
                                              : "the function captures it as well"));
  }
}

std::vector<passes::Overwrite> Donation::wishes(const std::vector<int>& donated, std::size_t arguments,
                                                const GivenNames& names) {
  std::vector<passes::Overwrite> all;
  all.reserve(donated.size());
  for (const int d : donated) {
    if (d < 0 || static_cast<std::size_t>(d) >= arguments)
      throw Error(fmt::format("compile: argument {} is to be donated, the function has {}", d, arguments));
    if (std::count(donated.begin(), donated.end(), d) > 1)
      throw Error(fmt::format("compile: {} is to be donated twice", names.of(static_cast<std::size_t>(d))));
    all.push_back({-1, {d}});
  }
  return all;
}

std::vector<std::shared_ptr<runtime::Buffer>> Donation::outputs(const CompiledGraph& graph) const {
  std::vector<std::shared_ptr<runtime::Buffer>> out(graph.outputs.size());
  for (const passes::Overwriting& o : graph.compiled.overwriting) {
    if (!o.why_not.empty()) continue;
    const TensorImpl& t = *inputs_[static_cast<std::size_t>(o.what.inputs.front())].impl();
    out[static_cast<std::size_t>(o.what.output)] =
        t.buffer.use_count() > 1 || t.buffer->is_read_only() ? copy_of(t) : t.buffer;
  }
  return out;
}

void Donation::spend(const Location& where) const {
  for (const int d : donated_) {
    TensorImpl& t = *inputs_[static_cast<std::size_t>(d)].impl();
    t.buffer = nullptr;
    t.donated = location_text(where);
  }
}

std::vector<std::string> Donation::lines(const std::vector<passes::Overwriting>& overwriting,
                                         const GivenNames& names) {
  // Many tensors that become outputs, as those of a training step, are told by the first ones and their
  // number.
  constexpr std::ptrdiff_t kMost = 12, kShown = 3;
  const auto is_granted = [](const passes::Overwriting& o) { return o.why_not.empty(); };
  const auto granted = std::count_if(overwriting.begin(), overwriting.end(), is_granted);
  std::ptrdiff_t told = 0;
  std::vector<std::string> lines;
  lines.reserve(overwriting.size());
  for (const passes::Overwriting& o : overwriting) {
    if (granted > kMost && is_granted(o) && ++told > kShown) {
      if (told == kShown + 1)
        lines.push_back(fmt::format("donated: {} tensors become outputs in all", granted));
      continue;
    }
    const std::string argument = names.of(static_cast<std::size_t>(o.what.inputs.front()));
    lines.push_back(o.why_not.empty()
                        ? fmt::format("donated: {} becomes output {}", argument, o.what.output)
                        : fmt::format("donated: {} is freed behind the call: {}", argument, o.why_not));
  }
  return lines;
}

OutputMemory::OutputMemory(const std::vector<Tensor>& outputs, std::size_t arguments,
                           const std::vector<passes::Overwriting>& overwriting, const GivenNames& names)
    : outputs_(outputs) {
  buffers_.reserve(outputs.size());
  for (const Tensor& t : outputs) buffers_.push_back(t.impl()->buffer);
  for (const passes::Overwriting& o : overwriting) {
    const auto output = static_cast<std::size_t>(o.what.output);
    const TensorImpl& t = *outputs[output].impl();
    const int input = o.what.inputs.front();
    std::string line =
        fmt::format("into: output {} is {}: written ", output,
                    static_cast<std::size_t>(input) < arguments ? names.of(static_cast<std::size_t>(input))
                                                                : "captured by the function");
    if (o.why_not.empty()) {
      lines_.push_back(line + "in place");
      continue;
    }
    // Beside the tensor and buffers_; whoever lent the memory waits for the values in it.
    const bool shared = buffers_[output].use_count() > 2 || buffers_[output]->is_borrowed();
    replaced_.push_back({output, shared});
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
