// What the pairs around attention are made of: sizes and a mask give the inputs, the program by name, the
// program as it is written without one, and what peers are told.
#pragma once

#include <tilewright/tensor/attention.h>

#include "pairs/attention_reference.h"

namespace tilewright::lab {

// Query i stands at key i + keys - queries. What is stated holds together: a window of documents, say.
struct AttentionMask {
  bool causal = false;                // keys up to the query's own place
  Index window = 0;                   // of these the last so many; 0: all
  std::vector<Index> documents = {};  // of each position its document, one after another; empty: one
  std::vector<Index> lengths = {};    // keys that are there, by sequence; empty: all
  bool none() const { return !causal && window == 0 && documents.empty() && lengths.empty(); }
  std::string text() const;  // " causal", " window 1024", " 12 documents causal"; empty for none
};
// One for all sequences, or one for each where these have lengths of their own.
std::vector<SeenKeys> seen_keys(const AttentionSizes& s, const AttentionMask& mask);
// Lengths that add up to `length`, cut at `count` - 1 random places: of each position its document.
std::vector<Index> random_documents(Index length, Index count, Index seed);
// `count` lengths, drawn evenly from `shortest` to `longest`.
std::vector<Index> random_lengths(Index count, Index shortest, Index longest, Index seed);

struct AttentionWork {
  std::string target;
  AttentionSizes sizes = {};
  AttentionMask mask = {};
  DType dtype = DType::f32;
  std::string unit = "GFLOP/s";
};
// Throws Error, naming the pair, on sizes below 1, heads that are no multiple of those of k and v, and masks
// that leave a query nothing.
void check_attention_work(const AttentionWork& work);

// Inputs q, k, v, and with a mask the places of queries and of keys, then documents and lengths where there
// are some.
std::vector<InputSpec> attention_inputs(const AttentionWork& work);
// The program's mask function; empty for none. `in`: the inputs as they come to the program.
MaskFunction mask_function(const AttentionWork& work, const std::vector<Tensor>& in);
// The scores with -inf where the mask is false, by plain ops: what eager programs do.
Tensor masked(const Tensor& scores, const AttentionWork& work, const std::vector<Tensor>& in);
// k or v (B, Hkv, K, D) with each head as often as query heads share it.
Tensor repeat_heads(const Tensor& x, Index heads);
std::vector<std::pair<std::string, std::string>> attention_parameters(const AttentionWork& work);

// The shape's text without lengths: "B1 H48 D64 causal".
std::string attention_series(const AttentionWork& work);

// The forward pass as a workload: y (B, H, Q, D).
TensorWorkload attention_workload(const AttentionWork& work);

// The knobs of several pairs.
Knob causal_knob(std::string value);
Knob batch_knob(Index value);
std::vector<Knob> head_knobs(Index heads, Index cuda_heads, Index depth, Index cuda_depth);
// A work of no mask, with `batch`, `heads`, `kv_heads` (0: as many as heads), `depth` and `dtype` of the
// knobs.
AttentionWork attention_work(std::string target, const Knobs& knobs, Index queries, Index keys);

}  // namespace tilewright::lab
