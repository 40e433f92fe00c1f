// One element loop: its loads, then the loops over the rows, vectors and elements that a thread holds.
#include "backends/cuda/kernel_printer.h"

#include <algorithm>
#include <numeric>

namespace tilewright::cuda {

using tile::Op;
using tile::OpKind;

namespace {
constexpr int kQuad = 4;  // threads that share a row of an accumulator
}

int KernelPrinter::role(const Loop& loop, int loop_axis) const {
  const std::vector<int> axes = long_axes(loop.plan->shape);
  const auto at = std::find(axes.begin(), axes.end(), loop_axis);
  if (at == axes.end() || loop.place.part == Part::one) return -1;
  if (loop.place.part == Part::rows) return 0;
  if (loop.place.part == Part::cols) return 1;
  return at == axes.begin() ? 0 : 1;
}

Part KernelPrinter::spread_of(const Loop& loop, const std::vector<int>& axes) const {
  bool rows = false, cols = false;
  for (int a : axes) {
    const int side = a < 0 ? -1 : role(loop, a);
    rows = rows || side == 0;
    cols = cols || side == 1;
  }
  return rows ? (cols ? Part::all : Part::rows) : (cols ? Part::cols : Part::one);
}

std::string KernelPrinter::row_text(const Loop& loop) const {
  const Frame& f = loop.frame;
  if (f.rows == 1) return "0";
  if (f.map == RowMap::mma)
    return f.row_steps() == 2
               ? fmt::format("r * 8 + {}", loop.thread.g)
               : fmt::format("r / 2 * {} + r % 2 * 8 + {}", 2 * Index{f.groups}, loop.thread.g);
  if (f.groups == 1) return f.row_steps() == 1 ? "0" : "r";
  return f.row_steps() == 1 ? loop.thread.g : fmt::format("r * {} + {}", f.groups, loop.thread.g);
}

// The first column of a vector.
std::string KernelPrinter::col_text(const Loop& loop) const {
  const Frame& f = loop.frame;
  const std::string t =
      f.col_steps() == 1 ? loop.thread.t : fmt::format("(c * {} + {})", f.row_threads(), loop.thread.t);
  if (f.vector > 1) return fmt::format("{} * {}", t, f.vector);
  return f.col_steps() == 1 ? t : fmt::format("c * {} + {}", f.row_threads(), loop.thread.t);
}

std::string KernelPrinter::effect_guard(const Loop& loop) const {
  const bool packed = layouts_.programs_per_block > 1;
  const std::string rank = row_cluster(schedule_) > 1 ? "cluster_rank() == 0 && " : "";
  switch (loop.place.part) {
    case Part::all:
      return "";
    case Part::cols:
      return loop.frame.groups > 1 ? fmt::format("{} == 0", loop.thread.g) : "";
    case Part::rows:
      return loop.frame.row_threads() > 1 ? fmt::format("{} == 0", loop.thread.t) : "";
    case Part::one:
      break;
  }
  if (packed) return fmt::format("threadIdx.x % {} == 0", schedule_.threads / layouts_.programs_per_block);
  return rank + "threadIdx.x == 0";
}

// --- registers

std::string KernelPrinter::declaration(const Registers& r) const {
  if (r.place.part == Part::one) return fmt::format("{} {};", r.type, r.name);
  const Frame& f = layouts_.frame(r.place);
  const std::string rows = f.row_steps() > 1 ? fmt::format("[{}]", f.row_steps()) : "";
  const std::string cols = f.col_steps() > 1 ? fmt::format("[{}]", f.col_steps()) : "";
  if (r.place.part == Part::rows) return fmt::format("{} {}{};", r.type, r.name, rows);
  return fmt::format("Vec<{}, {}> {}{}{};", r.type, f.vector, r.name, r.place.part == Part::all ? rows : "",
                     cols);
}

std::string KernelPrinter::at(const Registers& r) const {
  if (r.staged) return staged_vector(r);
  if (r.place.part == Part::one) return r.name;
  const Frame& f = layouts_.frame(r.place);
  const std::string rows = f.row_steps() > 1 && r.place.part != Part::cols ? "[r]" : "";
  const std::string cols = f.col_steps() > 1 && r.place.part != Part::rows ? "[c]" : "";
  return r.name + rows + cols;
}

std::string KernelPrinter::element(const Registers& r) const {
  if (r.place.part == Part::one || r.place.part == Part::rows) return at(r);
  return at(r) + (layouts_.frame(r.place).vector > 1 ? ".v[v]" : ".v[0]");
}

std::string KernelPrinter::pointer_to(const Registers& r) const {
  if (r.place.part == Part::one) return "&" + r.name;
  const Frame& f = layouts_.frame(r.place);
  const bool rows = f.row_steps() > 1 && r.place.part != Part::cols;
  const bool cols = f.col_steps() > 1 && r.place.part != Part::rows;
  return rows && cols ? r.name + "[0]" : rows || cols ? r.name : "&" + r.name;
}

KernelPrinter::Registers KernelPrinter::buffer(ValueId v) {
  const ValueId s = plan_.storage(v);
  auto it = buffers_.find(s);
  if (it != buffers_.end()) return it->second;
  const auto place = layouts_.buffers.find(s);
  TW_CHECK(place != layouts_.buffers.end(), "a buffer without a place");
  const DType dtype = kernel_.type(s).dtype;
  const bool vectors = place->second.part == Part::all || place->second.part == Part::cols;
  const std::string type = vectors && is_narrow_float(dtype) ? element_type(dtype) : type_of(s);
  return buffers_[s] = {value_name(s), place->second, dtype, type};
}

// Loops over the vectors (or rows) of an array.
void KernelPrinter::for_registers(const Registers& r, const std::function<void()>& body) {
  if (r.place.part == Part::one) return body();
  const Frame& f = layouts_.frame(r.place);
  const bool rows = f.row_steps() > 1 && r.place.part != Part::cols;
  const bool cols = f.col_steps() > 1 && r.place.part != Part::rows;
  if (rows) out_.unrolled("r", f.row_steps());
  if (cols) out_.unrolled("c", f.col_steps());
  body();
  if (cols) out_.close();
  if (rows) out_.close();
}

// --- the loop

void KernelPrinter::print_elements(const ElementLoop& plan) {
  Loop loop;
  loop.plan = &plan;
  loop.place = layouts_.loops.at(&plan);
  if (loop.place.part != Part::one) {
    loop.frame = layouts_.frame(loop.place);
    loop.thread = thread(loop.frame);
  }
  accuracy_ = printer::accuracy_in_loop(kernel_, plan, kernel_accuracy_);
  const std::size_t n = plan.body.size();
  loop.values.resize(n);
  loop.arrays.resize(n);
  loop.states.resize(n);
  loop.bounds.resize(n);
  loop.addresses.resize(n);
  loop.outputs.resize(n);
  loop.wide.resize(n);
  count_uses(loop);
  print_loads(loop);
  for (std::size_t i = 0; i < n; ++i)
    if (is_vector_store(loop, i) ||
        (plan.body[i].kind == Instr::Kind::effect && plan.body[i].op->kind == OpKind::store)) {
      const Access access(kernel_, ranges_, *plan.body[i].op);
      need("memory");
      loop.wide[i] = is_wide_store(loop, i);
      const Loop as_stored = loop.wide[i] ? widened(loop) : loop;
      loop.bounds[i] = print_bounds(as_stored, plan.body[i], access);
      loop.addresses[i] = print_address(as_stored, plan.body[i], access);
    }
  for (std::size_t i = 0; i < n; ++i)
    if (plan.body[i].kind == Instr::Kind::keep || plan.body[i].kind == Instr::Kind::scan) {
      const Registers r = buffer(plan.body[i].value);
      if (declared_.insert(plan_.storage(plan.body[i].value)).second) out_.write(declaration(r));
    }
  print_reduction_starts(loop);
  print_at(loop, Level::once);
  const bool rows = loop.place.part == Part::all || loop.place.part == Part::rows;
  if (rows && loop.frame.row_steps() > 1) out_.unrolled("r", loop.frame.row_steps());
  print_row_body(loop);
  if (rows && loop.frame.row_steps() > 1) out_.close();
  print_scans(loop);
  print_exchange(loop);
  accuracy_ = kernel_accuracy_;
}

void KernelPrinter::count_uses(Loop& loop) const {
  loop.uses.assign(loop.plan->body.size(), 0);
  for (const Instr& in : loop.plan->body)
    for (const printer::Ref& ref : in.operands)
      if (!ref.is_scalar()) ++loop.uses[static_cast<std::size_t>(ref.instr)];
  for (const Instr& in : loop.plan->body)
    if (const auto tanh = tanh_beside_one(loop, in)) --loop.uses[*tanh];
}

// Where an instruction is computed: what does not change along a row once a row, what changes along no axis
// once.
KernelPrinter::Level KernelPrinter::level(const Loop& loop, const Instr& in) const {
  if (in.kind != Instr::Kind::compute && in.kind != Instr::Kind::reload) return Level::element;
  switch (spread_of(loop, in.axes)) {
    case Part::one:
      return loop.place.part == Part::one ? Level::element : Level::once;
    case Part::rows:
      return loop.place.part == Part::all ? Level::row : Level::element;
    default:
      return Level::element;
  }
}

void KernelPrinter::print_row_body(Loop& loop) {
  const bool rows = loop.place.part == Part::all || loop.place.part == Part::rows;
  if (rows) print_reduction_starts_of_row(loop);
  const bool guard = rows && loop.frame.ragged_rows();
  if (guard) {
    const std::string steps =
        loop.frame.row_steps() > 1 ? fmt::format("r < {} || ", loop.frame.row_steps() - 1) : "";
    out_.open("if ({}{} < {})", steps, row_text(loop), loop.frame.rows);
  }
  print_at(loop, Level::row);
  if (loop.place.part == Part::all || loop.place.part == Part::cols)
    print_columns(loop);
  else
    print_at(loop, Level::element);
  if (guard) out_.close();
}

void KernelPrinter::print_columns(Loop& loop) {
  const Frame& f = loop.frame;
  if (std::find(loop.wide.begin(), loop.wide.end(), true) != loop.wide.end()) return print_wide_columns(loop);
  if (f.col_steps() > 1) out_.unrolled("c", f.col_steps());
  const bool guard = f.ragged_cols() && f.whole_vectors();
  if (guard) {
    const std::string steps = f.col_steps() > 1 ? fmt::format("c < {} || ", f.col_steps() - 1) : "";
    out_.open("if ({}{} < {})", steps, col_text(loop), f.cols);
  }
  print_column_body(loop);
  if (guard) out_.close();
  if (f.col_steps() > 1) out_.close();
}

// The same columns seen as vectors of 16 bytes: what a store writes after the quad's exchange.
KernelPrinter::Loop KernelPrinter::widened(const Loop& loop) {
  Loop out = loop;
  out.frame.vector *= kQuad;
  return out;
}

// Four vectors at a time; then the four threads of a row exchange theirs, and each stores one of 16 bytes.
void KernelPrinter::print_wide_columns(Loop& loop) {
  need("quad");
  const bool several = loop.frame.col_steps() > kQuad;
  if (several) out_.unrolled("wide", loop.frame.col_steps() / kQuad);
  std::vector<std::string> parts(loop.plan->body.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!loop.wide[i]) continue;
    const Op& op = *loop.plan->body[i].op;
    parts[i] = unique(identifier(kernel_.views[static_cast<std::size_t>(op.param)].name) + "_parts");
    out_.line("Vec<{}, {}> {}[{}];", element_type(kernel_.type(op.operands[0]).dtype), loop.frame.vector,
              parts[i], kQuad);
  }
  wide_parts_ = parts;
  out_.unrolled("part", kQuad);
  out_.line("const int c = {}part;", several ? fmt::format("wide * {} + ", kQuad) : "");
  print_column_body(loop);
  out_.close();
  if (several) out_.write("const int c = wide;");
  Loop wide = widened(loop);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!loop.wide[i]) continue;
    wide.outputs[i] = fmt::format("across_quad({})", parts[i]);
    print_store(wide, i);
  }
  if (several) out_.close();
}

