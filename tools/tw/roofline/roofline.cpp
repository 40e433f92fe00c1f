// tw roofline: how long a workload takes at least and at most on a machine, and what limits it.
#include <fmt/format.h>

#include "tw/command/commands.h"
#include "tw/command/number_checks.h"
#include "tw/roofline/roofline_input.h"

namespace tilewright::tw {

namespace {

std::vector<Fact> matmul_facts(const perf::Matmul& w, const perf::Hardware& hardware) {
  const auto batch = critical_batch(w, hardware);
  const auto limit = critical_batch_limit(w, hardware);
  const auto depth = critical_depth(w, hardware);
  std::string line;
  if (depth) line = fmt::format("from d = {:.1f}, whatever b and f", *depth);
  if (limit) {
    const std::string exact = batch ? fmt::format("from b = {:.1f}", *batch) : "at no b";
    line = fmt::format("{} with this d and f; from b = {:.1f} where d and f are much larger", exact, *limit);
  }
  return {{"critical_b", limit, line}, {"critical_b_exact", batch, {}}, {"critical_d", depth, {}}};
}

void add_matmul(CLI::App& roofline) {
  CLI::App* sub = nullptr;
  auto in = add_workload<perf::Matmul>(roofline, "matmul",
                                       "[B,D] x [D,F] -> [B,F], on one chip or split along D", sub);
  perf::Matmul& w = in->work;
  add_extent(sub, "b", w.b, "Rows of the first operand: the batch")->required();
  add_extent(sub, "d", w.d, "Inner extent")->required();
  add_extent(sub, "f", w.f, "Columns of the result")->required();
  add_types(sub, *in);
  add_extent(sub, "chips", w.chips, "Chips that D is split over; the results are summed over the link");
  sub->add_option("--link", in->options.link,
                  "Bytes/s of the link in one direction instead of the hardware's")
      ->check(positive());
  sub->callback([in] {
    perf::Matmul& work = in->work;
    set_types(*in);
    answer({.work = "matmul",
            .describe =
                [&work] {
                  const std::string chips =
                      work.chips > 1 ? fmt::format(", d split over {} chips", work.chips) : "";
                  return fmt::format("{}[{},{}] x {}[{},{}], math {}{}", name(work.activations), work.b,
                                     work.d, name(work.weights), work.d, work.f, name(work.math), chips);
                },
            .extents = {{"b", &work.b}, {"d", &work.d}, {"f", &work.f}, {"chips", &work.chips}},
            .settings = type_settings(work),
            .cost = [&work] { return cost(work); },
            .facts = [&work](const perf::Hardware& hardware) { return matmul_facts(work, hardware); }},
           in->options);
  });
}

void add_dot(CLI::App& roofline) {
  CLI::App* sub = nullptr;
  auto in = add_workload<perf::Dot>(roofline, "dot", "[N] . [N] -> [1] on the vector unit", sub);
  add_extent(sub, "n", in->work.n, "Elements of each vector")->required();
  sub->add_option("--dtype", in->dtype, "Element type (default bf16)")->type_name("DTYPE");
  sub->callback([in] {
    perf::Dot& work = in->work;
    work.dtype = dtype_or(in->dtype, work.dtype);
    answer({.work = "dot",
            .describe = [&work] { return fmt::format("{0}[{1}] . {0}[{1}]", name(work.dtype), work.n); },
            .extents = {{"n", &work.n}},
            .settings = {{"dtype", std::string(name(work.dtype))}},
            .cost = [&work] { return cost(work); },
            .facts = {}},
           in->options);
  });
}

void add_batched_matvec(CLI::App& roofline) {
  CLI::App* sub = nullptr;
  auto in = add_workload<perf::BatchedMatvec>(
      roofline, "batched-matvec",
      "[B,D] x [B,D,F] -> [B,F]: a matrix of its own for each element of the batch", sub);
  perf::BatchedMatvec& w = in->work;
  add_extent(sub, "b", w.b, "Elements of the batch")->required();
  add_extent(sub, "d", w.d, "Inner extent")->required();
  add_extent(sub, "f", w.f, "Columns of each matrix")->required();
  add_types(sub, *in);
  sub->callback([in] {
    perf::BatchedMatvec& work = in->work;
    set_types(*in);
    answer({.work = "batched-matvec",
            .describe =
                [&work] {
                  return fmt::format("{}[{},{}] x {}[{},{},{}], math {}", name(work.activations), work.b,
                                     work.d, name(work.weights), work.b, work.d, work.f, name(work.math));
                },
            .extents = {{"b", &work.b}, {"d", &work.d}, {"f", &work.f}},
            .settings = type_settings(work),
            .cost = [&work] { return cost(work); },
            .facts =
                [](const perf::Hardware&) {
                  return std::vector<Fact>{{"critical_b", {}, "at no b: every matrix is used once"}};
                }},
           in->options);
  });
}

struct PlainWork {
  double flops = 0, bytes = 0;
};

void add_work(CLI::App& roofline) {
  CLI::App* sub = nullptr;
  auto in = add_workload<PlainWork>(roofline, "work",
                                    "So many FLOPs of matrix math and bytes of memory traffic", sub);
  sub->add_option("--flops", in->work.flops, "Operations; a multiply-add is two")
      ->required()
      ->check(not_negative());
  sub->add_option("--bytes", in->work.bytes, "Bytes read or written")->check(not_negative());
  sub->add_option("--math", in->math, "Element type (default bf16)")->type_name("DTYPE");
  sub->callback([in] {
    const DType math = dtype_or(in->math, DType::bf16);
    answer({.work = "work",
            .describe = [math] { return fmt::format("{} matrix math", name(math)); },
            .extents = {},
            .settings = {{"math", std::string(name(math))}},
            .cost =
                [in, math] {
                  perf::Cost c;
                  c.matrix[math] = in->work.flops;
                  c.bytes_read = in->work.bytes;
                  return c;
                },
            .facts = {}},
           in->options);
  });
}

void add_table(CLI::App& roofline) {
  struct TableInput {
    std::string name;
    OutputOptions output;
  };
  auto in = std::make_shared<TableInput>();
  CLI::App* sub =
      roofline.add_subcommand("table", "The figures of all known hardware, or of one, with their sources");
  sub->add_option("name", in->name, "Hardware (default: all)")->type_name("MACHINE");
  add_output_options(*sub, in->output, "a list, an object for each machine");
  sub->callback([in] { write_hardware_table(in->name, in->output); });
}

}  // namespace

void add_roofline(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("roofline", "The least and the most time a workload takes on a machine");
  sub->require_subcommand(1);
  add_matmul(*sub);
  add_dot(*sub);
  add_batched_matvec(*sub);
  add_tiled(*sub);
  add_attention(*sub);
  add_work(*sub);
  add_table(*sub);
  add_programs(*sub);
}

}  // namespace tilewright::tw
