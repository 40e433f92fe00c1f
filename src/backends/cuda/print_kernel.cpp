// The head of a kernel and its steps: program ids, scalars, control flow.
#include "backends/cuda/kernel_printer.h"

#include <tilewright/base/error.h>

#include <fmt/ranges.h>

#include <algorithm>

namespace tilewright::cuda {

using printer::Step;
using tile::Op;
using tile::OpKind;

namespace {

// Left for the small arrays of exchanges.
constexpr Index kStaticSharedBytes = 2048;

struct Refusal {
  std::string why;
};

// Words that a value must not be called: C++ keywords, and functions of the device headers.
constexpr std::string_view kReserved[] = {"add",        "sub",      "mul",
                                          "div",        "rem",      "neg",
                                          "abs",        "sign",     "floor",
                                          "ceil",       "round",    "trunc",
                                          "sqrt",       "exp",      "exp2",
                                          "expm1",      "log",      "log2",
                                          "log1p",      "sin",      "cos",
                                          "tan",        "tanh",     "erf",
                                          "rsqrt",      "pow",      "atan2",
                                          "min",        "max",      "fma",
                                          "isnan",      "shl",      "shr",
                                          "load",       "store",    "cast",
                                          "stage",      "fast",     "fetch",
                                          "fetch_if",   "fetched",  "fetch_program",
                                          "turn",       "ring",     "group",
                                          "place",      "full",     "rank",
                                          "A",          "B",        "a_blocks",
                                          "b_blocks",   "hop",      "first",
                                          "opaque",     "t",        "g",
                                          "r",          "c",        "v",
                                          "row",        "col",      "int",
                                          "float",      "double",   "bool",
                                          "char",       "long",     "short",
                                          "if",         "else",     "for",
                                          "do",         "while",    "return",
                                          "switch",     "case",     "default",
                                          "and",        "or",       "not",
                                          "xor",        "true",     "false",
                                          "const",      "auto",     "this",
                                          "new",        "delete",   "i8",
                                          "u8",         "i16",      "u16",
                                          "i32",        "u32",      "i64",
                                          "u64",        "f32",      "f64",
                                          "bf16",       "f16",      "f8e4m3",
                                          "f8e5m2",     "Vec",      "Max",
                                          "Min",        "Sum",      "Product",
                                          "And",        "Or",       "ArgMax",
                                          "ArgMin",     "same",     "sigmoid",
                                          "reciprocal", "inside",   "step",
                                          "program",    "programs", "rank",
                                          "tw",         "infinity", "not_a_number",
                                          "signed",     "unsigned", "void",
                                          "template",   "class",    "struct",
                                          "union",      "operator", "namespace",
                                          "using",      "static",   "extern",
                                          "register",   "volatile", "inline",
                                          "public",     "private",  "protected",
                                          "try",        "catch",    "throw",
                                          "typename",   "goto",     "break",
                                          "continue",   "enum",     "sizeof",
                                          "typedef",    "virtual",  "friend",
                                          "export",     "asm",      "mutable",
                                          "explicit"};

bool is_packed(const Layouts& layouts) { return layouts.programs_per_block > 1; }

}  // namespace

bool is_reserved(std::string_view name) {
  return std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
}

bool crowded(const tile::Kernel& kernel, const tile::Schedule& schedule) {
  constexpr Index kManyElements = 32;  // as f32 half of the registers of a thread at full occupancy
  Index largest = 1;
  tile::for_each_op(kernel.body, [&](const Op& op) {
    if (op.kind == OpKind::load) largest = std::max(largest, kernel.type(op.results[0]).size());
  });
  const bool packed =
      schedule.threads_per_row == 32 && schedule.threads > 32 && largest <= 32 * kManyElements;
  const Index threads =
      packed ? schedule.threads_per_row : Index{std::max(1, schedule.threads)} * schedule.cluster;
  return ceil_div(largest, threads) > kManyElements;
}

printer::LoopPolicy loop_policy(const tile::Kernel& kernel, const tile::Schedule& schedule) {
  return {.keep_above_flops = crowded(kernel, schedule) ? 24.0 : 4.0,
          .keep_loads = schedule.keep_in_registers};
}

std::vector<int> grid_parameters(const tile::Kernel& kernel) {
  std::vector<int> axes;
  for (std::size_t i = 0; i < kernel.grid.size(); ++i)
    if (std::any_of(kernel.grid[i].begin(), kernel.grid[i].end(),
                    [](const tile::GridFactor& f) { return !f.extent.is_constant(); }))
      axes.push_back(static_cast<int>(i));
  return axes;
}

KernelPrinter::KernelPrinter(const tile::Kernel& kernel, const tile::Schedule& schedule,
                             const PrintOptions& options)
    : kernel_(kernel),
      schedule_(schedule),
      options_(options),
      plan_(plan_for(kernel, schedule)),
      ranges_(printer::value_ranges(kernel)),
      kernel_accuracy_(printer::needed_accuracy(kernel)),
      accuracy_(kernel_accuracy_),
      view_uses_(tile::view_uses(kernel)),
      differs_(printer::differ_between_programs(kernel)),
      crowded_(crowded(kernel, schedule)),
      only_stored_(kernel.values.size(), true) {
  used_names_.insert(std::begin(kReserved), std::end(kReserved));
  for (const tile::ViewParam& v : kernel.views) used_names_.insert(identifier(v.name));
  for (const tile::ScalarParam& s : kernel.scalars) used_names_.insert(identifier(s.name));
  tile::for_each_op(kernel.body, [&](const Op& op) {
    if (op.kind == OpKind::load || op.kind == OpKind::gather) ++loads_of_view_[op.param];
  });
  find_only_stored();
}

// Users stand behind what they use, so they are looked at first. A tile that a dot reads is kept as it is
// stored, and a choice between two values rounds neither.
void KernelPrinter::find_only_stored() {
  std::vector<const Op*> ops;
  tile::for_each_op(kernel_.body, [&](const Op& op) { ops.push_back(&op); });
  const auto long_both_ways = [&](ValueId v) { return long_axes(kernel_.type(v).shape).size() == 2; };
  for (auto op = ops.rbegin(); op != ops.rend(); ++op)
    for (std::size_t i = 0; i < (*op)->operands.size(); ++i) {
      const ValueId v = (*op)->operands[i];
      const bool stored = i == 0 && ((*op)->kind == OpKind::store || (*op)->kind == OpKind::scatter);
      const bool multiplied = i < 2 && (*op)->kind == OpKind::dot && long_both_ways(v);
      const bool chosen = i > 0 && (*op)->kind == OpKind::apply && (*op)->prim == tile::Prim::select &&
                          only_stored((*op)->results[0]);
      if (!stored && !multiplied && !chosen) only_stored_[static_cast<std::size_t>(v)] = false;
    }
}

void KernelPrinter::refuse(const std::string& why) const { throw Refusal{why}; }

Result<backends::Source> KernelPrinter::run() {
  const auto unsupported = [](std::string why) {
    return failure(Failure::Kind::unsupported, std::move(why));
  };
  if (row_cluster(schedule_) > 1 && options_.architecture < "sm_90")
    return unsupported(
        fmt::format("cluster={}: {} has no clusters", row_cluster(schedule_), options_.architecture));
  if (schedule_.dot != tile::DotUnit::fma)
    if (Status s = find_dots(); !s) return s.error();
  auto layouts = assign_layouts({kernel_, plan_, ranges_, schedule_});
  if (!layouts) return layouts.error();
  layouts_ = std::move(*layouts);
  const std::string parameters = signature();
  if (row_cluster(schedule_) > 1) need("cluster_exchange");
  try {
    if (schedule_.dot == tile::DotUnit::fma && schedule_.stages > 1) choose_staged();
    if (schedule_.dot == tile::DotUnit::wgmma)
      print_wgmma_body();
    else if (walks())
      print_persistent_body();
    else
      print_steps(plan_.steps);
  } catch (const Refusal& refusal) {
    return unsupported(refusal.why);
  }
  const Index shared_bytes = round_up(stage_bytes_, 16) + staged_bytes();
  if (shared_bytes > options_.max_shared_bytes - kStaticSharedBytes)
    return unsupported(fmt::format("needs {} bytes of shared memory, a block has {}", shared_bytes,
                                   options_.max_shared_bytes - kStaticSharedBytes));

  Text head(1);
  for (const std::string& s : shared_) head.write(s);
  print_thread_coordinates(head);
  std::string text = header_comment();
  need("edge");
  need("exchange");
  for (const std::string& h : headers_) text += fmt::format("#include \"tw_cuda/{}.cuh\"\n", h);
  std::string bounds = fmt::format("{}", block_threads(schedule_));
  if (schedule_.dot == tile::DotUnit::wgmma)
    bounds += ", 1";  // setmaxnreg wants the number
  else if (schedule_.programs_per_sm > 0)
    bounds += fmt::format(", {}", schedule_.programs_per_sm);
  text += fmt::format("\nnamespace tw {{\n\nextern \"C\" __global__ void __launch_bounds__({}) {}({}) {{\n",
                      bounds, identifier(kernel_.name), parameters);
  text += head.str() + out_.str() + "}\n\n}  // namespace tw\n";

  backends::Source source;
  source.text = std::move(text);
  source.entry = identifier(kernel_.name);
  source.schedule = schedule_;
  // Blocks of a multicast have a program each.
  const Index programs = layouts_.programs_per_block * schedule_.cluster / row_cluster(schedule_);
  source.launch = {.threads = block_threads(schedule_),
                   .cluster = schedule_.cluster,
                   .shared_bytes = shared_bytes,
                   .programs_per_block = programs};
  return source;
}

// What the schedule's unit makes of the kernel's dots.
Status KernelPrinter::find_dots() {
  auto dot = find_tensor_dot(kernel_, schedule_.dot);
  if (dot) {
    dot_ = *dot;
    return Unit{};
  }
  if (schedule_.dot != tile::DotUnit::wgmma) return dot.error();
  auto chain = find_dot_chain(kernel_);
  if (!chain) return chain.error();
  chain_ = std::move(*chain);
  return Unit{};
}

std::string KernelPrinter::header_comment() const {
  std::string text = fmt::format("// {}: ", kernel_.name);
  const auto dims = [&](const std::vector<tile::Dim>& all) {
    std::vector<std::string> parts;
    parts.reserve(all.size());
    for (const tile::Dim& d : all)
      parts.push_back(d.is_constant() ? fmt::format("{}", d.value)
                                      : kernel_.scalars[static_cast<std::size_t>(d.scalar)].name);
    return fmt::format("[{}]", fmt::join(parts, ","));
  };
  std::vector<std::string> reads, writes;
  for (std::size_t i = 0; i < kernel_.views.size(); ++i) {
    const tile::ViewParam& v = kernel_.views[i];
    const std::string shape = fmt::format("{} {}{}", v.name, name(v.dtype), dims(v.extents));
    if (view_uses_[i].read) reads.push_back(shape);
    if (view_uses_[i].written || view_uses_[i].accumulated) writes.push_back(shape);
  }
  text += fmt::format("{} -> {}\n", fmt::join(reads, ", "), fmt::join(writes, ", "));
  text += fmt::format("// schedule: {}\n", to_string(schedule_));
  for (const Frame& f : layouts_.frames) {
    if (f.rows * f.cols == 1) continue;
    text += fmt::format("// tiles [{},{}]: ", f.rows, f.cols);
    if (f.map == RowMap::mma)
      text += "as tensor cores accumulate: row g, g + 8 and so on, ";
    else if (f.rows > 1)
      text += f.groups > 1 ? fmt::format("row r*{} + g of {}, ", f.groups, f.row_steps()) : "row r, ";
    text += fmt::format("column (c*{} + t)*{} + v", f.row_threads(), f.vector);
    text += fmt::format("; {} rows, {} vectors of {} a thread\n", f.row_steps(), f.col_steps(), f.vector);
  }
  return text;
}

std::string KernelPrinter::signature() {
  std::vector<std::string> parameters;
  for (std::size_t i = 0; i < kernel_.views.size(); ++i) {
    const bool written = view_uses_[i].written || view_uses_[i].accumulated;
    parameters.push_back(fmt::format("{}{}* __restrict__ {}", written ? "" : "const ",
                                     element_type(kernel_.views[i].dtype),
                                     identifier(kernel_.views[i].name)));
  }
  for (const tile::ScalarParam& s : kernel_.scalars)
    parameters.push_back(fmt::format("{} {}", element_type(s.dtype), identifier(s.name)));
  for (int axis : grid_parameters(kernel_)) parameters.push_back(fmt::format("i32 grid_{}", axis));
  for (const TensorBlock& block : tensor_blocks(kernel_, schedule_)) {
    map_names_.push_back(unique(kernel_.views[static_cast<std::size_t>(block.view)].name + "_map"));
    parameters.push_back("const __grid_constant__ TensorMap " + map_names_.back());
  }
  return fmt::format("{}", fmt::join(parameters, ", "));
}

std::string KernelPrinter::grid_text(int axis) const {
  const std::vector<int> given = grid_parameters(kernel_);
  if (std::find(given.begin(), given.end(), axis) != given.end()) return fmt::format("grid_{}", axis);
  Index n = 1;
  for (const tile::GridFactor& f : kernel_.grid[static_cast<std::size_t>(axis)])
    n *= ceil_div(f.extent.value, f.block);
  return fmt::format("{}", n);
}

// Where this thread stands, and which program it runs. The first grid axis counts fastest, as CUDA's own
// does.
void KernelPrinter::print_thread_coordinates(Text& head) {
  for (const std::string& line : thread_lines_) head.write(line);
  const int axes = static_cast<int>(kernel_.grid.size());
  const int packed = layouts_.programs_per_block;
  if (is_packed(layouts_)) {
    head.line("const i32 program = i32(blockIdx.x) * {} + i32(threadIdx.x) / {};", packed,
              schedule_.threads / packed);
    std::vector<std::string> counts;
    counts.reserve(axes);
    for (int i = 0; i < axes; ++i) counts.push_back(grid_text(i));
    head.line("if (program >= {}) return;", fmt::join(counts, " * "));
  } else if (!walks() && !program_axes_.empty()) {
    if (axes > 1 || row_cluster(schedule_) > 1)
      head.line("const i32 program = i32(blockIdx.x){};",
                row_cluster(schedule_) > 1 ? fmt::format(" / {}", row_cluster(schedule_)) : "");
  }
  if (!walks() && schedule_.raster > 0) {
    need("raster");
    head.line("const Place place = raster<{}>(i32(blockIdx.x), {}, {});", schedule_.raster, grid_text(0),
              grid_text(1));
  }
  if (!walks())
    for (int axis : program_axes_)
      head.write(fmt::format("const i32 program_{} = {};", axis, program_id(axis).text));
  if (stepped_)
    head.write(
        "int step = 0;  // counts the exchanges that are repeated: neighbours in time use different scratch");
  if (row_cluster(schedule_) > 1 && cluster_waited_)
    head.write(
        "cluster_arrive();  // every block of the cluster has started: waited for before the first exchange");
}

Expr KernelPrinter::program_id(int axis) {
  const int axes = static_cast<int>(kernel_.grid.size());
  const bool plain = axes == 1 && row_cluster(schedule_) == 1 && !is_packed(layouts_) && !walks();
  if (schedule_.raster > 0 && axis < 2) return {axis == 0 ? "place.x" : "place.y", "i32"};
  if (schedule_.descending) return {descending_id(axis), "i32"};
  std::string text = plain ? "i32(blockIdx.x)" : "program";
  std::string below;
  for (int i = 0; i < axis; ++i) below += (below.empty() ? "" : " * ") + grid_text(i);
  if (!below.empty()) text += axis > 1 ? fmt::format(" / ({})", below) : fmt::format(" / {}", below);
  if (axis + 1 < axes) text += fmt::format(" % {}", grid_text(axis));
  return {text, "i32"};
}

// The second axis counts slowest and from its end.
std::string KernelPrinter::descending_id(int axis) const {
  const auto axes = static_cast<int>(kernel_.grid.size());
  if (axes < 2 || is_packed(layouts_) || row_cluster(schedule_) > 1 || schedule_.raster > 0)
    refuse("descending: wants a second grid axis, and no other order of programs");
  const std::string others = axes > 2 ? fmt::format("{} * {}", grid_text(0), grid_text(2)) : grid_text(0);
  if (axis == 0) return fmt::format("program % {}", grid_text(0));
  if (axis == 2) return fmt::format("program / {} % {}", grid_text(0), grid_text(2));
  return fmt::format("{} - 1 - program / ({})", grid_text(1), others);
}

void KernelPrinter::print_raster() {
  if (schedule_.raster == 0) return;
  need("raster");
  out_.line("const Place place = raster<{}>(program, {}, {});", schedule_.raster, grid_text(0), grid_text(1));
}

void KernelPrinter::print_program_ids() {
  print_raster();
  for (int axis : program_axes_) out_.line("const i32 program_{} = {};", axis, program_id(axis).text);
}

// One block walks over every gridDim.x-th program.
void KernelPrinter::print_persistent_body() {
  std::vector<std::string> counts;
  counts.reserve(static_cast<int>(kernel_.grid.size()));
  for (int i = 0; i < static_cast<int>(kernel_.grid.size()); ++i) counts.push_back(grid_text(i));
  if (is_packed(layouts_)) refuse("persistent: programs side by side do not walk");
  const std::string divide = row_cluster(schedule_) > 1 ? fmt::format(" / {}", row_cluster(schedule_)) : "";
  const std::string programs = fmt::format("{}", fmt::join(counts, " * "));
  declare_buffers(plan_.steps);
  wait_for_cluster();
  Text before(1);
  std::swap(before, out_);
  out_ = Text(2);
  ++loop_depth_;
  print_steps(plan_.steps);
  --loop_depth_;
  Text body(2);
  std::swap(body, out_);
  std::swap(before, out_);
  if (schedule_.stages > 1) {
    print_staging(programs);
    out_.open("for (i32 program = first; program < {}; program += hop)", programs);
    print_turn(programs);
  } else {
    out_.open("for (i32 program = i32(blockIdx.x){0}; program < {1}; program += i32(gridDim.x){0})", divide,
              programs);
  }
  print_program_ids();
  out_.append(body);
  out_.close();
}

// Before the first exchange, and before code that runs many times or not at all.
void KernelPrinter::wait_for_cluster() {
  if (row_cluster(schedule_) == 1 || cluster_waited_) return;
  out_.write("cluster_wait();");
  cluster_waited_ = true;
}

std::string KernelPrinter::unique(const std::string& wish) {
  std::string name = identifier(wish);
  for (int n = 2; !used_names_.insert(name).second; ++n) name = fmt::format("{}_{}", identifier(wish), n);
  return name;
}

const std::string& KernelPrinter::value_name(ValueId v) {
  auto it = names_.find(v);
  if (it != names_.end()) return it->second;
  const std::string& given = kernel_.values[static_cast<std::size_t>(v)].name;
  return names_[v] = unique(given.empty() ? fmt::format("v{}", v) : given);
}

KernelPrinter::Thread KernelPrinter::thread(const Frame& frame) {
  const auto key = std::make_pair(frame.threads_per_row, frame.map == RowMap::mma ? 0 : frame.cluster);
  auto it = threads_.find(key);
  if (it != threads_.end()) return it->second;
  Thread names{threads_.empty() ? "t" : unique(fmt::format("t{}", frame.threads_per_row)),
               threads_.empty() ? "g" : unique(fmt::format("g{}", frame.threads_per_row))};
  const bool whole = frame.threads_per_row == schedule_.threads;
  std::string t = whole ? "int(threadIdx.x)" : fmt::format("int(threadIdx.x) % {}", frame.threads_per_row);
  if (frame.cluster > 1) {
    need("cluster_exchange");
    t = fmt::format("int(cluster_rank()) * {} + {}", frame.threads_per_row, t);
  }
  if (frame.map == RowMap::mma) {
    const int across = frame.threads_per_row / 4;
    const std::string warp_column =
        across > 1 ? fmt::format("int(threadIdx.x) / 32 % {} * 4 + ", across) : "";
    thread_lines_.push_back(fmt::format("const int {} = {}int(threadIdx.x) % 4;", names.t, warp_column));
    thread_lines_.push_back(fmt::format(
        "const int {} = int(threadIdx.x) / {} * 16 + int(threadIdx.x) % 32 / 4;", names.g, 32 * across));
    return threads_[key] = names;
  }
  thread_lines_.push_back(fmt::format("const int {} = {};", names.t, t));
  if (whole || is_packed(layouts_))
    names.g = "0";
  else
    thread_lines_.push_back(
        fmt::format("const int {} = int(threadIdx.x) / {};", names.g, frame.threads_per_row));
  return threads_[key] = names;
}

// Buffers first touched inside a nested block must be there before it.
void KernelPrinter::declare_buffers(const std::vector<Step>& steps) {
  const auto declare = [&](ValueId v) {
    const ValueId s = plan_.storage(v);
    if (kernel_.type(s).rank() == 0 || !layouts_.buffers.count(s)) return;
    if (declared_.insert(s).second) out_.write(declaration(buffer(s)));
  };
  for (const Step& step : steps) {
    if (step.kind == Step::Kind::elements)
      for (const Instr& in : step.loop.body)
        if (in.kind != Instr::Kind::compute && in.value >= 0) declare(in.value);
    if (step.kind == Step::Kind::dot || step.kind == Step::Kind::relayout) declare(step.op->results[0]);
    for (auto [from, to] : step.moves) declare(to);
    for (const auto& body : step.body) declare_buffers(body);
  }
}

void KernelPrinter::print_steps(const std::vector<Step>& steps) {
  for (const Step& step : steps) print_step(step);
}

void KernelPrinter::print_step(const Step& step) {
  if (step.kind != Step::Kind::scalar && loop_depth_ == 0) out_.blank();
  switch (step.kind) {
    case Step::Kind::scalar:
      return print_scalar(*step.op);
    case Step::Kind::elements:
      return print_elements(step.loop);
    case Step::Kind::relayout:
      return print_relayout(step);
    case Step::Kind::dot:
      return chain_ ? print_chain_dot(step) : print_dot(step);
    case Step::Kind::loop:
      return print_loop(step);
    case Step::Kind::branch:
      return print_branch(step);
    case Step::Kind::assign:
      return print_assign(step);
  }
}

void KernelPrinter::print_scalar(const Op& op) {
  if (op.results.empty()) return print_scalar_effect(op);
  const ValueId v = op.results[0];
  switch (op.kind) {
    case OpKind::constant:
      scalars_[v] = {literal(kernel_.type(v).dtype, op.number), type_of(v)};
      return;
    case OpKind::scalar_param:
      scalars_[v] = {identifier(kernel_.scalars[static_cast<std::size_t>(op.param)].name),
                     compute_type(kernel_.type(v).dtype)};
      return;
    case OpKind::program_id:
      program_axes_.insert(op.param);
      scalars_[v] = {fmt::format("program_{}", op.param), "i32"};
      return;
    case OpKind::broadcast:
    case OpKind::reshape:
      scalars_[v] = scalar(op.operands[0]);
      return;
    default:
      break;
  }
  Expr e;
  if (op.kind == OpKind::load) {
    e = scalar_load(op);
  } else {
    std::vector<Expr> operands;
    operands.reserve(op.operands.size());
    for (ValueId o : op.operands) operands.push_back(scalar(o));
    e = compute(op, operands);
  }
  const std::string type = type_of(v);
  const std::string line = fmt::format("const {} {} = {};", type, value_name(v), as_type(e, type));
  scalar_lines_[v] = line;
  out_.write(line);
  scalars_[v] = {value_name(v), type};
}

void KernelPrinter::print_loop(const Step& step) {
  const Op& op = *step.op;
  declare_buffers(step.body[0]);
  wait_for_cluster();
  if (dot_ && dot_->loop == &op)
    return schedule_.dot == tile::DotUnit::wgmma ? print_wgmma_loop(step) : print_mma_loop(step);
  if (chain_ && chain_->has_dots(op)) return print_chain_loop(step);
  open_loop(step);
  print_steps(step.body[0]);
  close_loop();
}

void KernelPrinter::open_loop(const Step& step) {
  const Op& op = *step.op;
  const ValueId i = op.blocks[0].args[0];
  const std::string type = type_of(i), name = value_name(i);
  const std::string upper = value_name(i) + "_end", by = value_name(i) + "_step";
  // Bounds may be wider than the induction value: an empty loop's upper bound can be anything.
  out_.line("const i64 {} = {}, {} = {};", unique(upper), scalar(op.operands[1]).text, unique(by),
            scalar(op.operands[2]).text);
  out_.open("for (i64 {0}_i = {1}; {0}_i < {2}; {0}_i += {3})", name, scalar(op.operands[0]).text, upper, by);
  out_.line("const {0} {1} = {0}({1}_i);", type, name);
  scalars_[i] = {name, type};
  ++loop_depth_;
}

void KernelPrinter::close_loop() {
  --loop_depth_;
  out_.close();
}

void KernelPrinter::print_branch(const Step& step) {
  const Op& op = *step.op;
  for (ValueId r : op.results) {
    if (kernel_.type(r).rank() > 0) continue;
    declared_.insert(r);
    scalars_[r] = {value_name(r), type_of(r)};
    out_.line("{} {};", type_of(r), value_name(r));
  }
  declare_buffers(step.body[0]);
  declare_buffers(step.body[1]);
  wait_for_cluster();
  out_.open("if ({})", scalar(op.operands[0]).text);
  ++loop_depth_;  // as in a loop: the two sides share nothing
  print_steps(step.body[0]);
  if (!step.body[1].empty()) {
    out_.close_else();
    print_steps(step.body[1]);
  }
  --loop_depth_;
  out_.close();
}

// All right sides are read before any left side is written.
void KernelPrinter::print_assign(const Step& step) {
  std::vector<std::pair<ValueId, std::string>> scalars;
  for (auto [from, to] : step.moves) {
    if (kernel_.type(to).rank() > 0) continue;
    const std::string type = type_of(to);
    if (step.moves.size() == 1) {
      scalars.push_back({to, as_type(scalar(from), type)});
    } else {
      const std::string next = unique("next_" + value_name(to));
      out_.line("const {} {} = {};", type, next, as_type(scalar(from), type));
      scalars.push_back({to, next});
    }
  }
  for (auto& [to, text] : scalars) {
    const bool fresh = declared_.insert(to).second;
    out_.line("{}{} = {};", fresh ? type_of(to) + " " : "", value_name(to), text);
    scalars_[to] = {value_name(to), type_of(to)};
  }
  // Tiles: copies through temporaries keep "all at once"; the compiler renames registers.
  std::vector<std::pair<Registers, Registers>> tiles;
  for (auto [from, to] : step.moves) {
    if (kernel_.type(to).rank() == 0) continue;
    const Registers target = buffer(to);
    Registers source = converted(from, target.place);
    Registers copy = source;
    copy.name = unique(source.name + "_old");
    out_.write(declaration(copy));
    for_registers(copy, [&] { out_.line("{} = {};", at(copy), at(source)); });
    tiles.push_back({copy, target});
  }
  for (auto& [copy, target] : tiles)
    for_registers(copy, [&] { out_.line("{} = {};", at(target), at(copy)); });
}

Result<backends::Source> print_kernel(const tile::Kernel& kernel, const tile::Schedule& schedule,
                                      const PrintOptions& options) {
  return KernelPrinter(kernel, schedule, options).run();
}

}  // namespace tilewright::cuda
