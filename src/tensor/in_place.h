// into() over tensors that the function reads. A kernel may write an element before another of its threads
// has read it, so such an output is written to new memory, which is handed to the tensor when all has been
// read.
#pragma once

#include "tensor/state.h"

#include <tilewright/tensor/compile.h>

namespace tilewright::detail {

class OutputMemory {
 public:
  // Memory for the outputs of a call whose first `arguments` inputs are its arguments; throws Error. Both
  // must outlive this.
  OutputMemory(const std::vector<Tensor>& outputs, const CompiledCall& call, std::size_t arguments);
  // What the program writes, in the order of the outputs.
  const std::vector<std::shared_ptr<runtime::Buffer>>& buffers() const { return buffers_; }
  // After the program: its results are the outputs'.
  Status hand_over();
  // For explain(): a line for each output that is read.
  std::vector<std::string> lines() const;

 private:
  struct Replaced {
    std::size_t output = 0;
    std::string input;    // that it is: "argument 0"
    bool shared = false;  // its memory is that of other tensors, too, which must see the new values
  };
  const std::vector<Tensor>& outputs_;
  std::vector<std::shared_ptr<runtime::Buffer>> buffers_;
  std::vector<Replaced> replaced_;
};

}  // namespace tilewright::detail
