// grouped_gemm: rows that belong to groups, each multiplied by its group's matrix, as a mixture of experts
// does. contiguous: the groups' rows lie one after another in blocks of 128; ragged: one after another, and
// end anywhere; masked: each group has room for as many rows, and uses some. Which rows are whose is data.
#include <algorithm>
#include <cmath>
#include <random>

#include "pairs/error_scale.h"
#include "pairs/pairs.h"
#include "pairs/product.h"

namespace tilewright::lab {

namespace {

constexpr Index kBlockRows = 128;  // as DeepGEMM's contiguous layout aligns groups on Hopper

enum class Form { contiguous, ragged, masked };

struct GroupedSizes {
  Index groups, rows, n, k;
  Form form;
  // contiguous: each block's group, ascending; ragged: where each group ends; masked: the rows each group
  // uses
  std::vector<Index> which;

  bool masked() const { return form == Form::masked; }
  Index room() const { return masked() ? rows / groups : kBlockRows; }
  // Rows that belong together: blocks, or groups.
  Index blocks() const { return form == Form::contiguous ? rows / kBlockRows : groups; }
  Index at(Index block) const { return which[static_cast<std::size_t>(block)]; }
  Index group_of(Index block) const { return form == Form::contiguous ? at(block) : block; }
  Index first(Index block) const {
    return form != Form::ragged ? block * room() : block == 0 ? Index{0} : at(block - 1);
  }
  Index used(Index block) const {
    return form == Form::contiguous ? kBlockRows : masked() ? at(block) : at(block) - first(block);
  }
  Shape x_shape() const { return masked() ? Shape{groups, room(), k} : Shape{rows, k}; }
  Shape y_shape() const { return masked() ? Shape{groups, room(), n} : Shape{rows, n}; }
};

GroupedSizes sizes_of(const Knobs& knobs) {
  GroupedSizes s{.groups = knobs.integer("groups"),
                 .rows = knobs.integer("rows"),
                 .n = knobs.integer("n"),
                 .k = knobs.integer("k"),
                 .form = knobs.text("form") == "masked"   ? Form::masked
                         : knobs.text("form") == "ragged" ? Form::ragged
                                                          : Form::contiguous};
  if (std::min({s.groups, s.rows, s.n, s.k}) < 1) throw Error("grouped_gemm: sizes are at least 1");
  if (s.form != Form::ragged && s.rows % (s.masked() ? s.groups : kBlockRows) != 0)
    throw Error("grouped_gemm: rows are a multiple of 128, or of the groups with form=masked");
  std::mt19937_64 random(static_cast<std::uint64_t>(knobs.integer("seed")));
  const Index below = s.masked() ? s.room() + 1 : s.form == Form::ragged ? s.rows + 1 : s.groups;
  for (Index i = 0; i < s.blocks(); ++i)
    s.which.push_back(static_cast<Index>(random() % static_cast<std::uint64_t>(below)));
  if (!s.masked()) std::sort(s.which.begin(), s.which.end());
  if (s.form == Form::ragged) s.which.back() = s.rows;
  return s;
}

// Separate calls: a product for each group, of the rows that the program knows to be the group's.
Tensor one_by_one(const std::vector<Tensor>& in, const GroupedSizes& s) {
  std::vector<Tensor> parts;
  for (Index first = 0; first < s.blocks();) {
    Index last = first;
    while (last < s.blocks() && s.group_of(last) == s.group_of(first)) ++last;
    const Tensor x = slice(in[0], 0, {s.first(first), s.first(last - 1) + s.used(last - 1)});
    parts.push_back(matmul(x, select(in[1], 0, s.group_of(first))));
    first = last;
  }
  return parts.size() == 1 ? parts[0] : concat(parts, 0);
}

std::vector<Reference> grouped_reference(const HostArrays& in, const GroupedSizes& s, const ErrorScale& scale,
                                         ThreadPool& pool) {
  std::vector<HostArray> norms(static_cast<std::size_t>(s.groups));  // of the columns of each matrix
  for_rows(pool, s.groups, [&](Index g) {
    norms[static_cast<std::size_t>(g)] = column_norms(in[1].data() + g * s.k * s.n, s.k, s.n);
  });
  const HostArray x_norms = row_norms(in[0], s.k, pool);
  const auto size = static_cast<std::size_t>(s.rows * s.n);
  Reference y{HostArray(size), HostArray(size)};
  for_rows(pool, s.blocks(), [&](Index b) {
    const Index g = s.group_of(b), first = s.first(b), used = s.used(b);
    host_matmul({in[0].data() + first * s.k, in[1].data() + g * s.k * s.n, y.values.data() + first * s.n,
                 used, s.n, s.k, s.k, s.n, s.n});
    for (Index r = first; r < first + used; ++r)
      for (Index c = 0; c < s.n; ++c) {
        const auto at = static_cast<std::size_t>(r * s.n + c);
        y.magnitude[at] = scale(std::fabs(y.values[at]),
                                x_norms[static_cast<std::size_t>(r)] *
                                    norms[static_cast<std::size_t>(g)][static_cast<std::size_t>(c)]);
      }
  });
  return {std::move(y)};
}

// What must be moved and computed: the rows that are used, and the matrices that are.
perf::Cost cost(const GroupedSizes& s, DType dtype) {
  double rows = 0;
  std::vector<bool> taken(static_cast<std::size_t>(s.groups));
  for (Index b = 0; b < s.blocks(); ++b) {
    rows += static_cast<double>(s.used(b));
    if (s.used(b) > 0) taken[static_cast<std::size_t>(s.group_of(b))] = true;
  }
  const double k = static_cast<double>(s.k), n = static_cast<double>(s.n),
               bytes = static_cast<double>(size_bytes(dtype));
  perf::Cost cost;
  cost.matrix[dtype] = 2 * rows * n * k;
  cost.bytes_read =
      bytes * k * (rows + n * static_cast<double>(std::count(taken.begin(), taken.end(), true)));
  cost.bytes_written = bytes * n * static_cast<double>(s.rows);
  return cost;
}

Result<PairInstance> make_grouped_gemm(const Knobs& knobs, LabDevice& device) {
  const GroupedSizes s = sizes_of(knobs);
  const DType dtype = knobs.dtype("dtype");
  TensorWorkload w{.target = "grouped_gemm",
                   .shape = shape_text(Shape{s.rows, s.n, s.k}) + " G" + std::to_string(s.groups) + " " +
                            knobs.text("form"),
                   .dtype = std::string(name(dtype))};
  w.inputs = {normal_input("x", s.x_shape(), dtype), normal_input("w", Shape{s.groups, s.k, s.n}, dtype)};
  w.inputs.push_back({"which", DType::i64, Shape{static_cast<Index>(s.which.size())},
                      [which = s.which](Context& context) {
                        return context.from(which, {static_cast<Index>(which.size())});
                      },
                      false});
  w.outputs = {{"y", dtype, s.y_shape(), {.storage = dtype, .reduction = s.k}}};
  w.cost = cost(s, dtype);
  w.unit = "GFLOP/s";
  w.function = [s](const std::vector<Tensor>& in) {
    return std::vector{s.masked()               ? masked_matmul(in[0], in[1], in[2])
                       : s.form == Form::ragged ? ragged_matmul(in[0], in[1], in[2])
                                                : grouped_matmul(in[0], in[1], in[2])};
  };
  if (!s.masked()) w.eager = [s](const std::vector<Tensor>& in) { return std::vector{one_by_one(in, s)}; };
  w.peer_parameters = {{"form", knobs.text("form")}};
  const ErrorScale scale(w.outputs[0].rule, s.y_shape().size());
  w.reference = [s, scale](const HostArrays& in, ThreadPool& pool) {
    return grouped_reference(in, s, scale, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair grouped_gemm_pair() {
  return {.name = "grouped_gemm",
          .doc = "rows times their group's matrix",
          .knobs = {{.name = "form",
                     .values = {std::string("contiguous"), std::string("masked")},
                     .doc = "groups one after another in blocks of 128 rows, or of any length, or each with "
                            "room of its own",
                     .choices = {std::string("contiguous"), std::string("ragged"), std::string("masked")}},
                    {.name = "groups", .values = {Index{4}}, .doc = "matrices", .cuda_values = {Index{8}}},
                    {.name = "rows",
                     .values = {Index{2048}},
                     .doc = "rows of all groups, or room for them",
                     .cuda_values = {Index{32768}}},
                    {.name = "n", .values = {Index{512}}, .doc = "columns", .cuda_values = {Index{4096}}},
                    {.name = "k", .values = {Index{512}}, .doc = "depth", .cuda_values = {Index{7168}}},
                    {.name = "seed", .values = {Index{1}}, .doc = "of whose rows are which", .least = 0},
                    product_dtype_knob()},
          .make = make_grouped_gemm,
          .tiny = {{"form=contiguous", "groups=3", "rows=640", "n=37", "k=53", "dtype=f32,bf16"},
                   {"form=ragged", "groups=3", "rows=300", "n=37", "k=53", "dtype=f32,bf16"},
                   {"form=masked", "groups=3", "rows=120", "n=37", "k=53", "dtype=f32,bf16"}},
          .suites = {{"products", {"rows=512", "n=256", "k=128"}}}};
}

}  // namespace tilewright::lab
