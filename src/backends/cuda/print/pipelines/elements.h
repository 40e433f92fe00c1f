// Kernels without dots on tensor cores: element loops, a program a block, or one after another with rows that
// are copied ahead.
#pragma once

#include "backends/cuda/print/pipelines/foresight.h"

namespace tilewright::cuda {

class Elements : public Pipeline {
 public:
  explicit Elements(KernelPrinter& k) : Pipeline(k) {}
  void print_body() override;
};

// Tiles of whole rows come to shared memory as runs of bytes, and leave it so (layout/row_runs.h).
class RunsOfRows : public Elements {
 public:
  explicit RunsOfRows(KernelPrinter& k) : Elements(k) {}
  void print_body() override;
  void bring_tiles(const PrintedLoop& loop) override;
  void send_tiles(const PrintedLoop& loop) override;
  std::string tile_in_shared(const Op& op) const override;

 private:
  std::string call(const RowRun& run);

  std::map<const Op*, std::string> places_;
};

// A persistent kernel that copies the rows of the next programs into shared memory while it computes on the
// present one's: memory is busy all the time, and the rows take no registers.
class PersistentRows : public Pipeline {
 public:
  explicit PersistentRows(KernelPrinter& k) : Pipeline(k), foresight_(k) {}
  void print_body() override;
  bool bring_load(PrintedLoop& loop, std::size_t instr) override;

 private:
  // A load that is copied ahead: its slots of 16 bytes a thread, and those before it.
  struct Staged {
    std::string name;
    Index slots = 0;
    Index first_slot = 0;
  };
  void name_staged();
  void print_fetch(PrintedLoop& loop, const Instr& in);
  void print_staging(const std::string& programs);
  void print_turn(const std::string& programs);
  std::vector<Staged> staged_in_order() const;

  std::map<const Op*, Staged> staged_;
  Text fetch_{2, names_};
  bool fetches_shift_ = false;  // the fetching function knows the shift of a program's row
  Foresight foresight_;
};

}  // namespace tilewright::cuda
