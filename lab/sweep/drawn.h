// A drawn program: the same work as text of ours (lab/programs) and as PyTorch people write it, with what its
// inputs hold.
#pragma once

#include "programs/program.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::sweep {

// What an input holds.
struct Holds {
  enum class Kind { normal, positive, integers } kind = Kind::normal;
  double mean = 0, deviation = 1;  // of normal ones; `positive` are the squares of these, plus 1/100
  Index least = 0, past = 2;       // integers in [least, past)
};

struct Drawn {
  std::string family;
  std::uint64_t seed = 0;
  DType dtype = DType::f32;
  programs::Program program;
  std::vector<Holds> holds;  // of each input
  // Python that defines program(...) over the inputs, and gradients_of where gradients are wanted: the loss
  // and these are then the results, as they are of ours.
  std::string torch;
  std::string arguments;    // beside seed and family, of the command that draws it
  double unseen_flops = 0;  // of products that a mask makes nobody compute
  // Elements of an input that are read, where that is not all of it: rows of a table. By the input's place.
  std::vector<std::pair<std::size_t, double>> read_elements;

  std::string command() const;  // that draws it again
  std::string shapes() const;   // "x[32,128] w[128,64]"
  std::string text() const;     // both programs, with a heading
};

}  // namespace tilewright::sweep
