// A program while a family draws it: inputs and statements, each written for both sides at once, or for each
// alone where people write in PyTorch by one name what is several statements of ours.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sweep/draw.h"
#include "sweep/drawn.h"

namespace tilewright::sweep {

using Options = std::map<std::string, std::string>;

// What a program is drawn for.
struct Aim {
  DType dtype = DType::f32;
  double bytes = 1 << 20;  // of traffic, about
};

class Draft {
 public:
  Draft(const std::string& family, std::uint64_t seed, const Aim& aim);

  // The structure is drawn from `choose` and extents from `sizes`, so that a smaller aim gives the same
  // structure.
  Draw choose, sizes;
  DType dtype() const { return drawn_.dtype; }
  double bytes() const { return bytes_; }
  // The number of elements of the program's type that `share` of the traffic is.
  double elements(double share = 1) const;

  // Inputs return their name, statements that of their result.
  std::string input(const std::string& name, const Shape& shape, const Holds& holds = {});
  std::string integers(const std::string& name, const Shape& shape, Index past, Index least = 0);
  // A weight of a product over `k` terms: of deviation 1/√k, so that results stay of order 1.
  std::string weight(const std::string& name, const Shape& shape, Index k);
  // A factor or an addend of a norm, near 1 and near 0.
  std::string factor(const std::string& name, Index n);
  std::string addend(const std::string& name, Index n);

  std::string add(const std::string& op, const std::vector<std::string>& operands,
                  const Options& options = {});
  std::string ours(const std::string& op, const std::vector<std::string>& operands,
                   const Options& options = {});
  // A value in f32, and one back in the program's type, for functions of PyTorch that compute so inside.
  std::string widened(const std::string& x);
  std::string narrowed(const std::string& x);
  // PyTorch's line for a value that ours() has named.
  void torch(const std::string& name, const std::string& expression);
  void torch_line(const std::string& line);
  // A definition above program(); once, however often it is asked for.
  void torch_helper(const std::string& text);

  void results(const std::vector<std::string>& names);
  // The loss `name` and its gradients by these inputs.
  void gradients(const std::string& name, const std::vector<std::string>& by);
  bool wants_gradients() const { return !drawn_.program.wrt.empty(); }

  // FLOPs of products that a mask makes nobody compute, forward.
  void unseen_flops(double flops) { drawn_.unseen_flops += flops; }
  bool is_input(const std::string& name) const;
  void reads_of(const std::string& input, double elements);

  Drawn finish();

 private:
  std::size_t place_of(const std::string& input) const;
  Drawn drawn_;
  double bytes_;
  int values_ = 0;
  std::vector<std::string> helpers_, lines_;
};

// PyTorch's expression of a statement, for ops that have one.
std::string torch_expression(const programs::Statement& statement);

std::string list(const std::vector<Index>& numbers);  // "1,2"
inline std::string list(const Shape& shape) { return list(shape.extents()); }

}  // namespace tilewright::sweep
