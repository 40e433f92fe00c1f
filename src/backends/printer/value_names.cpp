#include "backends/printer/value_names.h"

#include "backends/printer/powers_below.h"

#include <fmt/format.h>

#include <cctype>
#include <map>
#include <optional>

namespace tilewright::printer {

using tile::Kernel;
using tile::Monoid;
using tile::Op;
using tile::OpKind;
using tile::Prim;
using tile::ValueId;

namespace {

// Longer ones tell a reader no more than the last op does.
constexpr std::size_t kLongest = 24;

// The builder tells values of one name apart as x, x.1, x.2; printed code has its own way.
std::string own_name(const std::string& given) {
  const std::size_t dot = given.find_last_of('.');
  const bool numbered = dot != std::string::npos && dot + 1 < given.size() &&
                        given.find_first_not_of("0123456789", dot + 1) == std::string::npos;
  std::string out;
  for (char c : numbered ? given.substr(0, dot) : given)
    out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return out;
}

class Namer {
 public:
  explicit Namer(const Kernel& kernel)
      : kernel_(kernel),
        definitions_(definitions(kernel)),
        names_(kernel.values.size()),
        subjects_(kernel.values.size()) {
    tile::for_each_op(kernel.body, [&](const Op& op) {
      if (op.kind == OpKind::loop) find_carried(op);
    });
  }

  const std::string& name_of(ValueId v) {
    std::string& name = names_[static_cast<std::size_t>(v)];
    if (name.empty()) name = made_name(v);
    return name;
  }

  // Whether a loop carries a value on, or ends with it.
  bool is_carried(ValueId v) const { return carried_.count(v) > 0; }
  const Op* definition(ValueId v) const { return definitions_[static_cast<std::size_t>(v)]; }

 private:
  struct Carried {
    ValueId arg, next;
  };

  void find_carried(const Op& loop) {
    const tile::Block& body = loop.blocks[0];
    inductions_[body.args[0]] = &loop;
    for (std::size_t i = 0; i < loop.results.size(); ++i) {
      const Carried c{body.args[i + 1], body.ops.back().operands[i]};
      const ValueId initial = loop.operands[i + 3];
      carried_[c.arg] = carried_[loop.results[i]] = c;
      if (const Op* op = definition(initial); op && is_filled(*op)) carried_[initial] = c;
      next_.insert({c.next, c.arg});
    }
  }

  bool is_filled(const Op& op) const {
    if (op.kind == OpKind::constant) return true;
    const bool shaped = op.kind == OpKind::broadcast || op.kind == OpKind::reshape;
    const Op* from = shaped ? definition(op.operands[0]) : nullptr;
    return from && is_filled(*from);
  }

  const std::string& given(ValueId v) const { return kernel_.values[static_cast<std::size_t>(v)].name; }

  std::string made_name(ValueId v) {
    if (!given(v).empty()) return own_name(given(v));
    if (const auto carried = carried_.find(v); carried != carried_.end())
      return carried_name(carried->second);
    if (inductions_.count(v) > 0) return "k";
    const Op* op = definition(v);
    if (!op) return "t";
    if (const auto next = next_.find(v); next != next_.end() && op->kind == OpKind::apply)
      return "new_" + name_of(next->second);
    std::string made = name_of_op(*op);
    return made.size() <= kLongest ? made : std::string(short_name(*op));
  }

  // The name of a carried value, by how it changes from one round to the next.
  std::string carried_name(const Carried& c) const {
    for (ValueId v : {c.arg, c.next})
      if (!given(v).empty()) return own_name(given(v));
    const Op* update = definition(c.next);
    while (update && update->kind == OpKind::cast) update = definition(update->operands[0]);
    if (!update) return "carried";
    if (update->kind == OpKind::dot) return "acc";
    if (update->kind != OpKind::apply) return "carried";
    const std::vector<Index>& shape = kernel_.type(c.arg).shape;
    const std::string_view of = shape.size() == 2 && shape[1] == 1   ? "row"
                                : shape.size() == 2 && shape[0] == 1 ? "column"
                                                                     : "running";
    switch (update->prim) {
      case Prim::add:
        return adds_dot(*update) ? "acc" : fmt::format("{}_sum", of);
      case Prim::mul:
        return fmt::format("{}_product", of);
      case Prim::max:
        return fmt::format("{}_max", of);
      case Prim::min:
        return fmt::format("{}_min", of);
      case Prim::select:
        return "best";
      default:
        return "carried";
    }
  }

