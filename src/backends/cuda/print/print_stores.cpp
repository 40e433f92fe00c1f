// How an element loop's results leave it: whole vectors into memory or registers, or single elements.
#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/print/kernel_printer.h"

#include <algorithm>
#include <set>

namespace tilewright::cuda {

using tile::Op;
using tile::OpKind;

// Tensor cores leave a thread two neighbouring columns: too short a store of 16-bit elements, and of 8 bits
// one that fills a quarter of each 32 bytes that memory takes. Four threads share the row, and together they
// have whole vectors of 16 bytes, or of 8.
bool LoopAnalysis::is_wide_store(const PrintedLoop& loop, std::size_t i) const {
  const Instr& in = loop.plan->body[i];
  const TileFrame& f = loop.frame;
  if (!is_vector_store(loop, i) || loop.layout.part != Part::all || f.map != RowMap::mma ||
      f.threads_per_row != kQuad || f.col_steps() % kQuad != 0 || in.axes.size() != 2)
    return false;
  const Access access(kernel_, ranges_, *in.op);
  const int axis = static_cast<int>(in.axes.size()) - 1;
  const Index vector = Index{kQuad} * f.vector;
  const int dim = access.dim_of(axis);
  const bool whole =
      access.whole_vectors(axis, vector) || (!access.checked_below(dim) && !access.checked_above(dim));
  return size_bytes(access.view().dtype) <= 2 && access.contiguous(axis) && access.aligned(axis, vector) &&
         whole && !direct_copy(loop, i);
}

bool LoopAnalysis::is_vector_store(const PrintedLoop& loop, std::size_t i) const {
  const Instr& in = loop.plan->body[i];
  return in.kind == Instr::Kind::effect && in.op->kind == OpKind::store &&
         (loop.layout.part == Part::all || loop.layout.part == Part::cols);
}

// A store or keep of loaded elements as they are: the vector goes through unconverted.
bool LoopAnalysis::direct_copy(const PrintedLoop& loop, std::size_t i) const {
  const Instr& in = loop.plan->body[i];
  if (!(is_vector_store(loop, i) || in.kind == Instr::Kind::keep)) return false;
  if (in.operands[0].is_scalar()) return false;
  const Instr& from = loop.plan->body[static_cast<std::size_t>(in.operands[0].instr)];
  const bool array = from.kind == Instr::Kind::reload ||
                     (from.kind == Instr::Kind::compute && from.op->kind == OpKind::load);
  if (!array || spread_of(loop, from.axes) != loop.layout.part || loop.layout.part == Part::rows ||
      loop.layout.part == Part::one)
    return false;
  const ValueId target = in.kind == Instr::Kind::keep ? in.value : in.op->operands[0];
  const auto at_instr = static_cast<std::size_t>(in.operands[0].instr);
  if (loop.arrays[at_instr].type != loop.arrays[at_instr].dtype) return false;
  return kernel_.type(target).dtype == kernel_.type(from.value).dtype &&
         (in.kind != Instr::Kind::keep ||
          expressions_.type_of(loops_.storage(target)) == expressions_.type_of(from.value));
}

void ElementPrinter::print_wait_for_readers(const PrintedLoop& loop) {
  std::vector<const Op*> effects;
  for (const Instr& in : loop.plan->body)
    if (in.kind == Instr::Kind::effect) effects.push_back(in.op);
  print_wait_for_readers(effects, loop.layout, effect_guard(loop).empty());
}

void ElementPrinter::print_wait_for_readers(const std::vector<const Op*>& effects, ThreadLayout written,
                                            bool own) {
  std::set<int> over;
  for (const Op* op : effects)
    if (facts_.view_uses[static_cast<std::size_t>(op->param)].read) over.insert(op->param);
  if (over.empty()) return;
  const auto reads = [&](const Op& op) {
    return (op.kind == OpKind::load || op.kind == OpKind::gather) && over.count(op.param) > 0;
  };
  const auto walks_all = [](const ElementLoop& loop, const std::vector<int>& axes) {
    const Axes all = long_axes(loop.shape);
    return std::all_of(all.begin(), all.end(),
                       [&](int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); });
  };
  // Threads that read their own elements alone, in loops of one layout, wait for nobody.
  std::set<const Op*> in_loops;
  for (const auto& [other, layout] : layouts_.loops)
    for (const Instr& in : other->body) {
      if (in.kind != Instr::Kind::compute || !in.op || !reads(*in.op)) continue;
      in_loops.insert(in.op);
      own = own && in.op->kind == OpKind::load && layout == written && walks_all(*other, in.axes);
    }
  // Scalars are read by every thread.
  tile::for_each_op(kernel_.body,
                    [&](const Op& op) { own = own && (!reads(op) || in_loops.count(&op) > 0); });
  if (!own) k_.exchanges().print_wait_for_program();
}

