// Ops of the text, each by the function of the library that has its name.
#include "programs/program.h"

#include <tilewright/tensor/attention.h>

#include <functional>
#include <stdexcept>

namespace tilewright::programs {

namespace {

bool is_real(const std::string& literal) { return literal.find_first_of(".en") != std::string::npos; }

// A statement's operands and options, as functions take them.
class StatementReader {
 public:
  StatementReader(const Statement& statement, const Values& values, const Literals& literals)
      : statement_(statement), values_(values), literals_(literals) {}

  std::size_t operands() const { return statement_.operands.size(); }
  Tensor tensor(std::size_t i) const { return named(statement_.operands.at(i)); }
  std::vector<Tensor> tensors() const {
    std::vector<Tensor> all;
    all.reserve(operands());
    for (const std::string& name : statement_.operands) all.push_back(named(name));
    return all;
  }
  std::optional<Tensor> optional(std::size_t i) const {
    return i < operands() ? std::optional(tensor(i)) : std::nullopt;
  }
  Arg arg(std::size_t i) const {
    const std::string& word = statement_.operands.at(i);
    if (values_.count(word) != 0) return values_.at(word);
    const auto changing = literals_.find(word);
    const std::string& literal = changing == literals_.end() ? word : changing->second;
    return is_real(literal) ? Arg(parse_real(literal, statement_.op))
                            : Arg(parse_number(literal, statement_.op));
  }
  bool is_value(const std::string& name) const { return values_.count(name) != 0; }
  Tensor named(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) throw std::runtime_error("no value has the name " + name);
    return found->second;
  }

  bool has(const std::string& option) const { return statement_.options.count(option) != 0; }
  std::string text(const std::string& option) const {
    const auto found = statement_.options.find(option);
    return found == statement_.options.end() ? "" : found->second;
  }
  Index integer(const std::string& option, Index otherwise = 0) const {
    return has(option) ? parse_number(text(option), name_of(option)) : otherwise;
  }
  double real(const std::string& option, double otherwise) const {
    return has(option) ? parse_real(text(option), name_of(option)) : otherwise;
  }
  std::optional<Index> maybe(const std::string& option) const {
    return has(option) ? std::optional(integer(option)) : std::nullopt;
  }
  std::vector<Index> integers(const std::string& option) const {
    return parse_numbers(text(option), name_of(option));
  }
  Shape shape() const { return Shape(integers("shape")); }
  Keep keep() const { return integer("keep") != 0 ? Keep::yes : Keep::no; }
  DType dtype() const { return parse_dtype(text("dtype")).value(); }

 private:
  std::string name_of(const std::string& option) const { return statement_.op + ": " + option; }