void KernelPrinter::print_column_body(Loop& loop) {
  const Frame& f = loop.frame;
  print_vector_heads(loop);
  const bool elements = std::any_of(loop.plan->body.begin(), loop.plan->body.end(), [&](const Instr& in) {
    const auto i = static_cast<std::size_t>(&in - loop.plan->body.data());
    return in.kind != Instr::Kind::compute && in.kind != Instr::Kind::reload && !direct_copy(loop, i) &&
           !keeps_load(loop, i);
  });
  if (elements) {
    if (f.vector > 1) out_.unrolled("v", f.vector);
    const bool guard = f.ragged_cols() && !f.whole_vectors();
    if (guard) out_.open("if ({}{} < {})", col_text(loop), f.vector > 1 ? " + v" : "", f.cols);
    print_at(loop, Level::element);
    if (guard) out_.close();
    if (f.vector > 1) out_.close();
  }
  print_vector_tails(loop);
}

void KernelPrinter::print_at(Loop& loop, Level at_level) {
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    if (level(loop, in) != at_level) continue;
    switch (in.kind) {
      case Instr::Kind::compute:
      case Instr::Kind::reload:
        print_compute(loop, i);
        break;
      case Instr::Kind::effect:
        if (in.op->kind != OpKind::store)
          print_scattered(loop, i);
        else if (!is_vector_store(loop, i))
          print_store(loop, i);
        else if (!direct_copy(loop, i))
          out_.line("{}{} = {};", loop.outputs[i], loop.frame.vector > 1 ? ".v[v]" : ".v[0]",
                    operand(loop, in.operands[0]).text);
        break;
      case Instr::Kind::keep:
      case Instr::Kind::scan:
        print_keep(loop, i);
        break;
      case Instr::Kind::reduce:
        print_reduce(loop, i);
        break;
    }
  }
}

