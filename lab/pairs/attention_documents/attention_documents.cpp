// attention_documents: several documents of random lengths in one sequence; a query sees keys of its own.
// Which blocks of keys that leaves is data: the documents' ids.
#include "pairs/attention_work.h"
#include "pairs/pairs.h"

namespace tilewright::lab {

namespace {

Result<PairInstance> make_attention_documents(const Knobs& knobs, LabDevice& device) {
  const Index length = knobs.integer("length"), count = knobs.integer("documents");
  if (length < 1 || count < 1 || count > length)
    throw Error("attention_documents: wants at least one document, and a position for each");
  AttentionWork work = attention_work("attention_documents", knobs, length, length);
  work.mask.causal = knobs.text("causal") == "yes";
  work.mask.documents = random_documents(length, count, knobs.integer("seed"));
  return make_instance(attention_workload(work), device);
}

}  // namespace

Pair attention_documents_pair() {
  std::vector<Knob> knobs = {batch_knob(1)};
  for (Knob& knob : head_knobs(4, 16, 64, 128)) knobs.push_back(std::move(knob));
  knobs.push_back({.name = "length",
                   .values = {Index{4096}},
                   .doc = "positions of all documents",
                   .cuda_values = {Index{16384}}});
  knobs.push_back({.name = "documents", .values = {Index{12}}, .doc = "documents"});
  knobs.push_back({.name = "seed", .values = {Index{1}}, .doc = "of where they begin", .least = 0});
  knobs.push_back(causal_knob("yes"));
  knobs.push_back(product_dtype_knob());
  return {.name = "attention_documents",
          .doc = "attention within each of several documents",
          .knobs = std::move(knobs),
          .make = make_attention_documents,
          .tiny = {{"heads=2", "length=150", "documents=1,5,150", "depth=16", "causal=no,yes"},
                   {"heads=2", "length=150", "depth=16", "dtype=bf16"}},
          .suites = {{"products", {"length=1024"}}}};
}

}  // namespace tilewright::lab
