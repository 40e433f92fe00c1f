// Masks and scores whose data does not cover the sequences, heads or positions: what lies outside would read
// 0 and be taken for a document, a length or a slope.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include "support/errors.h"

namespace tilewright {
namespace {

class AttentionErrors : public ::testing::Test {
 protected:
  Context ctx_{{.device = "reference", .cache_directory = ""}};
  const Tensor q_ = ctx_.ones({2, 4, 6, 8}), k_ = ctx_.ones({2, 2, 9, 8});
  const std::string here_ = "attention_errors_test.cpp:";

  Tensor ids(const Shape& shape) { return ctx_.zeros(shape, DType::i64); }
  void refuses(const AttentionOptions& options, const std::vector<std::string>& parts) {
    std::vector<std::string> all = parts;
    all.push_back(here_);
    all.push_back("for scores [2,4,6,9]");
    test::expect_says([&] { attention(q_, k_, k_, options); }, all);
  }
  void takes(const AttentionOptions& options) {
    EXPECT_EQ(attention(q_, k_, k_, options).shape(), Shape({2, 4, 6, 8}));
  }
};

TEST_F(AttentionErrors, DocumentsOfOtherPositions) {
  refuses({.mask = document_mask(ids({8}))}, {"document_mask", "i64[8]"});
  refuses({.mask = document_mask(ids({3, 9}))}, {"document_mask", "i64[3,9]"});
  refuses({.mask = document_mask(ids({5}), ids({9}))}, {"document_mask", "i64[5]"});
  refuses({.mask = document_mask(ids({}))}, {"document_mask", "i64[]"});
  refuses({.mask = all_of({causal_mask(), document_mask(ids({2, 2, 9}))})}, {"document_mask", "i64[2,2,9]"});
  takes({.mask = document_mask(ids({9}))});
  takes({.mask = document_mask(ids({2, 6}), ids({9}))});
}

TEST_F(AttentionErrors, EmptyFunctions) {
  test::expect_says([&] { attention(q_, k_, k_, {.mask = all_of({causal_mask(), MaskFunction{}})}); },
                    {"all_of: mask 1", "empty", here_});
  test::expect_says([&] { attention(q_, k_, k_, {.score = chain({ScoreFunction{}})}); },
                    {"score function 0 is empty", here_});
}

TEST_F(AttentionErrors, LengthsOfOtherSequences) {
  refuses({.mask = prefix_mask(ids({3}))}, {"prefix_mask", "i64[3]"});
  refuses({.mask = prefix_mask(ids({1}))}, {"prefix_mask", "i64[1]"});
  refuses({.mask = prefix_mask(ids({}))}, {"prefix_mask", "i64[]"});
  takes({.mask = prefix_mask(ids({2}))});
}

TEST_F(AttentionErrors, SlopesAndBiasesOfOtherHeads) {
  refuses({.score = alibi_score(ctx_.ones({3}))}, {"alibi_score", "f32[3]"});
  refuses({.score = alibi_score(ctx_.ones({2, 4}))}, {"alibi_score", "f32[2,4]"});
  refuses({.score = bias_score(ctx_.ones({3, 6, 9}))}, {"bias_score", "f32[3,6,9]"});
  refuses({.score = chain({soft_cap_score(5), bias_score(ctx_.ones({6, 8}))})}, {"bias_score", "f32[6,8]"});
  takes({.score = chain({alibi_score(ctx_.ones({4})), bias_score(ctx_.ones({6, 9}))})});
}

}  // namespace
}  // namespace tilewright
