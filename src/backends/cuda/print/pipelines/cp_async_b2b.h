// Back-to-back dots by mma.sync: all threads copy the blocks of later rounds into shared memory (cp.async),
// multiply the present ones by mma.sync and carry out the element loops between. What a warp waits for, the
// others of its multiprocessor fill.
#pragma once

#include "backends/cuda/print/pipelines/b2b_blocks.h"

namespace tilewright::cuda {

class CpAsyncB2b final : public Pipeline {
 public:
  explicit CpAsyncB2b(KernelPrinter& k) : Pipeline(k), blocks_(k) {}
  void print_body() override;
  bool print_loop(const Step& step) override;

 private:
  // Names of a loop's numbers, and of the functions that copy its blocks.
  struct CopiedLoop {
    std::string index, lower, end, by;
    std::map<int, std::string> copies = {};
    std::string at(const std::string& from, int rounds) const;
  };
  void print_dots(const Step& loop);
  void copy_residents(const Op& outermost);
  void print_first_copies(const Step& loop, const std::vector<CopyPoint>& points, const CopiedLoop& names);
  void print_copy_point(const CopyPoint& point, const CopiedLoop& names);
  void copy(int block, const Op& load, const std::string& stage);
  void multiply(const B2bDot& dot);
  std::string stage(int block) const { return blocks_.layout(block, "stage"); }

  B2bBlocks blocks_;
  std::set<int> resident_copied_;  // blocks
};

}  // namespace tilewright::cuda
