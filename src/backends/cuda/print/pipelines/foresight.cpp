// Scalars of the kernel's body, printed once more where blocks are fetched.
#include "backends/cuda/print/pipelines/foresight.h"

namespace tilewright::cuda {

using tile::OpKind;

void Foresight::begin() {
  printed_.clear();
  axes_.clear();
}

void Foresight::print(ValueId value) {
  const ValueId v = k_.scalars().same_scalar(value);
  const Op* op = k_.scalars().scalar_definition(v);
  if (!op || !printed_.insert(v).second) return;
  for (ValueId o : op->operands) print(o);
  if (op->kind == OpKind::program_id) {
    if (axes_.insert(op->param).second)
      out_.line("const i32 program_{} = {};", op->param, k_.programs().program_id(op->param));
  } else if (const std::string line = k_.scalars().scalar_line(v); !line.empty()) {
    out_.write(line);
  }
}

}  // namespace tilewright::cuda