  const Statement& statement_;
  const Values& values_;
  const Literals& literals_;
};

using Function = std::function<Tensor(const StatementReader&)>;
using Table = std::map<std::string, Function>;

void add_pointwise(Table& table) {
#define TW_BINARY(NAME) table[#NAME] = [](const StatementReader& r) { return NAME(r.arg(0), r.arg(1)); }
  TW_BINARY(add)
  , TW_BINARY(sub)
  , TW_BINARY(mul)
  , TW_BINARY(div)
  , TW_BINARY(trunc_div)
  , TW_BINARY(rem);
  TW_BINARY(pow)
  , TW_BINARY(atan2)
  , TW_BINARY(minimum)
  , TW_BINARY(maximum);
  TW_BINARY(eq)
  , TW_BINARY(ne)
  , TW_BINARY(lt)
  , TW_BINARY(le)
  , TW_BINARY(gt)
  , TW_BINARY(ge);
  TW_BINARY(bit_and)
  , TW_BINARY(bit_or)
  , TW_BINARY(bit_xor)
  , TW_BINARY(shl)
  , TW_BINARY(shr);
  TW_BINARY(logical_and)
  , TW_BINARY(logical_or)
  , TW_BINARY(logical_xor);
#undef TW_BINARY
#define TW_UNARY(NAME) table[#NAME] = [](const StatementReader& r) { return NAME(r.tensor(0)); }
  TW_UNARY(neg)
  , TW_UNARY(abs)
  , TW_UNARY(sign)
  , TW_UNARY(floor)
  , TW_UNARY(ceil)
  , TW_UNARY(round);
  TW_UNARY(trunc)
  , TW_UNARY(sqrt)
  , TW_UNARY(rsqrt)
  , TW_UNARY(reciprocal)
  , TW_UNARY(square)
  , TW_UNARY(exp);
  TW_UNARY(exp2)
  , TW_UNARY(expm1)
  , TW_UNARY(log)
  , TW_UNARY(log2)
  , TW_UNARY(log1p)
  , TW_UNARY(sin);
  TW_UNARY(cos)
  , TW_UNARY(tan)
  , TW_UNARY(tanh)
  , TW_UNARY(erf)
  , TW_UNARY(sigmoid)
  , TW_UNARY(isnan);
  TW_UNARY(isinf)
  , TW_UNARY(isfinite)
  , TW_UNARY(bit_not)
  , TW_UNARY(logical_not)
  , TW_UNARY(relu);
  TW_UNARY(silu)
  , TW_UNARY(softplus)
  , TW_UNARY(gelu)
  , TW_UNARY(gelu_tanh)
  , TW_UNARY(stop_gradient);
  TW_UNARY(zeros_like);
#undef TW_UNARY
  table["elu"] = [](const StatementReader& r) { return elu(r.tensor(0), r.real("alpha", 1)); };
  table["clamp"] = [](const StatementReader& r) {
    return clamp(r.tensor(0), r.real("low", -1), r.real("high", 1));
  };
  table["cast"] = [](const StatementReader& r) { return cast(r.tensor(0), r.dtype()); };
  table["where"] = [](const StatementReader& r) { return where(r.tensor(0), r.arg(1), r.arg(2)); };
  table["full_like"] = [](const StatementReader& r) { return full_like(r.tensor(0), r.real("value", 0)); };
}

void add_views(Table& table) {
  table["reshape"] = [](const StatementReader& r) { return reshape(r.tensor(0), r.shape()); };
  table["broadcast_to"] = [](const StatementReader& r) { return broadcast_to(r.tensor(0), r.shape()); };
  table["transpose"] = [](const StatementReader& r) { return transpose(r.tensor(0), r.integers("perm")); };
  table["swap_axes"] = [](const StatementReader& r) {
    return swap_axes(r.tensor(0), r.integer("a"), r.integer("b"));
  };
  table["unsqueeze"] = [](const StatementReader& r) { return unsqueeze(r.tensor(0), r.integer("axis")); };
  table["squeeze"] = [](const StatementReader& r) { return squeeze(r.tensor(0), r.integer("axis")); };
  table["slice"] = [](const StatementReader& r) {
    const SliceRange range{.start = r.maybe("start"), .stop = r.maybe("stop"), .step = r.integer("step", 1)};
    return slice(r.tensor(0), r.integer("axis"), range);
  };
  table["select"] = [](const StatementReader& r) {
    return select(r.tensor(0), r.integer("axis"), r.integer("position"));
  };
  table["pad"] = [](const StatementReader& r) {
    return pad(r.tensor(0), r.integer("axis"), r.integer("low"), r.integer("high"), r.real("value", 0));
  };
  table["concat"] = [](const StatementReader& r) { return concat(r.tensors(), r.integer("axis")); };
  table["stack"] = [](const StatementReader& r) { return stack(r.tensors(), r.integer("axis")); };
  table["split"] = [](const StatementReader& r) {
    const auto parts = split(r.tensor(0), r.integer("axis"), r.integers("extents"));
    return parts.at(static_cast<std::size_t>(r.integer("part")));
  };
  table["flip"] = [](const StatementReader& r) { return flip(r.tensor(0), r.integers("axes")); };
}

void add_reductions(Table& table) {
#define TW_REDUCTION(NAME) \
  table[#NAME] = [](const StatementReader& r) { return NAME(r.tensor(0), r.integers("axes"), r.keep()); }
  TW_REDUCTION(sum)
  , TW_REDUCTION(prod)
  , TW_REDUCTION(max)
  , TW_REDUCTION(min)
  , TW_REDUCTION(any);
  TW_REDUCTION(all)
  , TW_REDUCTION(mean)
  , TW_REDUCTION(logsumexp);
#undef TW_REDUCTION
  table["var"] = [](const StatementReader& r) {
    return var(r.tensor(0), r.integers("axes"), r.integer("ddof"), r.keep());
  };
  table["argmax"] = [](const StatementReader& r) { return argmax(r.tensor(0), r.integer("axis"), r.keep()); };
  table["argmin"] = [](const StatementReader& r) { return argmin(r.tensor(0), r.integer("axis"), r.keep()); };
  table["cumsum"] = [](const StatementReader& r) { return cumsum(r.tensor(0), r.integer("axis")); };
  table["softmax"] = [](const StatementReader& r) { return softmax(r.tensor(0), r.integer("axis", -1)); };
  table["log_softmax"] = [](const StatementReader& r) {
    return log_softmax(r.tensor(0), r.integer("axis", -1));
  };
  table["layer_norm"] = [](const StatementReader& r) {
    return layer_norm(r.tensor(0), r.optional(1), r.optional(2), r.real("epsilon", 1e-5));
  };
  table["rms_norm"] = [](const StatementReader& r) {
    return rms_norm(r.tensor(0), r.optional(1), r.real("epsilon", 1e-5));
  };
  table["cross_entropy"] = [](const StatementReader& r) { return cross_entropy(r.tensor(0), r.tensor(1)); };
  table["linear_cross_entropy"] = [](const StatementReader& r) {
    return linear_cross_entropy(r.tensor(0), r.tensor(1), r.tensor(2));
  };
}

void add_indexing(Table& table) {
  table["take"] = [](const StatementReader& r) { return take(r.tensor(0), r.tensor(1), r.integer("axis")); };
  table["take_along"] = [](const StatementReader& r) {
    return take_along(r.tensor(0), r.tensor(1), r.integer("axis"));
  };
  table["scatter_add"] = [](const StatementReader& r) {
    return scatter_add(r.tensor(0), r.tensor(1), r.integer("axis"), r.shape());
  };
  table["embedding"] = [](const StatementReader& r) { return embedding(r.tensor(0), r.tensor(1)); };
  table["one_hot"] = [](const StatementReader& r) {
    return one_hot(r.tensor(0), r.integer("classes"), r.dtype());
  };
  table["element"] = [](const StatementReader& r) {
    std::vector<Tensor> indices = r.tensors();
    indices.erase(indices.begin());
    return element(r.tensor(0), indices);
  };
}

void add_products(Table& table) {
  table["matmul"] = [](const StatementReader& r) { return matmul(r.tensor(0), r.tensor(1)); };
  table["einsum"] = [](const StatementReader& r) { return einsum(r.text("spec"), r.tensor(0), r.tensor(1)); };
#define TW_TERNARY(NAME) \
  table[#NAME] = [](const StatementReader& r) { return NAME(r.tensor(0), r.tensor(1), r.tensor(2)); }
  TW_TERNARY(grouped_matmul), TW_TERNARY(ragged_matmul), TW_TERNARY(masked_matmul);
  TW_TERNARY(quantized_matmul);
#undef TW_TERNARY
  table["scaled_matmul"] = [](const StatementReader& r) {
    return scaled_matmul(r.tensor(0), r.tensor(1), r.tensor(2), r.tensor(3));
  };
  table["pack_int4"] = [](const StatementReader& r) { return pack_int4(r.tensor(0)); };
  table["unpack_int4"] = [](const StatementReader& r) { return unpack_int4(r.tensor(0)); };
}

// "causal:2", "window:3:1:0", "prefix:5" or "prefix:v4", "doc:v3", "doc2:v3:v4", "mod:3": every third key
// after the query's own number.
MaskFunction mask_of(const std::string& text, const StatementReader& r) {
  const std::vector<std::string> words = split(text, ":");
  const auto number = [&](std::size_t i) { return i < words.size() ? parse_number(words[i], text) : 0; };
  if (words[0] == "causal") return causal_mask(number(1));
  if (words[0] == "window") return window_mask(number(1), number(2), number(3));
  if (words[0] == "prefix")
    return r.is_value(words[1]) ? prefix_mask(r.named(words[1])) : prefix_mask(number(1));
  if (words[0] == "doc") return document_mask(r.named(words[1]));
  if (words[0] == "doc2") return document_mask(r.named(words[1]), r.named(words[2]));
  if (words[0] == "mod")
    return [modulus = number(1)](const ScoreIndices& at) { return (at.query + at.key) % modulus == 0; };
  throw std::runtime_error("no such mask: " + text);
}

// "alibi:v3", "cap:2.5", "bias:v3".
ScoreFunction score_of(const std::string& text, const StatementReader& r) {
  const std::vector<std::string> words = split(text, ":");
  if (words[0] == "alibi") return alibi_score(r.named(words[1]));
  if (words[0] == "cap") return soft_cap_score(parse_real(words[1], text));
  if (words[0] == "bias") return bias_score(r.named(words[1]));
  throw std::runtime_error("no such score: " + text);
}

AttentionOptions attention_options(const StatementReader& r) {
  AttentionOptions options;
  if (r.has("scale")) options.scale = r.real("scale", 1);
  std::vector<MaskFunction> masks;
  for (const std::string& text : split(r.text("masks"), ";")) masks.push_back(mask_of(text, r));
  if (!masks.empty()) options.mask = r.text("join") == "any" ? any_of(masks) : all_of(masks);
  std::vector<ScoreFunction> scores;
  for (const std::string& text : split(r.text("scores"), ";")) scores.push_back(score_of(text, r));
  if (!scores.empty()) options.score = chain(scores);
  return options;
}

void add_attention(Table& table) {
  table["attention"] = [](const StatementReader& r) {
    return attention(r.tensor(0), r.tensor(1), r.tensor(2), attention_options(r));
  };
  table["attention_lse"] = [](const StatementReader& r) {
    return attention_with_lse(r.tensor(0), r.tensor(1), r.tensor(2), attention_options(r)).second;
  };
  table["from_pages"] = [](const StatementReader& r) { return from_pages(r.tensor(0), r.tensor(1)); };
}

Table all_functions() {
  Table table;
  add_pointwise(table);
  add_views(table);
  add_reductions(table);
  add_indexing(table);
  add_products(table);
  add_attention(table);
  return table;
}

}  // namespace

Tensor evaluate(const Statement& statement, const Values& values, const Literals& literals) {
  static const Table table = all_functions();
  const auto found = table.find(statement.op);
  if (found == table.end()) throw std::runtime_error("no op has the name " + statement.op);
  return found->second(StatementReader(statement, values, literals));
}

}  // namespace tilewright::programs
