// Accuracy: which exponentials may be computed in their short form.
#include "backends/printer/accuracy.h"

#include <tilewright/tile/builder.h>

#include <gtest/gtest.h>

namespace tilewright::printer {
namespace {

using tile::Monoid;
using tile::Value;

enum class Below : unsigned char { own_maximum, another_maximum };

// Σ e^(x · scale - max) of a row, stored in f32.
Accuracy needed_of_exp(Index columns, double scale, Below below) {
  tile::Builder k("sum_of_powers");
  const tile::View x = k.view("x", DType::bf16, {columns}), other = k.view("other", DType::bf16, {columns});
  const tile::View y = k.view("y", DType::f32, {1});
  const auto row = [&](const tile::View& v) {
    return k.cast(k.load(v, {0}, {.shape = {columns}}), DType::f32);
  };
  Value t = row(x);
  if (scale != 1) t = t * scale;
  const Value most = k.reduce(Monoid::max, below == Below::own_maximum ? t : row(other), 0);
  const Value e = exp(t - most);
  k.store(y, {0}, k.reduce(Monoid::sum, e, 0));
  const tile::Kernel kernel = k.finish({{{1, 1}}});
  const std::vector<Accuracy> needed = needed_accuracy(kernel);
  Accuracy out = Accuracy::coarse;
  tile::for_each_op(kernel.body, [&](const tile::Op& op) {
    if (op.kind == tile::OpKind::apply && op.prim == tile::Prim::exp)
      out = needed[static_cast<std::size_t>(op.results[0])];
  });
  return out;
}

TEST(Accuracy, ManyTermsBelowTheirMaximumMayBeShort) {
  EXPECT_EQ(needed_of_exp(4096, 1, Below::own_maximum), Accuracy::narrow);
  EXPECT_EQ(needed_of_exp(512, 1, Below::own_maximum), Accuracy::exact) << "the sum itself errs by less";
  EXPECT_EQ(needed_of_exp(4096, 1, Below::another_maximum), Accuracy::exact) << "all terms may be small";
  EXPECT_EQ(needed_of_exp(4096, 1.5, Below::own_maximum), Accuracy::exact)
      << "what is computed would be computed approximately too";
}

}  // namespace
}  // namespace tilewright::printer
