// The pipeline that prints a plan.
#include "backends/cuda/print/printer.h"
#include "backends/cuda/print/pipelines/copied_chain.h"
#include "backends/cuda/print/pipelines/copied_dot.h"
#include "backends/cuda/print/pipelines/wgmma_dot.h"
#include "backends/cuda/print/pipelines/wgmma_scaled_chain.h"

#include <memory>

namespace tilewright::cuda {

namespace {

std::unique_ptr<Pipeline> pipeline_of(KernelPrinter& k, const CudaPlan& plan) {
  switch (plan.pipeline) {
    case PipelineKind::elements:
      if (walks_programs(plan.schedule)) return std::make_unique<PersistentRows>(k);
      return std::make_unique<Elements>(k);
    case PipelineKind::copied_dot:
      return std::make_unique<CopiedDot>(k);
    case PipelineKind::copied_chain:
      return std::make_unique<CopiedChain>(k);
    case PipelineKind::wgmma_dot:
      return std::make_unique<WgmmaDot>(k);
    case PipelineKind::wgmma_chain:
      if (adds_in_turn(*plan.dots.chain)) return std::make_unique<WgmmaScaledChain>(k);
      return std::make_unique<WgmmaChain>(k);
  }
  return nullptr;
}

}  // namespace

backends::Source print_kernel(const tile::Kernel& kernel, const CudaPlan& plan) {
  KernelPrinter printer(kernel, plan);
  return printer.run(*pipeline_of(printer, plan));
}

}  // namespace tilewright::cuda