Expr KernelPrinter::operand(Loop& loop, const printer::Ref& ref) {
  if (ref.is_scalar()) return scalar(ref.scalar);
  return loop.values[static_cast<std::size_t>(ref.instr)];
}

void KernelPrinter::print_compute(Loop& loop, std::size_t i) {
  const Instr& in = loop.plan->body[i];
  if (loop.uses[i] == 0) return;  // part of another expression
  Expr& value = loop.values[i];
  const std::string type = type_of(in.value);
  if (in.kind == Instr::Kind::reload || in.op->kind == OpKind::load) {
    if (loop.arrays[i].place.part == Part::one || loop.arrays[i].place.part == Part::rows)
      value = {at(loop.arrays[i]), loop.arrays[i].type};
    if (value.type.empty())
      value = {element(loop.arrays[i]), loop.arrays[i].type};  // narrow vectors: see print_vector_heads
    return;
  }
  if (in.op->kind == OpKind::constant) {
    value = {literal(kernel_.type(in.value).dtype, in.op->number), type};
    return;
  }
  if (in.op->kind == OpKind::arange) {
    const int side = in.axes.empty() || in.axes[0] < 0 ? -1 : role(loop, in.axes[0]);
    std::string text = side < 0 ? "0" : side == 0 ? row_text(loop) : col_text(loop);
    if (side == 1 && loop.frame.vector > 1) text += " + v";
    value = {text, "i32"};
    return;
  }
  std::vector<Expr> operands;
  operands.reserve(in.operands.size());
  for (const printer::Ref& ref : in.operands) operands.push_back(operand(loop, ref));
  if (draws_fours(loop, i)) {
    need("philox");
    out_.line("if (v % 4 == 0) {} = philox(u64({}), u64({}) >> 2);", loop.outputs[i], operands[0].text,
              operands[1].text);
    value = {fmt::format("i64({}.v[v % 4])", loop.outputs[i]), "i64"};
    return;
  }
  if (const auto tanh = tanh_beside_one(loop, in)) {
    need("math_fast");
    const Instr& inner = loop.plan->body[*tanh];
    value = {fmt::format("fast::one_plus_tanh({})", operand(loop, inner.operands[0]).text), "f32"};
  } else if (const auto test = column_test(loop, in)) {
    value = *test;
  } else {
    value = compute(*in.op, operands);
  }
  const bool named = !kernel_.values[static_cast<std::size_t>(in.value)].name.empty();
  const bool whole = in.op->kind == OpKind::gather || in.op->kind == OpKind::random;
  const bool one_use = loop.uses[i] <= 1 && level(loop, in) == Level::element;
  if (one_use && !named && !whole && value.text.size() < 40) return;
  if (value.text.find_first_of(" (") == std::string::npos) return;  // a name already
  const std::string name = unique(value_name(in.value));
  out_.line("const {} {} = {};", value.type, name, value.text);
  value.text = name;
}