// A load (or the keep of one) whose registers are the value's buffer.
bool LoopAnalysis::keeps_load(const PrintedLoop& loop, std::size_t i) const {
  const auto is_load = [&](const Instr& in) {
    return in.kind == Instr::Kind::compute && in.op && in.op->kind == OpKind::load;
  };
  const auto pairs = [&](const Instr& keep, std::size_t load) {
    return keep.kind == Instr::Kind::keep && !keep.operands[0].is_scalar() &&
           static_cast<std::size_t>(keep.operands[0].instr) == load && is_load(loop.plan->body[load]) &&
           keep.value == loop.plan->body[load].value &&
           layouts_.buffers.at(loops_.storage(keep.value)) == loop.layout &&
           spread_of(loop, loop.plan->body[load].axes) == loop.layout.part &&
           !facts_.view_uses[static_cast<std::size_t>(loop.plan->body[load].op->param)].written;
  };
  const Instr& in = loop.plan->body[i];
  if (in.kind == Instr::Kind::keep && !in.operands[0].is_scalar())
    return pairs(in, static_cast<std::size_t>(in.operands[0].instr));
  if (!is_load(in)) return false;
  return std::any_of(loop.plan->body.begin(), loop.plan->body.end(),
                     [&](const Instr& keep) { return pairs(keep, i); });
}

std::optional<std::size_t> LoopAnalysis::keep_of_row(const PrintedLoop& loop, std::size_t i) const {
  const ValueId value = loop.plan->body[i].value;
  if (loop.layout.part != Part::rows) return std::nullopt;
  for (std::size_t k = 0; k < loop.plan->body.size(); ++k) {
    const Instr& keep = loop.plan->body[k];
    if (keep.kind == Instr::Kind::keep && keep.value == value && loops_.storage(value) == value &&
        static_cast<std::size_t>(keep.operands[0].instr) == i && layouts_.buffers.at(value) == loop.layout)
      return k;
  }
  return std::nullopt;
}

