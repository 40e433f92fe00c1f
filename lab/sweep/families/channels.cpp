// Norms of images (N, C, H, W): batch, group and instance norm.
#include <fmt/format.h>

#include <algorithm>

#include "sweep/families.h"

namespace tilewright::sweep {

namespace {

struct Images {
  Index n, c, h, w;
};

Images images(Draft& d, double elements, Index multiple) {
  const double side = std::clamp(d.sizes.log_uniform(4, 129), 1.0, std::max(1.0, elements / 64));
  const Index h = d.sizes.extent(std::min(side, 128.0)), w = d.sizes.chance(0.7) ? h : d.sizes.extent(side);
  const double left = std::max(1.0, elements / static_cast<double>(h * w));
  const double channels = std::min(d.sizes.log_uniform(3, 1025), std::max(1.0, left));
  const Index c = round_up(std::max(Index{1}, static_cast<Index>(channels)), multiple);
  return {std::max(Index{1}, static_cast<Index>(left / static_cast<double>(c))), c, h, w};
}

// (x - mean) rsqrt(var + 1e-5) over some axes, reshaped to `shape`, times gamma plus beta along axis 1.
std::string normed(Draft& d, const std::string& x, const std::string& axes, const Images& im) {
  const std::string wide = d.widened(x);
  const std::string mean = d.ours("mean", {wide}, {{"axes", axes}, {"keep", "1"}});
  const std::string var = d.ours("var", {wide}, {{"axes", axes}, {"keep", "1"}, {"ddof", "0"}});
  const std::string scale = d.ours("rsqrt", {d.ours("add", {var, "1e-5"})});
  std::string y = d.ours("mul", {d.ours("sub", {wide, mean}), scale});
  y = d.ours("reshape", {y}, {{"shape", list(std::vector<Index>{im.n, im.c, im.h, im.w})}});
  const Options per_channel = {{"shape", list(std::vector<Index>{im.c, 1, 1})}};
  y = d.ours("mul", {y, d.ours("reshape", {"gamma"}, per_channel)});
  return d.narrowed(d.ours("add", {y, d.ours("reshape", {"beta"}, per_channel)}));
}

}  // namespace

void channel_norm(Draft& d) {
  const int kind = d.choose.weighted<int>({{0, 1}, {1, 1.2}, {2, 0.8}});  // batch, group, instance
  const Index groups = kind == 1 ? d.choose.one_of(std::vector<Index>{1, 2, 4, 8, 32}) : 1;
  const auto activation = d.choose.weighted<std::string>({{"", 1}, {"relu", 1}, {"silu", 1}});
  const Images im = images(d, d.elements(0.5), groups);
  const std::string x = d.input("x", Shape({im.n, im.c, im.h, im.w}), {.mean = 0.5});
  d.factor("gamma", im.c);
  d.addend("beta", im.c);
  std::string y;
  if (kind == 0) {
    y = normed(d, x, "0,2,3", im);
    d.torch(y, fmt::format("F.batch_norm({}, None, None, gamma, beta, training=True)", x));
  } else if (kind == 1) {
    const std::string parts = d.ours(
        "reshape", {x}, {{"shape", list(std::vector<Index>{im.n, groups, im.c / groups, im.h * im.w})}});
    y = normed(d, parts, "2,3", im);
    d.torch(y, fmt::format("F.group_norm({}, {}, gamma, beta)", x, groups));
  } else {
    y = normed(d, x, "2,3", im);
    d.torch(y, fmt::format("F.instance_norm({}, weight=gamma, bias=beta)", x));
  }
  if (!activation.empty()) y = d.add(activation, {y});
  d.results({y});
}

}  // namespace tilewright::sweep