// What a column's number has besides the element's place in the row, as text: of arange 0, of n + arange n.
std::optional<std::string> KernelPrinter::column_offset(Loop& loop, const printer::Ref& ref) {
  if (ref.is_scalar()) return std::nullopt;
  const Instr& in = loop.plan->body[static_cast<std::size_t>(ref.instr)];
  if (in.kind != Instr::Kind::compute) return std::nullopt;
  if (in.op->kind == OpKind::arange) {
    const bool walks_columns = !in.axes.empty() && in.axes[0] >= 0 && role(loop, in.axes[0]) == 1;
    return walks_columns ? std::optional<std::string>("0") : std::nullopt;
  }
  if (in.op->kind != OpKind::apply || in.op->prim != tile::Prim::add) return std::nullopt;
  for (std::size_t side : {0u, 1u}) {
    const printer::Ref& other = in.operands[1 - side];
    const auto offset = column_offset(loop, in.operands[side]);
    if (!offset || !other.is_scalar()) continue;
    const std::string text = scalar(other.scalar).text;
    return *offset == "0" ? text : fmt::format("{} + {}", *offset, text);
  }
  return std::nullopt;
}

// Whether a column is a number: c · T + v = number - t · V. The right side is one for a thread, and the left
// one is known where the loops are unrolled, which leaves one comparison an element. All of it modulo 2^32,
// where both sides fit.
std::optional<Expr> KernelPrinter::column_test(Loop& loop, const Instr& in) {
  const Op& op = *in.op;
  const bool tests = op.kind == OpKind::apply && (op.prim == tile::Prim::eq || op.prim == tile::Prim::ne);
  if (!tests || level(loop, in) != Level::element || kernel_.type(op.operands[0]).dtype != DType::i64)
    return std::nullopt;
  for (std::size_t side : {0u, 1u}) {
    const printer::Ref& number = in.operands[1 - side];
    const printer::ValueRange& columns = range(op.operands[side]);
    if (!number.is_scalar() || columns.low <= -2147483647 || columns.high >= 2147483647) continue;
    const auto offset = column_offset(loop, in.operands[side]);
    if (!offset) continue;
    const Frame& f = loop.frame;
    std::string place = f.col_steps() > 1 ? fmt::format("c * {}", f.row_threads() * f.vector) : "";
    if (f.vector > 1) place += place.empty() ? "v" : " + v";
    Expr n = scalar(number.scalar);
    if (n.type == "i64") {
      need("edge");
      n.text = fmt::format("saturate_i32({})", n.text);
    }
    return Expr{
        fmt::format("u32({}) {} u32({}) - u32({}) - u32({} * {})", place.empty() ? "0" : place,
                    op.prim == tile::Prim::eq ? "==" : "!=", n.text, *offset, loop.thread.t, f.vector),
        "bool"};
  }
  return std::nullopt;
}

