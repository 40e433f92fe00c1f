// Attention by name: softmax(scale · q · kᵀ, under score and mask functions) · v for each head. A composition
// of plain operations, which the compiler makes one kernel of; nothing of the size of the scores is stored.
// The functions are those of FlexAttention (Dong et al., arXiv 2412.05496): they compute with indices, so
// that what they need is arithmetic in the kernel.
#pragma once

#include <tilewright/base/any_function.h>
#include <tilewright/tensor/functions.h>

#include <optional>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright {

// Where scores stand, as i64 tensors that broadcast to their shape (B, H, Tq, Tk): the sequence (B, 1, 1, 1),
// the query head (1, H, 1, 1), the query (Tq, 1) and the key (Tk).
struct ScoreIndices {
  Tensor batch, head, query, key;
};
// Scores in the place of the scores given, f32 (f64 for f64 operands): any float tensor that broadcasts to
// their shape. May use captured tensors, into which gradients flow.
using ScoreFunction = AnyFunction<Tensor(const Tensor& score, const ScoreIndices& at)>;
// bool, broadcasts to the scores' shape: true where the query attends to the key. A key that no query of its
// sequence sees, nor any head that shares it, is never multiplied: k and v may hold NaN and infinities there,
// and results and all gradients are those of zeros in their place (d k and d v are 0 there). This holds for
// every mask: causal ones and windows with more keys than queries reach, lengths, documents, tensors of
// bools, all_of() and any_of() of them, caches in pages. A key that some query sees is data to all of them:
// tensor cores multiply it with the weight 0 of the queries that do not see it, so that a NaN in it may reach
// these, as in PyTorch. Which keys are seen costs nothing where comparisons of positions say it, or where
// each query sees the key of its own number; else it is a reduction of the mask over the queries.
using MaskFunction = AnyFunction<Tensor(const ScoreIndices& at)>;

struct AttentionOptions {
  std::optional<double> scale = {};  // of q · kᵀ; 1/√D unless given
  ScoreFunction score = {};
  MaskFunction mask = {};  // applied after the score function
  double dropout = 0;      // probability in [0, 1) with which a weight is dropped; the rest is scaled up
  std::optional<Tensor> seed = {};  // i64[]: of the dropout; the same seed drops the same weights
};

// q (B, H, Tq, D), k (B, Hkv, Tk, D), v (B, Hkv, Tk, Dv) of one float type give (B, H, Tq, Dv) of that type,
// of 8-bit floats in f32. H is a multiple of Hkv: every H / Hkv query heads, one after another, share a head
// of k and v. Tq and Tk may differ. Query i and key j carry the numbers i and j whatever the lengths: where
// the last query stands at the last key, masks take the offset Tk - Tq. A row with nothing to attend gives 0,
// no gradient reaches its q, and q may hold NaN and infinities there; with D = 0 all scores are 0. Weights
// are rounded to v's type before they are multiplied with it: of 8-bit floats to 2 or 3 bits of mantissa,
// scaled so that they use the type's range, as inference takes it; gradients through them are of 8 bits as
// well. Throws Error on shapes or types that do not fit, on a mask that is not bool, on results of the
// functions that do not broadcast, and on dropout outside [0, 1) or without a seed. Results and gradients are
// the same bits in every run on a device; those of tensors that score functions read by index are so with
// CompileOptions::deterministic.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {},
                 const Location& where = Location::current());
// The same, with log Σ exp(scores) of each row (B, H, Tq) in f32 (f64 for f64 operands): -inf where nothing
// is attended.
std::pair<Tensor, Tensor> attention_with_lse(const Tensor& q, const Tensor& k, const Tensor& v,
                                             const AttentionOptions& options = {},
                                             const Location& where = Location::current());

// Caches in pages (as of vLLM, Kwon et al., arXiv 2309.06180): pages (P, S, Hkv, D) of S positions each, in
// any order, and table (B, N) of integers, which pages are a sequence's, one after another, give its keys or
// values (B, Hkv, N · S, D) for attention(); with prefix_mask(lengths) the rest of a last page is not seen.
// Entries that name no page read 0. Inside compile() nothing is gathered: where S is a multiple of 8,
// attention reads each block from its page; of other sizes, and outside of compile(), this is a copy. Throws
// Error on ranks and types that do not fit.
Tensor from_pages(const Tensor& pages, const Tensor& table, const Location& where = Location::current());

// table[i0, i1, …] at every place of the integer indices, one for each axis, which broadcast. Outside an axis
// it reads 0. For captured tensors in score and mask functions: element(ids, {at.batch, at.query}).
Tensor element(const Tensor& table, const std::vector<Tensor>& indices,
               const Location& where = Location::current());

// --- masks and scores. Tensors that they take are read by index; attention() throws Error, naming the line
// on which the function was made, where one has not a value for each head, sequence or position.

// `offset`: the number of the first query among the keys, Tk - Tq where both end together.
MaskFunction causal_mask(Index offset = 0);  // keys up to the query's own place
MaskFunction window_mask(Index before, Index after = 0, Index offset = 0);  // and so many to either side
MaskFunction prefix_mask(Index length);                                     // the first keys
// (B): as many as each sequence has
MaskFunction prefix_mask(const Tensor& lengths, const Location& where = Location::current());
// (T) or (B, T), T at least Tq and Tk: keys of the query's own document
MaskFunction document_mask(const Tensor& ids, const Location& where = Location::current());
MaskFunction document_mask(const Tensor& query_ids, const Tensor& key_ids,
                           const Location& where = Location::current());
// Keys that all of these masks, at least one of them, let a query see, and keys that any of them does; throws
// Error where there are no masks.
MaskFunction all_of(const std::vector<MaskFunction>& masks, const Location& where = Location::current());
MaskFunction any_of(const std::vector<MaskFunction>& masks, const Location& where = Location::current());

// ALiBi (Press et al., arXiv 2108.12409): plus slope · (key - query), a slope for each head: (H).
ScoreFunction alibi_score(const Tensor& slopes, Index offset = 0,
                          const Location& where = Location::current());
ScoreFunction soft_cap_score(double cap);  // cap · tanh(score / cap)
// Plus a tensor that broadcasts to the scores' shape: (Tq, Tk), (H, Tq, Tk), (B, 1, Tq, Tk) …
ScoreFunction bias_score(const Tensor& bias, const Location& where = Location::current());
ScoreFunction chain(const std::vector<ScoreFunction>& scores);  // one after another

}  // namespace tilewright
#pragma GCC visibility pop
