// The blocks of memory that back-to-back dots read, in shared memory: their names, types and pipeline
// stages, and the zeros written over what is not used of them.
#pragma once

#include "backends/cuda/print/pipeline.h"

namespace tilewright::cuda {

class B2bBlocks : PrinterParts {
 public:
  // Names of a block's type, as its first reader sees it and with rows and depth exchanged, and of its
  // stages.
  struct Names {
    std::string type, transposed, stage;
  };

  explicit B2bBlocks(KernelPrinter& k) : PrinterParts(k) {}
  void choose_names();
  const Names& names(int block) const { return text_[static_cast<std::size_t>(block)]; }
  void print_stages(const std::string& first);                  // `first`: where the first block is
  std::string end() const { return behind(text_.size() - 1); }  // of all of them
  std::string type(int block, bool k_major) const;
  // One of its stages, by a number or its name.
  std::string layout(int block, const std::string& number) const;
  // Whether a dot is the first or the last of its loop to read a block.
  bool reads_first(const B2bDot& dot, int block) const;
  bool reads_last(const B2bDot& dot, int block) const;
  bool is_resident(int block) const { return b2b_->blocks[static_cast<std::size_t>(block)].resident(); }
  // The scalars that say where a loop's blocks begin, and those of loops inside it; and what these are made
  // of.
  std::set<ValueId> starts(const Step& loop) const;
  void print_starts(const Step& loop, const std::set<ValueId>& starts);  // what a round computes of them
  // Writes zeros before the first dot that reads a block, by so many threads; whether there were any.
  bool zero_unused(const B2bDot& dot, int threads, const std::function<std::string(int block)>& layout);

 private:
  std::string behind(std::size_t block) const;
  TypedText used_part(ValueId v, const TypedText& line);
  TypedText used_part_load(const Op& load, const TypedText& line);

  std::vector<Names> text_;
};

}  // namespace tilewright::cuda