// What an integer of the loop is in terms of its row and column.
std::optional<KernelPrinter::IndexForm> KernelPrinter::index_form(const Loop& loop,
                                                                  const printer::Ref& ref) const {
  if (ref.is_scalar()) return IndexForm{0, 0, range(ref.scalar).divisor};
  const Instr& in = loop.plan->body[static_cast<std::size_t>(ref.instr)];
  if (in.kind != Instr::Kind::compute || kernel_.type(in.value).dtype != DType::i64) return std::nullopt;
  const Op& op = *in.op;
  if (op.kind == OpKind::constant) return IndexForm{0, 0, printer::range_of_number(op.number.i).divisor};
  if (op.kind == OpKind::arange) {
    const int side = in.axes.empty() || in.axes[0] < 0 ? -1 : role(loop, in.axes[0]);
    return IndexForm{side == 0 ? 1 : 0, side == 1 ? 1 : 0, 0};
  }
  if (op.kind != OpKind::apply || in.operands.size() != 2) return std::nullopt;
  const auto a = index_form(loop, in.operands[0]), b = index_form(loop, in.operands[1]);
  if (!a || !b) return std::nullopt;
  if (op.prim == tile::Prim::add)
    return IndexForm{a->row + b->row, a->col + b->col, std::gcd(a->divisor, b->divisor)};
  if (op.prim == tile::Prim::mul) {
    // One factor is a number: a constant tile or scalar is the only form without row and column that is
    // looked at.
    for (int side : {0, 1}) {
      const printer::Ref& factor = in.operands[static_cast<std::size_t>(side)];
      const IndexForm& other = side == 0 ? *b : *a;
      const Op* number =
          factor.is_scalar() ? nullptr : loop.plan->body[static_cast<std::size_t>(factor.instr)].op;
      Index k = 0;
      if (number != nullptr && number->kind == OpKind::constant) {
        k = number->number.i;
      } else if (factor.is_scalar() && range(factor.scalar).low == range(factor.scalar).high) {
        k = range(factor.scalar).low;
      } else {
        continue;
      }
      if (std::abs(k) > (Index{1} << 31)) return std::nullopt;
      return IndexForm{other.row * k, other.col * k, std::gcd(other.divisor, Index{1} << 20) * std::abs(k)};
    }
  }
  return std::nullopt;
}

