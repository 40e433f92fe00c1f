// Back-to-back dots under dot=wgmma: each block of memory has a ring of its own in shared memory, which the
// last warpgroup fills. The others multiply, carry out the element loops on the accumulators in their
// registers, and multiply what these leave there.
#pragma once

#include "backends/cuda/print/pipelines/chain_blocks.h"
#include "backends/cuda/print/pipelines/wgmma.h"

namespace tilewright::cuda {

class WgmmaChain : public Wgmma {
 public:
  explicit WgmmaChain(KernelPrinter& k) : Wgmma(k), blocks_(k) {}
  bool print_loop(const Step& step) override;
  bool take_load(const Loop& loop, const Op& load, const Registers& r) override;

 protected:
  void choose_names() override;
  void print_rings() override;
  void print_fetching() override;
  std::string end_of_blocks() const override { return blocks_.end(); }
  virtual void print_dots(const Step& loop);  // a loop of dots

  // The blocks of a dot that come anew each round and are read by nobody before it.
  void wait(const ChainDot& dot);
  void release(int block, const std::string& turn);
  bool joins(int block) const { return rings_[static_cast<std::size_t>(block)].joins; }
  const std::string& turn(const ChainDot& dot, int block) const;
  std::string place(const ChainDot& dot, int block) const;

  ChainBlocks blocks_;

 private:
  struct Ring {
    std::string name, turn, full;
    std::string late_turn;  // of a late dot that is not the first to read the block; or empty
    bool joins = false;     // the ring of the block before: they come and go together
  };
  // Names, and operands that dots read from registers.
  void join_rings();
  void name_late_dots();
  void name_parts(const ChainDot& dot);
  void declare_parts(const Step& loop);
  void print_parts(const ChainDot& dot);
  Registers left(const ChainDot& dot);
  void share_late_registers(const ChainDot& from, const ChainDot& to);
  // The fetching side.
  void print_fetching(const Step& loop);
  void print_fetch(std::size_t block, const Op& load);
  // The multiplying side.
  void wait_for_residents();
  void release_residents();
  void issue(const ChainDot& dot);
  void issue(const ChainDot& dot, const std::string& add);
  void finish(const ChainDot& dot);
  void zero_unused(const ChainDot& dot);
  bool reads_last_early(const ChainDot& dot, int block) const;
  // Rounds (wgmma_chain_rounds.cpp): as a pipeline, step by step, or overlapping.
  struct NamedRound {  // registers for what a round keeps aside
    const ChainRound* steps = nullptr;
    std::map<ValueId, Registers> aside = {};
  };
  struct RoundBounds {
    std::string index, type, from, end, by;
  };
  void print_pipeline(const Step& loop, const std::vector<const ChainDot*>& dots);
  void print_in_order(const Step& loop);
  void print_overlapping(const Step& loop);
  NamedRound named_round(const Step& loop);
  RoundBounds print_round_bounds(const Op& loop);
  void print_overlapping_rounds(const NamedRound& round, const RoundBounds& bounds, const std::string& from);
  void print_late_used_parts(const ChainDot& late);
  void open_round(const ChainRound& round);
  void issue_first(const ChainRound& round);
  void print_rest(const ChainRound& round);
  void print_sums(const NamedRound& round);
  void print_adding(const NamedRound& round);

  std::vector<Ring> rings_;             // by block
  std::map<ValueId, Registers> parts_;  // by storage: operand a of a dot, as it reads it
  std::set<std::string> declared_parts_;
};

}  // namespace tilewright::cuda
