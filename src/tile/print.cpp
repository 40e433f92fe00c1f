// The printer of tile IR. One op a line: results = op operands {attributes, sorted} : types.
//
// Values are printed by name or by id. A parsed value gets the next free id in the order in which the Builder
// numbers (a loop: its arguments, its body, its results); a named value with another id says so once:
// %sum#12.
#include "tile/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tilewright/tile/text.h>

#include <cmath>

#include "tile/rules.h"

namespace tilewright::tile {

namespace {

template <class T>
const T* at_or_null(const std::vector<T>& items, int i) {
  return i >= 0 && i < static_cast<int>(items.size()) ? &items[static_cast<std::size_t>(i)] : nullptr;
}

std::string float_text(double value, DType dtype) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text =
      dtype == DType::f64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel) {}

  std::string kernel() {
    std::string text = header() + " {\n";
    append_block(kernel_.body, 1, text);
    return text + "}\n";
  }

  std::string op_head(const Op& op) {
    const std::string args = op.blocks.empty() ? "" : block_args(op);
    return results(op) + stem(op, args) + types(op);
  }

  bool number_values = false;  // write %name#id where the id is not the next one

 private:
  std::string ref(ValueId id) const {
    const ValueInfo* info = at_or_null(kernel_.values, id);
    return info && !info->name.empty() ? fmt::format("%{}", info->name) : fmt::format("%{}", id);
  }
  std::string refs(const std::vector<ValueId>& ids, std::size_t begin, std::size_t end) const {
    std::string text;
    for (std::size_t i = begin; i < std::min(end, ids.size()); ++i)
      text += fmt::format("{}{}", i == begin ? "" : ", ", ref(ids[i]));
    return text;
  }
  std::string define(ValueId id) {
    const ValueInfo* info = at_or_null(kernel_.values, id);
    const bool explicit_id = number_values && id != next_ && info && !info->name.empty();
    next_ = id + 1;
    return explicit_id ? fmt::format("{}#{}", ref(id), id) : ref(id);
  }

  std::string dim(const Dim& d) const {
    if (d.is_constant()) return fmt::format("{}", d.value);
    const ScalarParam* scalar = at_or_null(kernel_.scalars, d.scalar);
    return scalar ? "%" + scalar->name : fmt::format("%?{}", d.scalar);
  }
  std::string dims(const std::vector<Dim>& list) const {
    std::vector<std::string> texts;
    texts.reserve(list.size());
    for (const Dim& d : list) texts.push_back(dim(d));
    return fmt::format("[{}]", fmt::join(texts, ","));
  }

  std::string header() const {
    std::vector<std::string> params;
    params.reserve(kernel_.views.size());
    for (const ViewParam& v : kernel_.views)
      params.push_back(fmt::format("%{}: view<{},{},strides={},align={}>", v.name, name(v.dtype),
                                   dims(v.extents), dims(v.strides), v.align_bytes));
    for (const ScalarParam& s : kernel_.scalars)
      params.push_back(fmt::format("%{}: {}", s.name, name(s.dtype)));
    std::vector<std::string> axes;
    for (const GridAxis& axis : kernel_.grid) {
      std::vector<std::string> factors;
      for (const GridFactor& f : axis)
        factors.push_back(f.block == 1 ? dim(f.extent) : fmt::format("cdiv({},{})", dim(f.extent), f.block));
      axes.push_back(fmt::format("{}", fmt::join(factors, "*")));
    }
    std::string tail = fmt::format(" grid({})", fmt::join(axes, ", "));
    if (!kernel_.constants.empty()) {
      std::vector<std::string> constants;
      constants.reserve(kernel_.constants.size());
      for (const ConstParam& c : kernel_.constants)
        constants.push_back(fmt::format("{}={}", c.name, c.value));
      tail += fmt::format(" const({})", fmt::join(constants, ", "));
    }
    if (kernel_.together != 1) tail += fmt::format(" together({})", kernel_.together);
    std::string line = fmt::format("kernel @{}({}){}", kernel_.name, fmt::join(params, ", "), tail);
    constexpr std::size_t kLineLimit = 110;
    if (line.size() <= kLineLimit) return line;
    return fmt::format("kernel @{}(\n    {})\n   {}", kernel_.name, fmt::join(params, ",\n    "), tail);
  }

  void append_block(const Block& block, int depth, std::string& text) {
    for (const Op& op : block.ops) append_op(op, depth, text);
  }

  void append_op(const Op& op, int depth, std::string& text) {
    const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
    const std::string args = op.blocks.empty() ? "" : block_args(op);
    std::string inner;
    for (std::size_t i = 0; i < op.blocks.size(); ++i) {
      inner += i == 0 ? " {\n" : indent + "} else {\n";
      append_block(op.blocks[i], depth + 1, inner);
    }
    if (!op.blocks.empty()) inner += indent + "}";
    text += indent + results(op) + stem(op, args) + types(op) + inner + "\n";
  }

  std::string results(const Op& op) {
    std::string text;
    for (ValueId id : op.results) text += (text.empty() ? "" : ", ") + define(id);
    return text.empty() ? text : text + " = ";
  }

