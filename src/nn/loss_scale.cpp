// Dynamic loss scaling.
#include <tilewright/nn/loss_scale.h>

#include <fmt/format.h>

#include <cmath>

namespace tilewright::nn {

LossScale make_loss_scale(Context& ctx, const LossScaleOptions& options, const Location& where) {
  if (!(options.first > 0) || std::isinf(options.first) || options.growth < 1 || options.backoff <= 0 ||
      options.backoff >= 1 || options.interval < 1)
    throw Error(fmt::format("make_loss_scale: a first scale of {}, growth {}, backoff {}, interval {}: the "
                            "first must be a number above 0, growth at least 1, backoff between 0 and 1, and "
                            "the interval at least 1",
                            options.first, options.growth, options.backoff, options.interval),
                where);
  return {.scale = ctx.scalar(options.first, DType::f32, where),
          .good_steps = ctx.zeros({}, DType::f32, where)};
}

Tensor all_finite(const std::vector<Tensor>& tensors, const Location& where) {
  if (tensors.empty()) throw Error("all_finite: there is no tensor", where);
  Tensor finite;
  for (const Tensor& t : tensors) {
    const Tensor own = all(isfinite(t, where), {}, Keep::no, where);
    finite = finite.defined() ? (finite && own) : own;
  }
  return finite;
}

LossScale next_loss_scale(const LossScale& scale, const Tensor& finite, const LossScaleOptions& options,
                          const Location& at) {
  const Tensor good = scale.good_steps + 1.0;
  const Tensor grows = good >= options.interval;
  const Tensor after_good = where(grows, scale.scale * options.growth, scale.scale, at);
  return {.scale = where(finite, after_good, scale.scale * options.backoff, at),
          .good_steps = where(finite && !grows, good, 0.0, at)};
}

}  // namespace tilewright::nn
