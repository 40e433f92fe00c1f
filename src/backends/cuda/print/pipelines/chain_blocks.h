// The blocks of memory that back-to-back dots read, in shared memory: their names, types and places, and the
// zeros that take the place of what is not used of them.
#pragma once

#include "backends/cuda/print/pipeline.h"

namespace tilewright::cuda {

class ChainBlocks : PipelineText {
 public:
  // Names of a block's type, as its first reader sees it and with rows and depth exchanged, and of its
  // places.
  struct Names {
    std::string type, turned, stage;
  };

  explicit ChainBlocks(KernelPrinter& k) : PipelineText(k) {}
  void choose_names();
  const Names& names(int block) const { return text_[static_cast<std::size_t>(block)]; }
  void print_places();
  std::string end() const { return behind(text_.size() - 1); }  // of all of them
  std::string type(int block, bool k_major) const;
  // One of its places, by a number or its name.
  std::string place(int block, const std::string& number) const;
  // Whether a dot is the first or the last of its loop to read a block.
  bool reads_first(const ChainDot& dot, int block) const;
  bool reads_last(const ChainDot& dot, int block) const;
  bool is_resident(int block) const { return chain_->blocks[static_cast<std::size_t>(block)].resident(); }
  // The scalars that say where a loop's blocks begin, and those of loops inside it; and what these are made
  // of.
  std::set<ValueId> starts(const Step& loop) const;
  // Writes zeros before the first dot that reads a block, by so many threads; whether there were any.
  bool zero_unused(const ChainDot& dot, int threads, const std::function<std::string(int block)>& place);

 private:
  std::string behind(std::size_t block) const;
  Expr used_part(ValueId v, const Expr& line);
  Expr used_part_load(const Op& load, const Expr& line);

  std::vector<Names> text_;
};

}  // namespace tilewright::cuda