// Neighbouring columns that draw neighbouring random words: one run of the cipher gives four of them.
bool KernelPrinter::draws_fours(const Loop& loop, std::size_t i) const {
  const Instr& in = loop.plan->body[i];
  if (in.kind != Instr::Kind::compute || in.op->kind != OpKind::random || loop.frame.vector % 4 != 0)
    return false;
  if (loop.place.part != Part::all && loop.place.part != Part::cols) return false;
  if (level(loop, in) != Level::element) return false;
  const auto form = index_form(loop, in.operands[1]);
  return form && form->col == 1 && form->row % 4 == 0 && form->divisor % 4 == 0;
}

// The tanh in an addition of 1 + tanh x. That cancels where x is far below 0; as 2 / (1 + e^-2x) it does not,
// and costs less than the tanh alone: for values that end in narrow floats.
std::optional<std::size_t> KernelPrinter::tanh_beside_one(const Loop& loop, const Instr& in) const {
  if (in.kind != Instr::Kind::compute || in.op->kind != OpKind::apply || in.op->prim != tile::Prim::add)
    return std::nullopt;
  if (kernel_.type(in.value).dtype != DType::f32 ||
      accuracy_[static_cast<std::size_t>(in.value)] == printer::Accuracy::exact)
    return std::nullopt;
  for (std::size_t side : {0u, 1u}) {
    if (in.operands[0].is_scalar() || in.operands[1].is_scalar()) continue;
    const Instr& one = loop.plan->body[static_cast<std::size_t>(in.operands[side].instr)];
    const auto other = static_cast<std::size_t>(in.operands[1 - side].instr);
    const Instr& tanh = loop.plan->body[other];
    if (one.kind != Instr::Kind::compute || one.op->kind != OpKind::constant || one.op->number.f != 1.0)
      continue;
    if (tanh.kind == Instr::Kind::compute && tanh.op->kind == OpKind::apply &&
        tanh.op->prim == tile::Prim::tanh)
      return other;
  }
  return std::nullopt;
}

// Tensor cores leave a thread two neighbouring columns: too short a store of 16-bit elements. Four threads
// share the row, and together they have whole vectors of 16 bytes.
bool KernelPrinter::is_wide_store(const Loop& loop, std::size_t i) const {
  const Instr& in = loop.plan->body[i];
  const Frame& f = loop.frame;
  if (!is_vector_store(loop, i) || loop.place.part != Part::all || f.map != RowMap::mma ||
      f.threads_per_row != kQuad || f.col_steps() % kQuad != 0 || in.axes.size() != 2)
    return false;
  const Access access(kernel_, ranges_, *in.op);
  const int axis = static_cast<int>(in.axes.size()) - 1;
  const Index vector = Index{kQuad} * f.vector;
  const int dim = access.dim_of(axis);
  const bool whole =
      access.whole_vectors(axis, vector) || (!access.checked_below(dim) && !access.checked_above(dim));
  return size_bytes(access.view().dtype) == 2 && is_float(access.view().dtype) && access.contiguous(axis) &&
         access.aligned(axis, vector) && whole && !direct_copy(loop, i);
}

bool KernelPrinter::is_vector_store(const Loop& loop, std::size_t i) const {
  const Instr& in = loop.plan->body[i];
  return in.kind == Instr::Kind::effect && in.op->kind == OpKind::store &&
         (loop.place.part == Part::all || loop.place.part == Part::cols);
}

