// Random graphs whose inputs are donated: the same values as of the graph that writes elsewhere, whatever
// lies where.
#include "support/donated_graph.h"
#include "support/draws.h"
#include "support/kernel_folder.h"
#include "support/random_graph.h"
#include "support/run_graph.h"
#include "tensor/explain.h"
#include "tensor/storage.h"

#include <tilewright/tilewright.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

namespace tilewright::test {
namespace {

std::vector<Tensor> tensors(Context& context, const ir::Graph& graph, std::uint64_t seed) {
  std::vector<Tensor> out;
  for (const ir::HostTensor& t : random_inputs(graph, seed))
    out.push_back(is_float(t.type.dtype) ? context.from(t.f, t.type.shape, t.type.dtype)
                                         : context.from(std::vector<std::int64_t>(t.i.begin(), t.i.end()),
                                                        t.type.shape, t.type.dtype));
  return out;
}

std::vector<std::byte> bytes(const Tensor& t) {
  std::vector<std::byte> out(detail::storage_bytes(t));
  EXPECT_TRUE(detail::read_storage(t, out.data()));
  return out;
}

std::vector<ir::HostTensor> host_tensors(const std::vector<Tensor>& tensors) {
  std::vector<ir::HostTensor> out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) {
    ir::HostTensor host{.type = {t.dtype(), t.shape()}, .f = {}, .i = {}};
    if (is_float(t.dtype()))
      host.f = t.to_vector<double>();
    else
      host.i = t.to_vector<std::int64_t>();
    out.push_back(std::move(host));
  }
  return out;
}

class DonatedGraphs : public ::testing::TestWithParam<const char*> {};

// The reference runs programs as they are written. A backend may cut a kernel otherwise that reads and writes
// one memory, and add in another order: what differs in bits is judged by the oracle then.
TEST_P(DonatedGraphs, HaveTheValuesOfThoseThatWriteElsewhere) {
  Context context({.device = GetParam(), .cache_directory = test::kernel_folder()});
  const bool reference = std::string(GetParam()) == "reference";
  int granted = 0, refused = 0, judged = 0;
  const std::uint64_t graphs = draws(reference ? 600 : 150);
  for (std::uint64_t seed = 1; seed <= graphs; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const ir::Graph graph = with_fitting_outputs(random_graph({.seed = seed,
                                                               .ops = 8,
                                                               .max_elements = seed % 3 == 0 ? 60000 : 600,
                                                               .matmuls = seed % 4 == 0,
                                                               .placed = seed % 2 == 0}));
    if (graph.inputs().empty()) continue;
    std::vector<int> all(graph.inputs().size());
    std::iota(all.begin(), all.end(), 0);
    const auto function = detail::graph_function(graph);
    // Deterministic functions add in a fixed order, as atomics do not.
    const CompiledList apart(function, {.deterministic = true}),
        donating(function, {.deterministic = true, .donate = all});
    const std::vector<Tensor> expected = apart(tensors(context, graph, seed)),
                              got = donating(tensors(context, graph, seed));
    std::vector<std::size_t> other;
    for (std::size_t i = 0; i < got.size(); ++i)
      if (bytes(got[i]) != bytes(expected[i])) other.push_back(i);
    if (!other.empty()) {
      ++judged;
      const std::string wrong =
          reference ? "other bits"
                    : difference_from(graph, random_inputs(graph, seed), host_tensors(got), {.seed = seed});
      ASSERT_EQ(wrong, "") << "output " << other.front() << "\n"
                           << donating.explain() << donating.report().front().graph;
    }
    const SpecialisationReport report = donating.report().front();
    for (const std::string& line : report.in_place)
      ++(line.find("becomes output") != std::string::npos ? granted : refused);
  }
  RecordProperty("granted", granted);
  EXPECT_LE(judged, static_cast<int>(graphs) / 20) << "most kernels are cut alike";
  EXPECT_GT(granted, refused / 4) << "most inputs have an output that fits: " << refused << " refused";
}

INSTANTIATE_TEST_SUITE_P(Devices, DonatedGraphs, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright::test
