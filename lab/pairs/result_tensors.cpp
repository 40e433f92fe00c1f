// Access to the memory of results.
#include "pairs/result_tensors.h"

#include "pairs/tensor_inputs.h"
#include "tensor/storage.h"

namespace tilewright::lab {

namespace {

OutputAccess access(const ResultTensors& results, std::size_t o, const std::function<void()>& ensure) {
  return {.poison = [results, o, ensure](std::uint8_t byte) -> Status {
            Status status = Unit{};
            Status ran = guarded([&] {
              if (ensure) ensure();
              status = detail::fill_storage(results->at(o), byte);
            });
            return ran ? status : ran;
          },
          .read = [results, o](const ElementsVisitor& visit) -> Status {
            Status status = Unit{};
            Status ran = guarded([&] { status = visit_elements(results->at(o), visit); });
            return ran ? status : ran;
          },
          .memory = [results, o] { return memory_of(results->at(o)); }};
}

}  // namespace

ResultTensors placed_results(Context& context, const std::vector<OutputSpec>& outputs) {
  auto results = std::make_shared<std::vector<Tensor>>();
  results->reserve(outputs.size());
  for (const OutputSpec& spec : outputs) results->push_back(context.empty(spec.shape, spec.dtype));
  return results;
}

void add_outputs(Contender& contender, const ResultTensors& results, std::size_t count,
                 const std::function<void()>& ensure) {
  contender.outputs.reserve(count);
  for (std::size_t o = 0; o < count; ++o) contender.outputs.push_back(access(results, o, ensure));
}

}  // namespace tilewright::lab