// A store or keep of loaded elements as they are: the vector goes through unconverted.
bool KernelPrinter::direct_copy(const Loop& loop, std::size_t i) const {
  const Instr& in = loop.plan->body[i];
  if (!(is_vector_store(loop, i) || in.kind == Instr::Kind::keep)) return false;
  if (in.operands[0].is_scalar()) return false;
  const Instr& from = loop.plan->body[static_cast<std::size_t>(in.operands[0].instr)];
  const bool array = from.kind == Instr::Kind::reload ||
                     (from.kind == Instr::Kind::compute && from.op->kind == OpKind::load);
  if (!array || spread_of(loop, from.axes) != loop.place.part || loop.place.part == Part::rows ||
      loop.place.part == Part::one)
    return false;
  const ValueId target = in.kind == Instr::Kind::keep ? in.value : in.op->operands[0];
  const auto at_instr = static_cast<std::size_t>(in.operands[0].instr);
  if (loop.arrays[at_instr].type != element_type(loop.arrays[at_instr].dtype)) return false;
  return kernel_.type(target).dtype == kernel_.type(from.value).dtype &&
         (in.kind != Instr::Kind::keep || type_of(plan_.storage(target)) == type_of(from.value));
}

// A load (or the keep of one) whose registers are the value's buffer.
bool KernelPrinter::keeps_load(const Loop& loop, std::size_t i) const {
  const auto is_load = [&](const Instr& in) {
    return in.kind == Instr::Kind::compute && in.op && in.op->kind == OpKind::load;
  };
  const auto pairs = [&](const Instr& keep, std::size_t load) {
    return keep.kind == Instr::Kind::keep && !keep.operands[0].is_scalar() &&
           static_cast<std::size_t>(keep.operands[0].instr) == load && is_load(loop.plan->body[load]) &&
           keep.value == loop.plan->body[load].value &&
           layouts_.buffers.at(plan_.storage(keep.value)) == loop.place &&
           spread_of(loop, loop.plan->body[load].axes) == loop.place.part &&
           !view_uses_[static_cast<std::size_t>(loop.plan->body[load].op->param)].written;
  };
  const Instr& in = loop.plan->body[i];
  if (in.kind == Instr::Kind::keep && !in.operands[0].is_scalar())
    return pairs(in, static_cast<std::size_t>(in.operands[0].instr));
  if (!is_load(in)) return false;
  return std::any_of(loop.plan->body.begin(), loop.plan->body.end(),
                     [&](const Instr& keep) { return pairs(keep, i); });
}

// Whole vectors at once: narrow floats become f32, and stores collect theirs.
void KernelPrinter::print_vector_heads(Loop& loop) {
  const int n = loop.frame.vector;
  const std::string element = n > 1 ? ".v[v]" : ".v[0]";
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    const bool array =
        in.kind == Instr::Kind::reload || (in.kind == Instr::Kind::compute && in.op->kind == OpKind::load);
    if (array) {
      const Registers& r = loop.arrays[i];
      if (r.place.part == Part::one || r.place.part == Part::rows) continue;
      if (!is_narrow_float(r.dtype) && !r.staged) continue;
      const bool only_copied =
          std::none_of(loop.plan->body.begin(), loop.plan->body.end(), [&](const Instr& user) {
            const auto u = static_cast<std::size_t>(&user - loop.plan->body.data());
            if (direct_copy(loop, u) || keeps_load(loop, u)) return false;
            return std::any_of(user.operands.begin(), user.operands.end(), [&](const printer::Ref& ref) {
              return !ref.is_scalar() && static_cast<std::size_t>(ref.instr) == i;
            });
          });
      if (only_copied) continue;
      need("memory");
      // A compiler would keep the f32 values of the last loop rather than convert again: twice the registers.
      if (crowded_ && in.kind == Instr::Kind::reload && !r.staged) out_.line("opaque({});", at(r));
      if (!is_narrow_float(r.dtype)) {
        const std::string name = unique(r.name + "_vector");
        out_.line("const Vec<{}, {}> {} = {};", r.type, n, name, at(r));
        loop.values[i] = {name + element, r.type};
        continue;
      }
      const std::string name = unique(r.name + "_f32");
      out_.line("const Vec<f32, {}> {} = to_f32({});", n, name, at(r));
      loop.values[i] = {name + element, "f32"};
    } else if (draws_fours(loop, i)) {
      loop.outputs[i] = unique(value_name(in.value) + "_words");
      out_.line("Vec<u32, 4> {};", loop.outputs[i]);
    } else if (is_vector_store(loop, i)) {
      if (direct_copy(loop, i)) {
        loop.outputs[i] = at(loop.arrays[static_cast<std::size_t>(in.operands[0].instr)]);
        continue;
      }
      const DType dtype = kernel_.type(in.op->operands[0]).dtype;
      loop.outputs[i] =
          unique(identifier(kernel_.views[static_cast<std::size_t>(in.op->param)].name) + "_out");
      out_.line("Vec<{}, {}> {};", compute_type(dtype), n, loop.outputs[i]);
    } else if ((in.kind == Instr::Kind::keep || in.kind == Instr::Kind::scan) && !keeps_load(loop, i) &&
               !direct_copy(loop, i)) {
      const Registers r = buffer(in.value);
      if (!is_narrow_float(r.dtype)) continue;
      loop.outputs[i] = unique(r.name + "_new");
      out_.line("Vec<f32, {}> {};", n, loop.outputs[i]);
    }
  }
}

