// Groups have one form exactly where they are equal but for the names of their nodes.
#include "passes/fuse/group_form.h"

#include "ir/text.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace tilewright::passes {
namespace {

ir::Graph layers_graph(const std::string& text) { return ir::parse(text, ops::all_ops()).value(); }

// Two layers: the second reads what the first gives and buffers of its own.
const char* const kTanhLayers = R"(graph @g(%a: f32[8,16], %b: f32[16], %c: f32[16]) -> (f32[8,16]) {
  %3 = reshape %b {shape=[1,16]} : f32[1,16]
  %4 = expand %3 {shape=[8,16]} : f32[8,16]
  %5 = mul %a, %4 : f32[8,16]
  %6 = tanh %5 : f32[8,16]
  %7 = reshape %c {shape=[1,16]} : f32[1,16]
  %8 = expand %7 {shape=[8,16]} : f32[8,16]
  %9 = mul %6, %8 : f32[8,16]
  %10 = tanh %9 : f32[8,16]
  return %10
}
)";

TEST(GroupForm, EqualLayersHaveOne) {
  const ir::Graph graph = layers_graph(kTanhLayers);
  GroupForms forms(graph);
  const GroupForm first = forms.of({.nodes = {5, 6}, .outputs = {6}}),
                  second = forms.of({.nodes = {9, 10}, .outputs = {10}});
  EXPECT_EQ(first.key, second.key);
  EXPECT_EQ(first.nodes, (std::vector<ir::NodeId>{5, 6, 0, 4, 3, 1}));
  EXPECT_EQ(second.nodes, (std::vector<ir::NodeId>{9, 10, 6, 8, 7, 2}));
}

TEST(GroupForm, TellsApartWhatIsStoredAndHow) {
  const ir::Graph graph = layers_graph(kTanhLayers);
  GroupForms forms(graph);
  const Hash128 key = forms.price_key_of({.nodes = {5, 6}, .outputs = {6}});
  EXPECT_NE(key, forms.price_key_of({.nodes = {5, 6}, .outputs = {5, 6}}));
  EXPECT_NE(key, forms.price_key_of({.nodes = {5, 6}, .outputs = {6}, .epilogue_reductions = true}));
  EXPECT_NE(key, forms.price_key_of({.nodes = {5, 6, 9}, .outputs = {9}}));
  EXPECT_EQ(forms.price_key_of({.nodes = {5}, .outputs = {5}}),
            forms.price_key_of({.nodes = {9}, .outputs = {9}}));
}

// Sums of products, each of which differs from the first in one thing.
TEST(GroupForm, TellsApartTypesAttributesAndSharedBuffers) {
  const ir::Graph graph = layers_graph(
      R"(graph @g(%a: f32[8,8], %b: f32[8,8], %c: bf16[8,8]) -> (f32[8], f32[8], f32[8], bf16[8], f32[8], f32[8]) {
  %3 = mul %a, %b : f32[8,8]
  %4 = sum %3 {axes=[1]} : f32[8]
  %5 = sum %3 {axes=[0]} : f32[8]
  %6 = mul %a, %a : f32[8,8]
  %7 = sum %6 {axes=[1]} : f32[8]
  %8 = mul %c, %c : bf16[8,8]
  %9 = sum %8 {axes=[1]} : bf16[8]
  %10 = transpose %b {perm=[1,0]} : f32[8,8]
  %11 = mul %a, %10 : f32[8,8]
  %12 = sum %11 {axes=[1]} : f32[8]
  %13 = mul %b, %a : f32[8,8]
  %14 = sum %13 {axes=[1]} : f32[8]
  return %4, %5, %7, %9, %12, %14
}
)");
  GroupForms forms(graph);
  const auto key = [&](ir::NodeId product, ir::NodeId sum) {
    return forms.price_key_of({.nodes = {product, sum}, .outputs = {sum}});
  };
  EXPECT_NE(key(3, 4), key(3, 5)) << "other axes";
  EXPECT_NE(key(3, 4), key(6, 7)) << "one buffer twice";
  EXPECT_NE(key(6, 7), key(8, 9)) << "another type";
  EXPECT_NE(key(3, 4), key(11, 12)) << "a view between";
  EXPECT_EQ(key(3, 4), key(13, 14)) << "two buffers, whichever they are";
}

}  // namespace
}  // namespace tilewright::passes