// Whole vectors at once: narrow floats become f32, and stores collect theirs.
void ElementPrinter::print_vector_heads(PrintedLoop& loop) {
  const int n = loop.frame.vector;
  const std::string element = n > 1 ? ".v[v]" : ".v[0]";
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    const bool array =
        in.kind == Instr::Kind::reload || (in.kind == Instr::Kind::compute && in.op->kind == OpKind::load);
    if (array) {
      const Registers& r = loop.arrays[i];
      if (r.layout.part == Part::one || r.layout.part == Part::rows) continue;
      if (!is_narrow_float(r.dtype) && !r.staged) continue;
      const bool only_copied =
          std::none_of(loop.plan->body.begin(), loop.plan->body.end(), [&](const Instr& user) {
            const auto u = static_cast<std::size_t>(&user - loop.plan->body.data());
            if (analysis_.direct_copy(loop, u) || analysis_.keeps_load(loop, u) ||
                analysis_.packed_extreme(loop, user))
              return false;
            if (user.kind == Instr::Kind::compute && loop.uses[u] == 0) return false;
            return std::any_of(user.operands.begin(), user.operands.end(), [&](const printer::Ref& ref) {
              return !ref.is_scalar() && static_cast<std::size_t>(ref.instr) == i;
            });
          });
      if (only_copied) continue;
      need("memory");
      // A compiler would keep the f32 values of the last loop rather than convert again: twice the registers.
      if (crowded_ && in.kind == Instr::Kind::reload && !r.staged) out_.line("opaque({});", registers_.at(r));
      if (!is_narrow_float(r.dtype)) {
        const std::string name = out_.local(r.name + "_vector");
        out_.line("const Vec<{}, {}> {} = {};", r.type, n, name, registers_.at(r));
        loop.values[i] = {name + element, r.type};
        continue;
      }
      const std::string name = out_.local(r.name + "_f32");
      out_.line("const Vec<f32, {}> {} = to_f32({});", n, name, registers_.at(r));
      loop.values[i] = {name + element, DType::f32};
    } else if (const auto bytes = analysis_.widened_bytes(loop, in)) {
      if (loop.uses[i] > 0) print_widened(loop, i, *bytes);
    } else if (analysis_.draws(loop, i) == LoopAnalysis::Draws::four_columns) {
      print_words(loop, i);
    } else if (analysis_.is_vector_store(loop, i)) {
      if (analysis_.direct_copy(loop, i)) {
        loop.outputs[i] = registers_.at(loop.arrays[static_cast<std::size_t>(in.operands[0].instr)]);
        continue;
      }
      const DType dtype = kernel_.type(in.op->operands[0]).dtype;
      loop.outputs[i] = out_.local(names_.stem(in.op->param) + "_out");
      out_.line("Vec<{}, {}> {};", compute_dtype(dtype), n, loop.outputs[i]);
    } else if (analysis_.of_neighbours(loop, i)) {
      if (in.kind == Instr::Kind::effect || loop.uses[i] > 0) print_neighbour_heads(loop, i);
    } else if ((in.kind == Instr::Kind::keep || in.kind == Instr::Kind::scan) &&
               !analysis_.keeps_load(loop, i) && !analysis_.direct_copy(loop, i)) {
      const Registers r = registers_.buffer(in.value);
      if (!is_narrow_float(r.dtype)) continue;
      if (analysis_.keeps_widened(loop, i)) {
        loop.outputs[i] = loop.values[static_cast<std::size_t>(in.operands[0].instr)].text;
        continue;
      }
      loop.outputs[i] = out_.local(r.name + "_new");
      out_.line("Vec<f32, {}> {};", n, loop.outputs[i]);
    }
  }
}

void ElementPrinter::print_vector_tails(PrintedLoop& loop) {
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    if (analysis_.is_vector_store(loop, i)) {
      const DType dtype = kernel_.type(in.op->operands[0]).dtype;
      if (!analysis_.direct_copy(loop, i) && is_narrow_float(dtype))
        loop.outputs[i] = fmt::format("from_f32<{}>({})", dtype, loop.outputs[i]);
      if (loop.wide[i])
        out_.line("{}[part] = {};", wide_parts_[i], loop.outputs[i]);
      else
        print_store(loop, i);
    } else if (analysis_.adds_vector(loop, i)) {
      out_.line("if ({0}_to) atomic_add({0}_to, {0});", loop.outputs[i]);
    } else if (in.kind == Instr::Kind::keep) {
      if (analysis_.keeps_load(loop, i)) continue;
      const Registers r = registers_.buffer(in.value);
      if (analysis_.direct_copy(loop, i))
        out_.line("{} = {};", registers_.at(r),
                  registers_.at(loop.arrays[static_cast<std::size_t>(in.operands[0].instr)]));
      else if (analysis_.keeps_widened(loop, i))
        out_.line("{} = {};", registers_.at(r), loop.outputs[i]);
      else if (is_narrow_float(r.dtype))
        out_.line("{} = from_f32<{}>({});", registers_.at(r), r.dtype, loop.outputs[i]);
    }
  }
}

void ElementPrinter::print_keep(PrintedLoop& loop, std::size_t i) {
  const Instr& in = loop.plan->body[i];
  if (loop.kept[i]) return;
  if (analysis_.keeps_load(loop, i) || analysis_.direct_copy(loop, i) || analysis_.keeps_widened(loop, i))
    return;
  const Registers r = registers_.buffer(in.value);
  const TypedText value = operand(loop, in.operands[0]);
  if (!loop.outputs[i].empty())
    out_.line("{}{} = {};", loop.outputs[i], loop.frame.vector > 1 ? ".v[v]" : ".v[0]", value.text);
  else
    out_.line("{} = {};", registers_.element(r), expressions_.as_type(value, r.type));
}

