// The pipeline that prints a plan.
#include "backends/cuda/print/printer.h"
#include "backends/cuda/print/pipelines/cp_async_b2b.h"
#include "backends/cuda/print/pipelines/cp_async_dot.h"
#include "backends/cuda/print/pipelines/wgmma_dot.h"
#include "backends/cuda/print/pipelines/wgmma_scaled_accumulation.h"

#include <memory>

namespace tilewright::cuda {

namespace {

struct PipelineOf {
  using Printed = std::unique_ptr<Pipeline>;
  KernelPrinter& k;
  const CudaPlan& plan;

  Printed operator()(const tile::CpuLoops&) const { return nullptr; }
  Printed operator()(const tile::LibraryCall&) const { return nullptr; }
  Printed operator()(const tile::ElementLoops&) const {
    if (walks_programs(plan.schedule)) return std::make_unique<PersistentRows>(k);
    if (!plan.runs.all.empty()) return std::make_unique<RunsOfRows>(k);
    return std::make_unique<Elements>(k);
  }
  Printed operator()(const tile::MmaDot&) const { return std::make_unique<CpAsyncDot>(k); }
  Printed operator()(const tile::FmaBlocks&) const { return std::make_unique<CpAsyncDot>(k); }
  Printed operator()(const tile::MmaB2b&) const { return std::make_unique<CpAsyncB2b>(k); }
  Printed operator()(const tile::WgmmaDot&) const { return std::make_unique<WgmmaDot>(k); }
  Printed operator()(const tile::WgmmaPingpong&) const { return std::make_unique<WgmmaDot>(k); }
  Printed operator()(const tile::WgmmaB2b&) const { return std::make_unique<WgmmaB2b>(k); }
  Printed operator()(const tile::WgmmaScaled&) const {
    if (accumulates_in_turn(*plan.dots.b2b)) return std::make_unique<WgmmaScaledAccumulation>(k);
    return std::make_unique<WgmmaB2b>(k);
  }
};

}  // namespace

backends::Source print_kernel(const tile::Kernel& kernel, const CudaPlan& plan) {
  Printing printing(kernel, plan);
  KernelPrinter printer(printing);
  return printer.run(*std::visit(PipelineOf{printer, plan}, plan.schedule.kind));
}

}  // namespace tilewright::cuda
