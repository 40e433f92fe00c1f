// The function around a kernel's steps: parameters, buffers, the loop over programs.
#include "backends/cpu/print/printer.h"

#include "backends/cpu/print/dot_text.h"
#include "backends/cpu/print/step_text.h"
#include "backends/cpu/text/single_rounds.h"
#include "backends/printer/index_text.h"

#include <fmt/ranges.h>

namespace tilewright::cpu {

using printer::IndexText;
using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

// Buffers up to this size stand on the stack, larger ones in memory that each thread has for itself.
constexpr Index kStackBytes = 16 * 1024;

class FunctionText {
 public:
  FunctionText(const Kernel& kernel, const tile::Schedule& schedule, int lanes)
      : k_(kernel, schedule, lanes), entry_(k_.names.identifier(kernel.name) + "_kernel") {}

  backends::Source run() {
    k_.code.open(
        "extern \"C\" void {}(void* const* views, const i64* scalars, i64 begin, i64 end, char* scratch)",
        entry_);
    declare_views();
    declare_scalars();
    declare_buffers();
    if (uses_tile_registers(k_.kernel))
      k_.code.line("TileRegisters {};  // until the kernel returns", k_.names.unique("tiles"));
    k_.code.open("for (i64 program = begin; program < end; ++program)");
    declare_programs();
    print_steps(k_, k_.plan.steps, k_.kind.fetch_ahead ? choose_row_walks(k_) : RowWalks());
    k_.code.close();
    if (k_.streams) k_.code.line("fence_streams();");
    k_.code.close();
    backends::Source source{.text = head() + k_.code.text(), .entry = entry_, .schedule = k_.schedule};
    source.launch.shared_bytes = scratch_bytes_;
    return source;
  }

 private:
  void declare_views() {
    const std::vector<tile::ViewUse> uses = view_uses(k_.kernel);
    for (std::size_t i = 0; i < k_.kernel.views.size(); ++i) {
      const tile::ViewParam& view = k_.kernel.views[i];
      k_.views.push_back(k_.names.unique(view.name));
      std::vector<std::string> extents;
      extents.reserve(view.extents.size());
      for (const tile::Dim& d : view.extents)
        extents.push_back(d.is_constant() ? int_text(d.value)
                                          : k_.kernel.scalars[static_cast<std::size_t>(d.scalar)].name);
      const std::string qualifier = uses[i].written || uses[i].accumulated ? "" : "const ";
      const std::string type = fmt::format("{}{}*", qualifier, memory_type(view.dtype));
      k_.code.line("{} {} = ({})views[{}];  // {} [{}]", type, k_.views[i], type, i, name(view.dtype),
                   fmt::join(extents, ", "));
    }
  }

  // Every op that reads a parameter shares its variable.
  void declare_scalars() {
    std::vector<std::string> variables(k_.kernel.scalars.size());
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const tile::ScalarParam& p = k_.kernel.scalars[i];
      variables[i] = k_.names.unique(p.name);
      std::string value = fmt::format("scalars[{}]", i);
      if (p.dtype == DType::f64) value = fmt::format("bits_as<f64>({})", value);
      if (p.dtype == DType::f32) value = fmt::format("bits_as<f32>((u32){})", value);
      k_.code.line("const {} {} = {};", scalar_type(p.dtype), variables[i], value);
    }
    k_.set_parameters(variables);
  }

  void declare_buffers() {
    std::set<ValueId> stored;
    for (ValueId v : k_.plan.buffers) stored.insert(k_.plan.storage(v));
    Index bytes = 0;
    std::vector<Buffer> buffers;
    for (ValueId v : stored) {
      Buffer b = k_.make_buffer(k_.names.unique(k_.hints.of_storage(v)), v);
      bytes += round_up(b.elements * memory_bytes(b.dtype), 64);
      buffers.push_back(b);
      k_.add_buffer(v, std::move(b));
    }
    // Dots run one after another and share the room for what they pack, and so do sorts.
    const Index room = std::max(dot_room_bytes(k_.kernel, k_.lanes), argsort_room_bytes(k_.kernel));
    if (room > 0) {
      k_.room = k_.names.unique("room");
      buffers.push_back({.name = k_.room, .dtype = DType::u8, .elements = room});
      bytes += room;
    }
    const bool on_stack = bytes <= kStackBytes;
    Index offset = 0;
    for (const Buffer& b : buffers) {
      const std::string_view type = memory_type(b.dtype);
      if (on_stack)
        k_.code.line("alignas(64) {} {}[{}];", type, b.name, b.elements);
      else
        k_.code.line("{0}* {1} = ({0}*)(scratch + {2});  // {3} elements", type, b.name, offset, b.elements);
      offset += round_up(b.elements * memory_bytes(b.dtype), 64);
    }
    scratch_bytes_ = on_stack ? 0 : bytes;
  }

  IndexText grid(const tile::GridAxis& axis) const {
    IndexText known = 1, given = 1;
    for (const tile::GridFactor& f : axis) {
      if (f.extent.is_constant())
        known = known * ceil_div(f.extent.value, f.block);
      else
        given = given * ((IndexText(k_.dim(f.extent).str()) + IndexText(f.block - 1)) / f.block);
    }
    return known * given;
  }

  // The coordinates of a program; axis 0 changes fastest.
  void declare_programs() {
    const std::size_t axes = k_.kernel.grid.size();
    std::vector<std::string> variables(axes, "program");
    if (axes > 1) {
      IndexText rest = "program";
      for (std::size_t a = 0; a < axes; ++a) {
        variables[a] = fmt::format("p{}", a);
        if (a + 1 == axes) {
          k_.code.line("const i64 {} = {};", variables[a], rest.str());
          break;
        }
        const IndexText count = grid(k_.kernel.grid[a]);
        k_.code.line("const i64 {} = {};", variables[a], (rest % count).str());
        rest = rest / count;
      }
    }
    tile::for_each_op(k_.kernel.body, [&](const Op& op) {
      if (op.kind == OpKind::program_id)
        k_.set_variable(op.results[0], variables[static_cast<std::size_t>(op.param)]);
    });
  }

  std::string head() const {
    std::vector<std::string> counts;
    counts.reserve(k_.kernel.grid.size());
    for (const tile::GridAxis& axis : k_.kernel.grid) counts.push_back(grid(axis).str());
    std::string text =
        fmt::format("// {}: grid [{}], {} lanes\n", k_.kernel.name, fmt::join(counts, ", "), k_.lanes);
    for (const tile::ConstParam& c : k_.kernel.constants)
      text += fmt::format("// {} = {}\n", c.name, c.value);
    for (const std::string& header : k_.headers()) text += fmt::format("#include \"{}\"\n", header);
    return text + "\nusing namespace tw;\n\n";
  }

  KernelText k_;
  std::string entry_;
  Index scratch_bytes_ = 0;
};

}  // namespace

Result<backends::Source> print_kernel(const Kernel& kernel, const tile::Schedule& schedule, int lanes) {
  if (!std::holds_alternative<tile::CpuLoops>(schedule.kind))
    return failure(Failure::Kind::unsupported,
                   fmt::format("{}: a schedule of another device", to_string(schedule)));
  const Kernel straight = inline_single_rounds(kernel);
  return FunctionText(straight, schedule, lanes).run();
}

}  // namespace tilewright::cpu
