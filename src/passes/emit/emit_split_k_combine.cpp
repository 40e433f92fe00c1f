// Programs that share the loop of dependent reductions leave partial results, each relative to reductions of
// its own part: what was summed below one maximum is not what is summed below another. They are merged by the
// factors by which a loop carries them along.
#include "passes/emit/emitter.h"

#include <algorithm>

namespace tilewright::passes {

using tile::Value;

Value Emitter::load_partial(int s, Value split) {
  const std::vector<SharedPart> parts = shared_parts(nest_);
  const auto part =
      std::find_if(parts.begin(), parts.end(), [&](const SharedPart& p) { return p.expr == s; });
  const Frame::Access from = partial(*part, static_cast<int>(part - parts.begin()), split);
  const bool rows = from.row_dim >= 0, columns = from.column_dim >= 0;
  tile::LoadOptions options{.dims = from.dims()};
  if (rows) options.shape.push_back(shape_.rows);
  if (columns) options.shape.push_back(shape_.columns);
  if (from.bounded) options.fill = 0.0;
  Value v = k_.load(from.view, from.starts, options);
  if (v.rank() == 1) v = k_.expand(v, rows ? 1 : 0);
  return v.rank() == 0 ? k_.broadcast(v, {1, 1}) : v;
}

void Emitter::merge_pass(const ReductionPass& pass) {
  const auto compute_bounds = [&](const Change& c, const auto& self) -> void {
    if (c.expr >= 0 && c.kind != Change::Kind::old_to_new) f_.computed(c.expr);
    for (const ChangePtr& part : c.parts) self(*part, self);
  };
  for (const ChangePtr& c : pass.factors)
    if (c) compute_bounds(*c, compute_bounds);
  const auto body = [&](Value split, const std::vector<Value>& carried) {
    s_.enter_body();
    factors_.clear();
    std::vector<Value> out;
    Moved moved, part_moved;
    for (std::size_t i = 0; i < pass.exprs.size(); ++i) {
      const int s = pass.exprs[i];
      Value before = carried[i], part = load_partial(s, split);
      Value scaled = before, part_scaled = part;
      if (pass.factors[i] && pass.factors[i]->kind != Change::Kind::none) {
        scaled = before * k_.cast(factor(*pass.factors[i], moved), before.dtype());
        part_scaled = part * factor(*pass.factors[i], part_moved);
      }
      part_scaled = k_.cast(part_scaled, scaled.dtype());
      Value after =
          nest_.is_outer_dot(s) ? scaled + part_scaled : combine(expr(s).monoid, scaled, part_scaled);
      out.push_back(after);
      moved[s] = {k_.cast(before, part.dtype()), finite(expr(s), k_.cast(after, part.dtype()))};
      part_moved[s] = {part, moved[s].second};
    }
    s_.leave_body();
    return out;
  };
  const std::vector<Value> last = k_.loop(Index{0}, shape_.split_k, Index{1}, initial_values(pass), body);
  set_results(pass, last);
}

}  // namespace tilewright::passes
