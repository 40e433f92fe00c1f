// Attention over caches whose pages lie in any order: values against the host's, and that nothing is
// gathered.
#include "compile/attention_problem.h"

namespace tilewright {
namespace {

using test::on_the_host;
using test::Problem;
using test::Sizes;

class PagedAttention : public test::AttentionProblems {};

// Pages of a cache in any order, of which each sequence sees as many keys as it has.
TEST_P(PagedAttention, ReadsCachesInPages) {
  const Sizes s{2, 4, 2, 1, 192, 32, 32};
  const std::vector<Index> lengths = {150, 0};
  Problem p = problem(s);
  p.mask = [&](Index b, Index, Index, Index k) { return k < lengths[static_cast<std::size_t>(b)]; };
  constexpr Index kPage = 32;
  const Index kv = s.heads / s.shared, pages = s.keys / kPage;
  std::vector<std::int32_t> order(static_cast<std::size_t>(s.batch * pages));
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<std::int32_t>((i * 5 + 3) % order.size());
  const auto scattered = [&](const std::vector<float>& whole) {  // (B, H, T, D) to (P, page, H, D)
    std::vector<float> out(whole.size());
    for (Index b = 0; b < s.batch; ++b)
      for (Index h = 0; h < kv; ++h)
        for (Index k = 0; k < s.keys; ++k)
          for (Index d = 0; d < s.depth; ++d) {
            const Index page = order[static_cast<std::size_t>(b * pages + k / kPage)];
            out[static_cast<std::size_t>(((page * kPage + k % kPage) * kv + h) * s.depth + d)] =
                whole[static_cast<std::size_t>(((b * kv + h) * s.keys + k) * s.depth + d)];
          }
    return ctx_.from(out, {s.batch * pages, kPage, kv, s.depth});
  };
  const Tensor q = ctx_.from(p.q, {s.batch, s.heads, s.queries, s.depth}), k = scattered(p.k),
               v = scattered(p.v), table = ctx_.from(order, {s.batch, pages}), of = ctx_.from(lengths, {2});
  const auto f = compile([&](const Tensor& a, const Tensor& b, const Tensor& c) {
    return attention(a, from_pages(b, table), from_pages(c, table), {.mask = prefix_mask(of)});
  });
  const std::vector<double> want = on_the_host(p).out;
  near(f(q, k, v).to_vector<float>(), want, 4e-6);
  EXPECT_EQ(f.explain().find("kernel take_0"), std::string::npos)
      << "pages are gathered first: " << f.explain();
  near(attention(q, from_pages(k, table), from_pages(v, table), {.mask = prefix_mask(of)}).to_vector<float>(),
       want, 4e-6);
  EXPECT_THROW(from_pages(q, of), Error);
  EXPECT_THROW(from_pages(table, table), Error);
  EXPECT_THROW(from_pages(k, cast(table, DType::f32)), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, PagedAttention, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