  bool adds_dot(const Op& add) const {
    for (ValueId v : add.operands) {
      const Op* op = definition(v);
      while (op && op->kind == OpKind::cast) op = definition(op->operands[0]);
      if (op && op->kind == OpKind::dot) return true;
    }
    return false;
  }

  std::string_view short_name(const Op& op) const {
    if (op.kind == OpKind::reduce || op.kind == OpKind::scan) return name(op.monoid);
    if (op.kind == OpKind::apply) return info(op.prim).to_bool ? "is" : name(op.prim);
    return name(op.kind);
  }

  std::string name_of_op(const Op& op) {
    switch (op.kind) {
      case OpKind::load:
      case OpKind::gather:
        return kernel_.views[static_cast<std::size_t>(op.param)].name + "_in";
      case OpKind::scalar_param:
        return kernel_.scalars[static_cast<std::size_t>(op.param)].name;
      case OpKind::program_id:
        return "program";
      case OpKind::constant:
        return "constant";
      case OpKind::arange:
        return "index";
      case OpKind::dot:
        return "product";
      case OpKind::random:
        return "words";
      case OpKind::reduce:
        return with_subject(fmt::format("{}_of", name(op.monoid)), op.operands[0], "row");
      case OpKind::scan:
        return with_subject(fmt::format("running_{}_of", name(op.monoid)), op.operands[0], "row");
      case OpKind::argsort:
        return with_subject("order_of", op.operands[0], "row");
      case OpKind::cast:
        return with_type(op);
      case OpKind::transpose:
        return with_subject("transposed", op.operands[0], "");
      case OpKind::broadcast:
      case OpKind::reshape:
        return name_of(op.operands[0]);
      case OpKind::branch:
        return "chosen";
      case OpKind::apply:
        return name_of_apply(op);
      default:
        return std::string(name(op.kind));
    }
  }

  std::string with_subject(const std::string& what, ValueId of, std::string_view otherwise) {
    const std::string& subject = subject_of(of);
    if (!subject.empty()) return fmt::format("{}_{}", what, subject);
    return otherwise.empty() ? what : fmt::format("{}_{}", what, otherwise);
  }

  std::string with_type(const Op& cast) {
    const std::string& subject = subject_of(cast.operands[0]);
    const DType to = kernel_.type(cast.results[0]).dtype;
    return fmt::format("{}_{}", subject.empty() ? "t" : subject, name(to));
  }

  std::string name_of_apply(const Op& op) {
    const bool integer = kernel_.type(op.results[0]).dtype == DType::i64;
    // The negative of a difference is about two things: a name after one of them would mislead.
    if (op.prim == Prim::neg && is_sum(op.operands[0]) && (!integer || subject_of(op.operands[0]).empty()))
      return "neg_" + name_of(op.operands[0]);
    if (info(op.prim).arity == 1) return with_subject(std::string(name(op.prim)), op.operands[0], "");
    switch (op.prim) {
      case Prim::add:
      case Prim::sub:
        return integer ? "index" : op.prim == Prim::add ? "sum" : "difference";
      case Prim::mul:
        if (integer) return "index";
        for (std::size_t side : {0u, 1u})
          if (is_constant(op.operands[side])) return with_subject("scaled", op.operands[1 - side], "");
        return "product";
      case Prim::div:
        return integer ? "index" : "quotient";
      case Prim::rem:
        return "remainder";
      case Prim::min:
      case Prim::max:
        if (integer) return op.prim == Prim::min ? "end" : "begin";
        for (std::size_t side : {0u, 1u})
          if (is_constant(op.operands[side])) return with_subject("clamped", op.operands[1 - side], "");
        return op.prim == Prim::max ? "larger" : "smaller";
      case Prim::select:
        return name_of_select(op);
      case Prim::eq:
        return is_infinite(op.operands[1]) ? "is_empty" : "is_equal";
      case Prim::ne:
        return "differs";
      case Prim::lt:
      case Prim::le:
        return "is_below";
      case Prim::gt:
      case Prim::ge:
        return "is_above";
      default:
        return info(op.prim).to_bool ? "is" : std::string(name(op.prim));
    }
  }