// Scatter and atomic_add: element by element.
void ElementPrinter::print_scattered(PrintedLoop& loop, std::size_t i) {
  const Instr& in = loop.plan->body[i];
  const Op& op = *in.op;
  const tile::ViewParam& view = kernel_.views[static_cast<std::size_t>(op.param)];
  const TypedText value = operand(loop, in.operands[0]);
  std::vector<TypedText> indices;
  indices.reserve(view.rank());
  for (int d = 0; d < view.rank(); ++d)
    indices.push_back(operand(loop, in.operands[static_cast<std::size_t>(d) + 1]));
  std::string guard = effect_guard(loop);
  if (op.masked) guard += (guard.empty() ? "" : " && ") + wrapped(operand(loop, in.operands.back()));
  std::string stored = value.text;
  if (is_narrow_float(view.dtype)) {
    need("convert");
    stored = fmt::format("cast<{}>({})", view.dtype, value.text);
  } else {
    stored = expressions_.as_type(value, view.dtype);
  }
  const std::string name = names_.view(op.param), offset = expressions_.view_offset(op.param, indices).str();
  if (op.kind == OpKind::atomic_add) need("atomic");
  if (analysis_.adds_vector(loop, i)) {
    const std::string to = fmt::format("{} + {}", name, offset);
    out_.line("if (v == 0) {}_to = {};", loop.outputs[i],
              guard.empty() ? to : fmt::format("{} ? {} : nullptr", guard, to));
    out_.line("{}.v[v] = {};", loop.outputs[i], stored);
    return;
  }
  std::string text = fmt::format("{}[{}] = {};", name, offset, stored);
  if (op.kind == OpKind::atomic_add) text = fmt::format("atomic_add({} + {}, {});", name, offset, stored);
  out_.write(guard.empty() ? text : fmt::format("if ({}) {}", guard, text));
}

// A block's vector, or one element of a loop over rows; bounds and addresses were printed before the loop.
void ElementPrinter::print_store(PrintedLoop& loop, std::size_t i) {
  const Instr& in = loop.plan->body[i];
  const Access access(kernel_, ranges_, *in.op);
  const DType dtype = access.view().dtype;
  const Part part = loop.layout.part;
  const bool vectors = part == Part::all || part == Part::cols;
  const Bounds& b = loop.bounds[i];
  const Address& a = loop.addresses[i];
  const std::string p = a.place(loop.frame, part);
  std::string guard = join_conditions({effect_guard(loop), b.uniform});
  if (b.rows && (part == Part::all || part == Part::rows))
    guard = join_conditions({guard, between(row_text(loop), b.first_row, b.end_row)});
  if (!vectors) {
    const TypedText value = operand(loop, in.operands[0]);
    const std::string stored = is_narrow_float(dtype) ? fmt::format("cast<{}>({})", dtype, value.text)
                                                      : fmt::format("{}({})", dtype, value.text);
    const std::string text = fmt::format("store({}, Vec<{}, 1>{{{{{}}}}});", p, dtype, stored);
    out_.write(guard.empty() ? text : fmt::format("if ({}) {}", guard, text));
    return;
  }
  const std::string value = loop.outputs[i];
  const std::string col = col_text(loop);
  if (!a.element_step.empty() || (b.cols && !b.whole)) {
    const auto [first, end] = b.inside(wrapped(col_of(loop)), loop.frame.vector, guard);
    const std::string whole = whole_steps(loop);
    if (a.element_step.empty() && guard.empty() && !whole.empty() && !b.inner_end &&
        (loop.frame.shifted || b.first_col.empty())) {
      out_.open_if_needed("if ({})", whole);
      out_.line("store({}, {});", p, value);
      out_.close_else();
      out_.line("store_between({}, {}, {}, {});", first, end, p, value);
      out_.close();
    } else if (a.element_step.empty())
      out_.line("store_between({}, {}, {}, {});", first, end, p, value);
    else
      out_.line("store_strided({}, {}, {}, {}, {});", first, end, p, a.element_step, value);
    return;
  }
  // A tile's own ragged end was checked around the whole vector.
  const bool viewed = b.cols && (b.inner_end || !b.first_col.empty());
  const std::string all =
      join_conditions({guard, viewed ? between(col, b.first_col, b.end_col) : std::string()});
  if (all.empty())
    out_.line("store({}, {});", p, value);
  else
    out_.line("store_if({}, {}, {});", all, p, value);
}

}  // namespace tilewright::cuda
