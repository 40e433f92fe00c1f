// A mistake is reported in the words of who made it: the message begins with the function that was called,
// whichever of its parts found the mistake, and ends with the line of the call. Every function of functions.h
// and attention.h is tried, at once and compiled.
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>

#include "support/errors.h"

namespace tilewright {
namespace {

struct Mistake {
  std::string function;
  std::function<void()> make;
  const char* file = __FILE__;  // where the call is written: here, or a list of functions
};

class FunctionNames : public ::testing::Test {
 protected:
  Context ctx_{{.device = "reference", .cache_directory = ""}};
  const Tensor none_, x_ = ctx_.ones({2, 3}), other_ = ctx_.ones({4, 5}), scalar_ = ctx_.ones({}),
                      bits_ = ctx_.ones({2, 3}, DType::i32), at_ = ctx_.ones({2}, DType::i64),
                      h_ = ctx_.ones({1, 1, 2, 3}), wide_ = ctx_.ones({1, 1, 1, 1, 1, 1, 1, 1}, DType::f32);
  const Shape huge_{Index{1} << 62, 4};

  std::vector<Mistake> of_operands() const;
  std::vector<Mistake> of_the_rest() const;
  std::vector<Mistake> of_attention() const;

  void expect_named(const std::vector<Mistake>& mistakes) {
    for (const Mistake& m : mistakes) {
      expect_named(m, test::message_of(m.make), "at once");
      const auto recorded = [&](const Tensor& t) {
        m.make();
        return t;
      };
      expect_named(m, test::message_of([&] { compile(recorded)(x_); }), "compiled");
    }
  }
  static void expect_named(const Mistake& m, const std::string& message, const char* how) {
    const bool named = message.starts_with(m.function + ": ") || message.starts_with(m.function + " \"");
    EXPECT_TRUE(named) << m.function << " " << how << ": " << message;
    const std::string file = std::filesystem::path(m.file).filename().string();
    EXPECT_NE(message.find(fmt::format(" (at {}:", file)), std::string::npos) << how << ": " << message;
    EXPECT_EQ(message.find(" (at "), message.rfind(" (at ")) << "one place, " << how << ": " << message;
  }
};

// Functions that `header` declares.
std::set<std::string> declared(const std::string& header) {
  std::ifstream file(std::string(TW_TEST_FOLDER) + "/../../include/tilewright/" + header);
  EXPECT_TRUE(file) << header;
  const std::regex function(
      "^(?:(?:(?:inline )?Tensor|std::vector<Tensor>|std::pair<Tensor, Tensor>) |TW_\\w+\\()(\\w+)[(,)].*");
  std::set<std::string> names;
  std::smatch found;
  for (std::string line; std::getline(file, line);)
    if (std::regex_match(line, found, function)) names.insert(found[1]);
  return names;
}

#define TW_WRONG(function, ...) \
  {#function, [this] { (void)this, (void)tilewright::function(__VA_ARGS__); }, __FILE__}
#define TW_UNDEFINED(function) TW_WRONG(function, none_)

// Pointwise functions, by operands that do not meet or have no value.
std::vector<Mistake> FunctionNames::of_operands() const {
  return {
      TW_WRONG(add, x_, other_),
      TW_WRONG(sub, x_, other_),
      TW_WRONG(mul, x_, other_),
      TW_WRONG(div, x_, other_),
      TW_WRONG(trunc_div, x_, other_),
      TW_WRONG(rem, x_, other_),
      TW_WRONG(pow, x_, other_),
      TW_WRONG(pow, bits_, none_),
      TW_WRONG(atan2, x_, other_),
      TW_WRONG(minimum, x_, other_),
      TW_WRONG(maximum, x_, other_),
      TW_WRONG(eq, x_, other_),
      TW_WRONG(ne, x_, other_),
      TW_WRONG(lt, x_, other_),
      TW_WRONG(le, x_, other_),
      TW_WRONG(gt, x_, other_),
      TW_WRONG(ge, x_, other_),
      TW_WRONG(bit_and, x_, x_),
      TW_WRONG(bit_or, x_, x_),
      TW_WRONG(bit_xor, x_, x_),
      TW_WRONG(shl, x_, 1),
      TW_WRONG(shr, x_, 1),
      TW_WRONG(logical_and, x_, other_),
      TW_WRONG(logical_or, x_, other_),
      TW_WRONG(logical_xor, x_, other_),
      TW_WRONG(where, x_, x_, x_),
      TW_WRONG(where, x_, 1, 0),
      TW_WRONG(where, x_ > 0.f, x_, other_),
      TW_WRONG(where, none_, 1, 0),
      TW_WRONG(clamp, none_, 0, 1),
      TW_WRONG(clamp, none_, 0.5, 1),
#define TW_FUNCTION(f, literals) TW_WRONG(f, x_, none_),
#include <tilewright/ops/binary.def>
#define TW_FUNCTION(f) TW_UNDEFINED(f),
#define TW_COMPOSITE_OF(f, parameter, usual, ...) TW_UNDEFINED(f),
#include <tilewright/ops/unary.def>
      TW_WRONG(bit_not, x_),
      TW_UNDEFINED(gelu),
      TW_UNDEFINED(gelu_tanh),
      TW_WRONG(cast, none_, DType::f64),
      TW_UNDEFINED(zeros_like),
      TW_WRONG(full_like, none_, 3),
      TW_WRONG(full_like, bits_, 1e20),
      {"add", [this] { x_ + other_; }},
      {"neg", [this] { -none_; }},
      {"bit_not", [this] { ~x_; }},
      {"logical_not", [this] { !none_; }},
      {"logical_and", [this] { x_&& other_; }},
      {"logical_or", [this] { x_ || other_; }},
  };
}

// Views, reductions, indexing, products and what is composed of them.
std::vector<Mistake> FunctionNames::of_the_rest() const {
  using List = std::vector<Tensor>;
  return {
      TW_WRONG(reshape, x_, {5}),
      TW_WRONG(reshape, x_, {-1, -1}),
      TW_WRONG(reshape, x_, {-1, 4}),
      TW_WRONG(reshape, x_, {-2, 3}),
      TW_WRONG(reshape, x_, huge_),
      TW_WRONG(transpose, x_, {0, 2}),
      TW_WRONG(transpose, x_, {0, 0}),
      TW_WRONG(transpose, x_, {0}),
      TW_WRONG(swap_axes, x_, 0, 2),
      TW_WRONG(broadcast_to, x_, {2, 4}),
      TW_WRONG(broadcast_to, x_, {3}),
      TW_WRONG(broadcast_to, scalar_, huge_),
      TW_WRONG(broadcast_to, scalar_, {-1}),
      TW_WRONG(unsqueeze, x_, 4),
      TW_WRONG(squeeze, x_, 0),
      TW_WRONG(squeeze, x_, 3),
      TW_WRONG(slice, x_, 2, {}),
      TW_WRONG(slice, x_, 0, {.step = 0}),
      TW_WRONG(select, x_, 1, 3),
      TW_WRONG(select, x_, 2, 0),
      TW_WRONG(pad, x_, 2, 1, 1),
      TW_WRONG(pad, x_, 0, -1, 0),
      TW_WRONG(pad, x_, 0, Index{1} << 62, Index{1} << 62),
      TW_WRONG(concat, List{}, 0),
      TW_WRONG(concat, List{x_, other_}, 0),
      TW_WRONG(concat, List{x_, none_}, 0),
      TW_WRONG(concat, List{x_}, 2),
      TW_WRONG(stack, List{}, 0),
      TW_WRONG(stack, List{x_, other_}, 0),
      TW_WRONG(stack, List{x_, x_}, 4),
      TW_WRONG(split, x_, 0, {1, 2}),
      TW_WRONG(split, x_, 5, {1}),
      TW_WRONG(flip, x_, {2}),
      TW_WRONG(flip, none_, {0}),
      TW_WRONG(flatten, x_, 1, 0),
      TW_WRONG(flatten, x_, 0, 2),
      TW_WRONG(moveaxis, x_, 0, 2),
      TW_WRONG(roll, x_, 1, 2),
      TW_WRONG(repeat, x_, 2, 2),
      TW_WRONG(repeat, x_, -1, 0),
      TW_WRONG(repeat, x_, Index{1} << 62, 0),
      TW_WRONG(repmat, x_, {2, -1}),
      TW_WRONG(repmat, x_, {Index{1} << 62, 4}),
      TW_WRONG(repmat, none_, {2}),
      {"meshgrid", [] { (void)meshgrid({}); }, __FILE__},
      {"meshgrid", [this] { (void)meshgrid({at_, x_}); }, __FILE__},
      {"meshgrid", [this] { (void)meshgrid({at_, none_}); }, __FILE__},
      TW_WRONG(tril, at_),
      TW_WRONG(triu, at_),
      TW_WRONG(triu, none_),
      TW_UNDEFINED(ravel),
      TW_WRONG(sum, x_, {2}),
      TW_WRONG(prod, x_, {2}),
      TW_WRONG(max, x_, {2}),
      TW_WRONG(min, x_, {2}),
      TW_WRONG(any, x_, {2}),
      TW_WRONG(all, x_, {0, 0}),
      TW_WRONG(mean, x_, {2}),
      TW_WRONG(var, x_, {-3}),
      TW_WRONG(max, x_ > 0.f, {2}),
      TW_WRONG(logsumexp, x_, {2}),
      TW_WRONG(std, x_, {2}),
      TW_WRONG(norm, none_),
      TW_WRONG(norm, x_, {2}),
      TW_WRONG(permute_dims, x_, {0, 2}),
      TW_WRONG(expand_dims, x_, 4),
      TW_WRONG(clip, none_, 0, 1),
      TW_WRONG(argmax, x_, 2),
      TW_WRONG(positions, x_, 2),
      TW_WRONG(argmin, x_, 2),
      TW_WRONG(cumsum, x_, 2),
      TW_WRONG(cumprod, x_, -3),
      TW_WRONG(cummax, x_, 2),
      TW_WRONG(cummin, none_, 0),
      TW_WRONG(sort, x_, 2),
      TW_WRONG(sort, scalar_),
      TW_WRONG(argsort, x_, -3),
      TW_WRONG(argsort, none_),
      TW_WRONG(topk, x_, 4),
      TW_WRONG(topk, x_, -1),
      TW_WRONG(topk, x_, 1, 2),
      TW_WRONG(take, x_, x_, 0),
      TW_WRONG(take, x_, at_, 2),
      TW_WRONG(take_along, x_, at_, 0),
      TW_WRONG(take_along, x_, bits_, 4),
      TW_WRONG(scatter_add, at_, other_, 0, {3, 5}),
      TW_WRONG(update_slice, x_, x_, bits_),
      TW_WRONG(dynamic_slice, x_, bits_, Shape{1, 1}),
      TW_WRONG(scatter_add, at_, x_, 3, {3, 3}),
      TW_WRONG(embedding, x_, x_),
      TW_WRONG(embedding, scalar_, at_),
      TW_WRONG(one_hot, x_, 2),
      TW_WRONG(one_hot, at_, -2),
      TW_WRONG(one_hot, at_, Index{1} << 62),
      TW_WRONG(matmul, x_, x_),
      TW_WRONG(matmul, x_, scalar_),
      TW_WRONG(einsum, "ij,jk->ik", x_, x_),
      TW_WRONG(einsum, "ij->i", x_, x_),
      TW_WRONG(grouped_matmul, x_, x_, at_),
      TW_WRONG(ragged_matmul, x_, x_, at_),
      TW_WRONG(masked_matmul, x_, x_, at_),
      TW_WRONG(scaled_matmul, x_, x_, x_, x_),
      TW_WRONG(pack_int4, x_),
      TW_WRONG(unpack_int4, x_),
      TW_WRONG(quantized_matmul, x_, x_, x_),
      TW_WRONG(softmax, x_, 5),
      TW_WRONG(softmax, scalar_),
      TW_WRONG(log_softmax, x_, 5),
      TW_WRONG(layer_norm, scalar_, {}, {}),
      TW_WRONG(layer_norm, x_, other_, {}),
      TW_WRONG(layer_norm, x_, {}, other_),
      TW_WRONG(layer_norm, x_, none_, {}),
      TW_WRONG(rms_norm, scalar_, {}),
      TW_WRONG(rms_norm, x_, other_),
      TW_WRONG(cross_entropy, x_, x_),
      TW_WRONG(cross_entropy, scalar_, at_),
      TW_WRONG(linear_cross_entropy, x_, other_, at_),
      TW_WRONG(linear_cross_entropy, x_, x_, x_),
      TW_WRONG(dropout, x_, scalar_, 0.5),
      TW_WRONG(dropout, x_, scalar_, 2),
      TW_WRONG(uniform, x_, Shape{2}),
      TW_WRONG(uniform, none_, Shape{2}),
  };
}

std::vector<Mistake> FunctionNames::of_attention() const {
  const auto masked = [](MaskFunction mask) { return AttentionOptions{.mask = std::move(mask)}; };
  return {
      TW_WRONG(attention, x_, x_, x_),
      TW_WRONG(attention, h_, none_, h_),
      TW_WRONG(attention, h_, h_, h_, {.dropout = 2}),
      TW_WRONG(attention_with_lse, x_, x_, x_),
      TW_WRONG(attention_with_lse, h_, h_, none_),
      TW_WRONG(attention, h_, h_, h_,
               {.score = [this](const Tensor&, const ScoreIndices&) { return none_; }}),
      TW_WRONG(attention_with_lse, h_, h_, h_, {.mask = [this](const ScoreIndices&) { return x_; }}),
      TW_WRONG(from_pages, x_, at_),
      TW_WRONG(from_pages, none_, at_),
      TW_WRONG(element, none_, {at_}),
      TW_WRONG(element, x_, {at_}),
      TW_WRONG(element, x_, {at_, x_}),
      TW_WRONG(element, x_, {at_, none_}),
      TW_UNDEFINED(prefix_mask),
      TW_UNDEFINED(document_mask),
      TW_UNDEFINED(alibi_score),
      TW_UNDEFINED(bias_score),
      // What the user's own functions do wrong is theirs.
      {"mul", [this, masked] { attention(h_, h_, h_, masked([this](const auto&) { return x_ * other_; })); }},
  };
}

TEST_F(FunctionNames, BeginWhatIsSaidOfMistakes) {
  expect_named(of_operands());
  expect_named(of_the_rest());
  expect_named(of_attention());
}

TEST_F(FunctionNames, AreTriedForEveryFunction) {
  std::set<std::string> tried;
  for (const auto& list : {of_operands(), of_the_rest(), of_attention()})
    for (const Mistake& m : list) tried.insert(m.function);
  for (const char* header :
       {"tensor/functions.h", "tensor/reductions.def", "tensor/scans.def", "tensor/composites.h",
        "tensor/attention.h", "ops/unary.def", "ops/binary.def"}) {
    const std::set<std::string> all = declared(header);
    EXPECT_GT(all.size(), 3u) << header;
    for (const std::string& name : all) EXPECT_EQ(tried.count(name), 1u) << name << " of " << header;
  }
}

TEST_F(FunctionNames, BeginWhatIsSaidOfNewTensors) {
  const Shape below{2, -1};
  expect_named({
      {"empty", [&] { ctx_.empty(huge_); }},
      {"empty", [&] { ctx_.empty(below); }},
      {"zeros", [&] { ctx_.zeros(huge_); }},
      {"zeros", [&] { ctx_.zeros(below); }},
      {"ones", [&] { ctx_.ones(huge_); }},
      {"full", [&] { ctx_.full(huge_, 3); }},
      {"full", [&] { ctx_.full({2}, 256, DType::u8); }},
      {"scalar", [&] { ctx_.scalar(-1, DType::u8); }},
      {"arange", [&] { ctx_.arange(-1); }},
      {"arange", [&] { ctx_.arange(Index{1} << 62); }},
      {"arange", [&] { ctx_.arange(300, DType::u8); }},
      {"arange", [&] { ctx_.arange(0, 5, 0); }},
      {"arange", [&] { ctx_.arange(0., 1., 0.); }},
      {"linspace", [&] { ctx_.linspace(0, 1, Index{1} << 62); }},
      {"linspace", [&] { ctx_.linspace(0, 1, 2, DType::i32); }},
      {"eye", [&] { ctx_.eye(Index{1} << 40, Index{1} << 40); }},
      {"randn", [&] { ctx_.randn(huge_); }},
      {"randn", [&] { ctx_.randn(below); }},
      {"rand", [&] { ctx_.rand(huge_); }},
      {"rand", [&] { ctx_.rand({2}, DType::i32); }},
      {"randint", [&] { ctx_.randint(huge_, 3); }},
      {"randint", [&] { ctx_.randint({2}, 0); }},
      {"from", [&] { ctx_.from(std::vector<float>{1}, huge_); }},
      {"from", [&] { ctx_.from(std::vector<float>{1}, below); }},
      {"from", [&] { ctx_.from(std::vector<float>{1}, {2}); }},
      {"to", [&] { x_.to("npu"); }},
      {"item", [&] { x_.item(); }},
  });
  test::expect_says([&] { ctx_.from(std::vector<float>{1}, huge_); }, {"too many elements for any memory"});
  test::expect_says([&] { reshape(x_, {-1, -1}); }, {"reshape: only one extent may be -1, got [-1,-1]"});
}

TEST_F(FunctionNames, BeginWhatIsSaidOfMemory) {
  const Index most = Index{1} << 46;
  for (const Mistake& m : std::vector<Mistake>{{"zeros", [&] { ctx_.zeros({most}); }},
                                               {"broadcast_to", [&] { broadcast_to(scalar_, {most}); }}}) {
    try {
      m.make();
      ADD_FAILURE() << m.function;
    } catch (const OutOfMemory& e) {
      EXPECT_TRUE(std::string(e.what()).starts_with(m.function + ": f32[")) << e.what();
    }
  }
}

}  // namespace
}  // namespace tilewright
