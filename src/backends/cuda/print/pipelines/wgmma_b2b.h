// Back-to-back dots by wgmma: each block of memory has a pipeline of its own in shared memory, which the
// last warpgroup fills. The others multiply, carry out the element loops on the accumulators in their
// registers, and multiply what these leave there.
#pragma once

#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/print/masked_rounds.h"
#include "backends/cuda/print/pipelines/b2b_blocks.h"
#include "backends/cuda/print/pipelines/wgmma.h"

namespace tilewright::cuda {

class WgmmaB2b : public Wgmma {
 public:
  explicit WgmmaB2b(KernelPrinter& k) : Wgmma(k), blocks_(k) {}
  bool print_loop(const Step& step) override;
  bool take_load(const PrintedLoop& loop, const Op& load, const Registers& r) override;

 protected:
  void choose_names() override;
  void print_pipelines() override;
  void print_fetching() override;
  std::string end_of_blocks() const override { return blocks_.end(); }
  virtual void print_dots(const Step& loop);  // a loop of dots

  // The blocks of a dot that come anew each round and are read by nobody before it.
  void wait(const B2bDot& dot);
  void release(int block, const std::string& state);
  bool joins(int block) const { return pipelines_[static_cast<std::size_t>(block)].joins; }
  const std::string& state(const B2bDot& dot, int block) const;
  std::string layout(const B2bDot& dot, int block) const;

  B2bBlocks blocks_;

 private:
  struct TmaPipeline {
    std::string name, state, full;
    std::string late_state;  // of a late dot that is not the first to read the block; or empty
    bool joins = false;      // the pipeline of the block before: they come and go together
  };
  // Names, and operands that dots read from registers.
  void join_rings();
  void name_late_dots();
  void name_parts(const B2bDot& dot);
  void declare_parts(const Step& loop);
  void print_parts(const B2bDot& dot);
  Registers left(const B2bDot& dot);
  void share_late_registers(const B2bDot& from, const B2bDot& to);
  // The fetching side.
  void print_fetching(const Step& loop);
  void print_fetch(std::size_t block, const Op& load);
  // The multiplying side.
  void wait_for_residents();
  void release_residents();
  void issue(const B2bDot& dot);
  void issue(const B2bDot& dot, const std::string& add);
  void finish(const B2bDot& dot);
  void zero_unused(const B2bDot& dot);
  bool reads_last_early(const B2bDot& dot, int block) const;
  // Rounds (wgmma_b2b_rounds.cpp): as a pipeline, step by step, or overlapping.
  struct NamedRound {  // registers for what a round keeps aside
    const B2bRound* steps = nullptr;
    std::map<ValueId, Registers> aside = {};
  };
  struct RoundBounds {
    std::string index;
    DType type = DType::i64;
    TypedText from;
    std::string end, by;
  };
  enum class RoundForm : unsigned char { pipeline, in_order, overlapping };
  RoundForm form_of(const Step& loop) const;
  std::vector<const B2bDot*> dots_of(const Step& loop) const;
  const Step* printed_with(const Step& loop) const;
  void print_pipeline(const Step& loop, const std::vector<const B2bDot*>& dots);
  void print_in_order(const Step& loop);
  void print_round_in_order(const Step& loop, std::vector<ElementPrinter::LoadAhead>& ahead,
                            const std::string& next);
  Index registers_left(const Step& loop);
  std::vector<ElementPrinter::LoadAhead> loads_ahead(const Step& loop);
  void print_ahead(std::vector<ElementPrinter::LoadAhead>& loads, const Op& loop, const std::string& index);
  void print_first_ahead(std::vector<ElementPrinter::LoadAhead>& loads, const Op& loop, const Op& rounds);
  void print_overlapping(const Step& loop);
  NamedRound named_round(const Step& loop);
  RoundBounds print_round_bounds(const Op& loop);
  void print_overlapping_round(const NamedRound& round, bool may_begin);
  std::optional<KnownMasks> shared_masks(const Step& loop, const Step& next) const;
  void print_late_used_parts(const B2bDot& late);
  void open_round(const B2bRound& round);
  void issue_first(const B2bRound& round);
  void print_rest(const B2bRound& round);
  void print_sums(const NamedRound& round);
  void print_adding(const NamedRound& round);

  std::vector<TmaPipeline> pipelines_;  // by block
  std::map<ValueId, Registers> parts_;  // by storage: operand a of a dot, as it reads it
  std::set<std::string> declared_parts_;
  std::set<const Step*> printed_;  // loops that were printed with the one before
};

}  // namespace tilewright::cuda