  // "%2 in … (%3 = %a, %4 = %b)" needs the block's arguments; without them the operands alone.
  std::string block_args(const Op& op) {
    if (op.kind != OpKind::loop || op.operands.size() < 3 || op.blocks[0].args.empty()) return "";
    const std::vector<ValueId>& args = op.blocks[0].args;
    std::string text = fmt::format("{} in {} to {} step {}", define(args[0]), ref(op.operands[0]),
                                   ref(op.operands[1]), ref(op.operands[2]));
    for (std::size_t i = 1; i < args.size(); ++i)
      text += fmt::format("{}{} = {}", i == 1 ? " (" : ", ", define(args[i]),
                          i + 2 < op.operands.size() ? ref(op.operands[i + 2]) : "?");
    return args.size() > 1 ? text + ")" : text;
  }

  static std::string_view word(const Op& op) {
    if (op.kind > OpKind::yield || static_cast<int>(op.prim) >= kPrimCount || op.monoid > Monoid::argmin)
      return "?";
    return op.kind == OpKind::apply ? name(op.prim) : name(op.kind);
  }

  // The op's name, operands and attributes.
  std::string stem(const Op& op, const std::string& args) const {
    const std::string_view kind = word(op);
    const std::string all = refs(op.operands, 0, op.operands.size());
    switch (op.kind) {
      case OpKind::constant: {
        const ValueInfo* result = op.results.empty() ? nullptr : at_or_null(kernel_.values, op.results[0]);
        return fmt::format("{} {}", kind, to_string(op.number, result ? result->type.dtype : DType::f64));
      }
      case OpKind::scalar_param: {
        const ScalarParam* scalar = at_or_null(kernel_.scalars, op.param);
        return fmt::format("{} %{}", kind, scalar ? scalar->name : "?");
      }
      case OpKind::program_id:
        return fmt::format("{} {}", kind, op.param);
      case OpKind::load:
      case OpKind::store:
      case OpKind::gather:
      case OpKind::scatter:
      case OpKind::atomic_add:
        return fmt::format("{} {}", kind, access(op));
      case OpKind::reduce:
      case OpKind::scan:
        return fmt::format("{} {} {} {{axis={}}}", kind, op.monoid > Monoid::argmin ? "?" : name(op.monoid),
                           all, op.axis);
      case OpKind::argsort:
        return fmt::format("{} {} {{axis={}{}}}", kind, all, op.axis,
                           op.order == Order::ascending ? "" : ", order=descending");
      case OpKind::apply:
        if (op.rounded) return fmt::format("{} {} {{rounded=true}}", kind, all);
        break;
      case OpKind::dot:
        if (op.precision != DotPrecision::exact)
          return fmt::format("{} {} {{precision={}}}", kind, all, name(op.precision));
        break;
      case OpKind::loop:
        if (!args.empty()) return fmt::format("{} {}", kind, args);
        break;
      default:
        break;
    }
    return all.empty() ? std::string(kind) : fmt::format("{} {}", kind, all);
  }

  // "%x[%i, %j], %value, %mask {attributes}"
  std::string access(const Op& op) const {
    const ViewParam* view = at_or_null(kernel_.views, op.param);
    const bool writes = op.kind != OpKind::load && op.kind != OpKind::gather;
    const std::size_t first = writes ? 1 : 0;
    std::size_t end = op.operands.size();
    if (op.masked && end > first) --end;
    std::string text = fmt::format("%{}[{}]", view ? view->name : "?", refs(op.operands, first, end));
    if (writes && !op.operands.empty()) text += ", " + ref(op.operands[0]);
    if (op.masked && !op.operands.empty()) text += ", " + ref(op.operands.back());
    std::vector<std::string> attributes;
    if (op.bounded && op.kind == OpKind::store) attributes.push_back("bounded=true");
    if (op.tile_dims != default_tile_dims(view ? view->rank() : 0, static_cast<int>(op.tile_dims.size())))
      attributes.push_back(fmt::format("dims=[{}]", fmt::join(op.tile_dims, ",")));
    if (uses_number(op))
      attributes.push_back(fmt::format("fill={}", to_string(op.number, view ? view->dtype : DType::f64)));
    return attributes.empty() ? text : fmt::format("{} {{{}}}", text, fmt::join(attributes, ", "));
  }

  std::string types(const Op& op) const {
    std::vector<ValueId> ids = op.results;
    const bool writes =
        op.kind == OpKind::store || op.kind == OpKind::scatter || op.kind == OpKind::atomic_add;
    if (writes && !op.operands.empty()) ids = {op.operands[0]};
    std::string text;
    for (ValueId id : ids) {
      const ValueInfo* info = at_or_null(kernel_.values, id);
      text += (text.empty() ? " : " : ", ") + (info ? to_string(info->type) : "?");
    }
    return text;
  }

  const Kernel& kernel_;
  ValueId next_ = 0;
};

}  // namespace

std::string to_string(const Kernel& kernel, const Op& op) { return Printer(kernel).op_head(op); }

std::string to_string(const Number& number, DType dtype) {
  if (is_float(dtype)) return float_text(number.f, dtype);
  if (is_bool(dtype)) return number.i != 0 ? "true" : "false";
  return fmt::format("{}", number.i);
}

std::string print(const Kernel& kernel) {
  Printer printer(kernel);
  printer.number_values = true;
  return printer.kernel();
}

}  // namespace tilewright::tile
