// The wgmma schedules: a persistent kernel whose last warpgroup fetches blocks by TMA into pipelines in
// shared memory while the others multiply them on the tensor cores and carry out what follows the loops.
#pragma once

#include "backends/cuda/print/pipelines/foresight.h"

namespace tilewright::cuda {

class Wgmma : public Pipeline {
 public:
  void print_body() final;

 protected:
  explicit Wgmma(KernelPrinter& k) : Pipeline(k), foresight_(k) {}
  virtual void choose_names() {}
  virtual void print_pipelines() = 0;
  virtual void print_fetching() = 0;
  virtual std::string end_of_blocks() const = 0;

  // Names of a block's type, of its stages in shared memory, of the pipeline state that says which is next,
  // of the barrier that counts its bytes, and of its tensor map.
  struct BlockNames {
    std::string type, stage, state, full, map;
  };
  void print_block_loads(const BlockNames& names, const TensorOperand& operand, const TensorBlock& map);
  void open_dot_loop(const Op& op);  // its head, for both sides
  int warpgroups() const { return schedule_.threads / kWarpgroup; }
  bool runs_always(const Op& loop) const;
  bool runs_once(const Op& loop) const;
  struct RegisterShare {
    int fetching, multiplying;
  };
  RegisterShare register_share() const;

  Foresight foresight_;

 private:
  void open_multiplied_programs();
  void open_program_loop();
  void print_tile_barriers();
  void print_store_stages();
  void print_exchange_place();
};

}  // namespace tilewright::cuda
