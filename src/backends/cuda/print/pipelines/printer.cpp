// The pipeline that prints a plan.
#include "backends/cuda/print/printer.h"
#include "backends/cuda/print/pipelines/cp_async_b2b.h"
#include "backends/cuda/print/pipelines/cp_async_dot.h"
#include "backends/cuda/print/pipelines/wgmma_dot.h"
#include "backends/cuda/print/pipelines/wgmma_scaled_accumulation.h"

#include <memory>

namespace tilewright::cuda {

namespace {

std::unique_ptr<Pipeline> pipeline_of(KernelPrinter& k, const CudaPlan& plan) {
  switch (plan.pipeline) {
    case PipelineKind::elements:
      if (walks_programs(plan.schedule)) return std::make_unique<PersistentRows>(k);
      return std::make_unique<Elements>(k);
    case PipelineKind::cp_async_dot:
      return std::make_unique<CpAsyncDot>(k);
    case PipelineKind::cp_async_b2b:
      return std::make_unique<CpAsyncB2b>(k);
    case PipelineKind::wgmma_dot:
      return std::make_unique<WgmmaDot>(k);
    case PipelineKind::wgmma_b2b:
      if (accumulates_in_turn(*plan.dots.b2b)) return std::make_unique<WgmmaScaledAccumulation>(k);
      return std::make_unique<WgmmaB2b>(k);
  }
  return nullptr;
}

}  // namespace

backends::Source print_kernel(const tile::Kernel& kernel, const CudaPlan& plan) {
  KernelPrinter printer(kernel, plan);
  return printer.run(*pipeline_of(printer, plan));
}

}  // namespace tilewright::cuda
