// Lesson 3: a tile kernel by hand.
//
// A kernel is written once, in C++, and runs on the interpreter, the CPU and the GPU. It is a program for one
// block of the output; the grid says how many programs there are. This one is a softmax: a program takes a
// whole row, keeps it on chip, and reads and writes memory once.
#include <fmt/core.h>

#include <tilewright/tilewright.hpp>

#include <cmath>
#include <cstdlib>

namespace tw = tilewright;
namespace tile = tilewright::tile;

tile::Kernel softmax_kernel(tw::Index rows, tw::Index columns) {
  tile::Builder k("softmax");
  auto x = k.view("x", tw::DType::f32, {rows, columns});
  auto y = k.view("y", tw::DType::f32, {rows, columns});
  tile::Value row = k.program_id(0);
  tile::Value t = k.load(x, {row, 0}, {.shape = {columns}});   // tile<f32,[columns]>
  tile::Value e = exp(t - k.reduce(tile::Monoid::max, t, 0));  // the row's maximum, a scalar, broadcasts
  k.store(y, {row, 0}, e / k.reduce(tile::Monoid::sum, e, 0));
  return k.finish({{{rows, 1}}});  // one program a row
}

int main() {
  const tw::Index rows = 37, columns = 1003;
  for (const char* device : {"reference", "cpu"}) {
    tw::Context ctx({.device = device});
    tw::TileFunction softmax(softmax_kernel(rows, columns));
    tw::Tensor x = ctx.randn({rows, columns});
    tw::Tensor y = softmax({x, tw::out({rows, columns})}).at(0);

    const std::vector<float> xs = x.to_vector<float>(), ys = y.to_vector<float>();
    double worst = 0;
    for (tw::Index r = 0; r < rows; ++r) {
      const float* in = xs.data() + r * columns;
      double sum = 0;
      for (tw::Index c = 0; c < columns; ++c) sum += std::exp(static_cast<double>(in[c]));
      for (tw::Index c = 0; c < columns; ++c) {
        const double want = std::exp(static_cast<double>(in[c])) / sum;
        worst = std::max(worst, std::abs(ys[static_cast<std::size_t>(r * columns + c)] - want) / want);
      }
    }
    fmt::print("{}: largest relative error {:.1e}\n", device, worst);
    if (!(worst < 1e-5)) return EXIT_FAILURE;  // a sum of 1003 terms and an exp of 2 ulp, in f32
    if (std::string(device) == "cpu") fmt::print("\nwhat was compiled:\n{}", softmax.source(x));
  }
  return EXIT_SUCCESS;
}