void KernelPrinter::print_vector_tails(Loop& loop) {
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const Instr& in = loop.plan->body[i];
    if (is_vector_store(loop, i)) {
      const DType dtype = kernel_.type(in.op->operands[0]).dtype;
      if (!direct_copy(loop, i) && is_narrow_float(dtype))
        loop.outputs[i] = fmt::format("from_f32<{}>({})", element_type(dtype), loop.outputs[i]);
      if (loop.wide[i])
        out_.line("{}[part] = {};", wide_parts_[i], loop.outputs[i]);
      else
        print_store(loop, i);
    } else if (in.kind == Instr::Kind::keep) {
      if (keeps_load(loop, i)) continue;
      const Registers r = buffer(in.value);
      if (direct_copy(loop, i))
        out_.line("{} = {};", at(r), at(loop.arrays[static_cast<std::size_t>(in.operands[0].instr)]));
      else if (is_narrow_float(r.dtype))
        out_.line("{} = from_f32<{}>({});", at(r), element_type(r.dtype), loop.outputs[i]);
    }
  }
}

void KernelPrinter::print_keep(Loop& loop, std::size_t i) {
  const Instr& in = loop.plan->body[i];
  if (keeps_load(loop, i) || direct_copy(loop, i)) return;
  const Registers r = buffer(in.value);
  if (!(r.place == loop.place || same_spread(layouts_, r.place, loop.place)))
    refuse("a kept value changes its layout");
  const Expr value = operand(loop, in.operands[0]);
  if (!loop.outputs[i].empty())
    out_.line("{}{} = {};", loop.outputs[i], loop.frame.vector > 1 ? ".v[v]" : ".v[0]", value.text);
  else
    out_.line("{} = {};", element(r), as_type(value, r.type));
}

// Scatter and atomic_add: element by element.
void KernelPrinter::print_scattered(Loop& loop, std::size_t i) {
  const Instr& in = loop.plan->body[i];
  const Op& op = *in.op;
  const tile::ViewParam& view = kernel_.views[static_cast<std::size_t>(op.param)];
  const Expr value = operand(loop, in.operands[0]);
  std::vector<Expr> indices;
  indices.reserve(view.rank());
  for (int d = 0; d < view.rank(); ++d)
    indices.push_back(operand(loop, in.operands[static_cast<std::size_t>(d) + 1]));
  std::string guard = effect_guard(loop);
  if (op.masked) guard += (guard.empty() ? "" : " && ") + wrapped(operand(loop, in.operands.back()).text);
  std::string stored = value.text;
  if (is_narrow_float(view.dtype)) {
    need("convert");
    stored = fmt::format("cast<{}>({})", element_type(view.dtype), value.text);
  } else {
    stored = as_type(value, element_type(view.dtype));
  }
  const std::string name = identifier(view.name), offset = view_offset(op.param, indices);
  std::string text = fmt::format("{}[{}] = {};", name, offset, stored);
  if (op.kind == OpKind::atomic_add) {
    need("atomic");
    text = fmt::format("atomic_add({} + {}, {});", name, offset, stored);
  }
  out_.write(guard.empty() ? text : fmt::format("if ({}) {}", guard, text));
}

}  // namespace tilewright::cuda
