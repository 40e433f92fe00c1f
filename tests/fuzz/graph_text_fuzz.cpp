// Any bytes: parse either refuses them or gives a graph whose text reads back as the same graph.
#include "ir/text.h"
#include "ops/ops.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tilewright;
  const auto graph = ir::parse({reinterpret_cast<const char*>(data), size}, ops::all_ops());
  if (!graph) return 0;
  const auto again = ir::parse(ir::print(*graph), ops::all_ops());
  if (!again || !(*again == *graph)) std::abort();
  return 0;
}
