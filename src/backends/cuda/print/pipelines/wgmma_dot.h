// A loop of one dot under wgmma: blocks of both operands share the stages of one pipeline.
#pragma once

#include "backends/cuda/print/pipelines/wgmma.h"

namespace tilewright::cuda {

class WgmmaDot final : public Wgmma {
 public:
  explicit WgmmaDot(KernelPrinter& k) : Wgmma(k) {}
  bool print_loop(const Step& step) override;

 protected:
  void print_pipelines() override;
  void print_fetching() override;
  std::string end_of_blocks() const override;

 private:
  void print_fetching(const Step& loop);
  void print_turn(const Op& loop);
  void print_rounds(const Op& op);
};

}  // namespace tilewright::cuda
