// into() over tensors that the function reads. Where the plan may (passes/plan/overwrite_inputs.h), kernels
// write there; any other such output is written to new memory, which is handed to the tensor when all has
// been read.
#pragma once

#include "tensor/state.h"

#include <tilewright/tensor/compile.h>

namespace tilewright::detail {

// The outputs that are inputs of a program, which are its arguments and then what it captured. Borrowed
// tensors may be the same memory without being the same tensor; throws Error where two share a part of it, or
// see it as different types.
std::vector<passes::Overwrite> overwrites(const std::vector<Tensor>& outputs,
                                          const std::vector<Tensor>& arguments,
                                          const std::vector<Tensor>& captured);

// Arguments that a call is given for good: what compile() is told by CompileOptions::donate.
class Donation {
 public:
  // Throws Error where the memory of one is another argument or captured.
  Donation(const std::vector<int>& donated, const std::vector<Tensor>& inputs, std::size_t arguments,
           const GivenNames& names);
  // What the plan is asked for. Throws Error where there is no such argument.
  static std::vector<passes::Overwrite> wishes(const std::vector<int>& donated, std::size_t arguments,
                                               const GivenNames& names);
  // Memory of the outputs that take a donated argument's; a copy of it where other tensors share it. Others
  // are empty. Throws Error.
  std::vector<std::shared_ptr<runtime::Buffer>> outputs(const CompiledGraph& graph) const;
  // After the call: the arguments have no value any more.
  void spend(const Location& where) const;
  // For explain(): what becomes of each donated argument.
  static std::vector<std::string> lines(const std::vector<passes::Overwriting>& overwriting,
                                        const GivenNames& names);

 private:
  const std::vector<Tensor>& inputs_;
  std::vector<int> donated_;
};

class OutputMemory {
 public:
  // Memory for the outputs of a program that was compiled for overwrites() of them and its inputs, of which
  // the first `arguments` are the function's arguments; throws Error. `outputs` must outlive this.
  OutputMemory(const std::vector<Tensor>& outputs, std::size_t arguments,
               const std::vector<passes::Overwriting>& overwriting, const GivenNames& names);
  // What the program writes, in the order of the outputs.
  const std::vector<std::shared_ptr<runtime::Buffer>>& buffers() const { return buffers_; }
  // After the program: its results are the outputs'.
  Status hand_over();
  // For explain(): a line for each output that is read.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  struct Replaced {
    std::size_t output = 0;
    bool shared = false;  // its memory is that of other tensors, too, which must see the new values
  };
  const std::vector<Tensor>& outputs_;
  std::vector<std::shared_ptr<runtime::Buffer>> buffers_;
  std::vector<Replaced> replaced_;
  std::vector<std::string> lines_;
};

}  // namespace tilewright::detail