  std::string name_of_select(const Op& op) {
    const Op* mask = behind(OpKind::broadcast, op.operands[0]);
    const bool finite = mask && mask->kind == OpKind::apply && mask->prim == Prim::eq &&
                        mask->operands.size() == 2 && is_infinite(mask->operands[1]);
    for (std::size_t side : {1u, 2u})
      if (is_constant(op.operands[side])) {
        const std::string& subject = subject_of(op.operands[3 - side]);
        return subject.empty() ? "chosen" : fmt::format("{}_{}", finite ? "finite" : "masked", subject);
      }
    return "chosen";
  }

  bool is_sum(ValueId v) const {
    const Op* op = definition(v);
    return op && op->kind == OpKind::apply && (op->prim == Prim::add || op->prim == Prim::sub);
  }
  const Op* behind(OpKind kind, ValueId v) const {
    const Op* op = definition(v);
    while (op && op->kind == kind) op = definition(op->operands[0]);
    return op;
  }
  bool is_constant(ValueId v) const {
    const Op* op = behind(OpKind::broadcast, v);
    return op && op->kind == OpKind::constant;
  }
  bool is_infinite(ValueId v) const {
    const Op* op = behind(OpKind::broadcast, v);
    return op && op->kind == OpKind::constant && is_float(kernel_.type(v).dtype) && op->number.f * 0 != 0;
  }

  // What a value is about: of scores · c - m the scores. Empty: nothing that has a name.
  const std::string& subject_of(ValueId v) {
    std::optional<std::string>& known = subjects_[static_cast<std::size_t>(v)];
    if (!known) {
      known.emplace();
      std::string made = made_subject(v);
      known = std::move(made);
    }
    return *known;
  }

  std::string made_subject(ValueId v) {
    if (!given(v).empty() || is_carried(v)) return name_of(v);
    const Op* op = definition(v);
    if (!op) return "";
    switch (op->kind) {
      case OpKind::load:
      case OpKind::gather:
        return kernel_.views[static_cast<std::size_t>(op->param)].name;
      case OpKind::scalar_param:
      case OpKind::dot:
      case OpKind::reduce:
      case OpKind::scan:
      case OpKind::argsort:
        return name_of(v);
      case OpKind::cast:
      case OpKind::broadcast:
      case OpKind::reshape:
      case OpKind::transpose:
        return subject_of(op->operands[0]);
      case OpKind::apply:
        break;
      default:
        return "";
    }
    if (info(op->prim).arity == 1 && op->prim != Prim::neg) return name_of(v);
    std::string found;
    for (ValueId o : op->operands)
      if (kernel_.type(o).dtype == kernel_.type(v).dtype && found.empty()) found = subject_of(o);
    return found;
  }

  const Kernel& kernel_;
  const std::vector<const Op*> definitions_;
  std::vector<std::string> names_;
  std::vector<std::optional<std::string>> subjects_;
  std::map<ValueId, Carried> carried_;
  std::map<ValueId, ValueId> next_;  // what a round hands on → the argument it becomes
  std::map<ValueId, const Op*> inductions_;
};

}  // namespace

ValueNames::ValueNames(const Kernel& kernel, const LoopPlan& plan)
    : plan_(plan), names_(kernel.values.size()), storages_(kernel.values.size()) {
  Namer namer(kernel);
  // What tells most of the values that share a storage: a given name, what a loop carries, a product.
  std::vector<int> told(kernel.values.size(), 0);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const auto v = static_cast<ValueId>(i);
    names_[i] = namer.name_of(v);
    const Op* op = namer.definition(v);
    const int tells = namer.is_carried(v)              ? 4
                      : !kernel.values[i].name.empty() ? 3
                      : op && op->kind == OpKind::dot  ? 2
                                                       : 1;
    const auto storage = static_cast<std::size_t>(plan.storage(v));
    const bool own = storage == i;
    if (tells > told[storage] || (own && tells == told[storage])) {
      told[storage] = tells;
      storages_[storage] = names_[i];
    }
  }
}

}  // namespace tilewright::printer
