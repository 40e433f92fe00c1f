// Control: loops, branches, assignments; and the tile ops that are calls of a header's function.
#include "backends/cpu/print/step_text.h"

#include "backends/cpu/loops/loop_text.h"
#include "backends/cpu/print/dot_text.h"
#include "backends/cpu/text/scalar_text.h"

#include <tilewright/base/error.h>

#include <algorithm>

namespace tilewright::cpu {

using printer::Step;
using tile::OpKind;
using tile::TileType;
using tile::ValueId;

namespace {

// Rows, columns and row stride of a tile's buffer, unit axes included.
struct Matrix {
  std::string data;
  Index rows, columns, stride;
};
Matrix matrix(const KernelText& k, ValueId v) {
  const TileType& type = k.kernel.type(v);
  const Buffer& buffer = k.buffer(v);
  Matrix m{.data = buffer.name, .rows = 1, .columns = type.shape.back(), .stride = 1};
  if (type.rank() == 2) {
    m.rows = type.shape[0];
    m.stride = buffer.strides[0] == 0 ? 1 : buffer.strides[0];
  }
  return m;
}

void print_relayout(KernelText& k, const tile::Op& op) {
  k.include("tw_cpu/relayout.h");
  const Matrix from = matrix(k, op.operands[0]), to = matrix(k, op.results[0]);
  if (op.kind == OpKind::transpose)
    k.code.line("transpose<{}, {}>({}, {}, {}, {});", from.rows, from.columns, from.data, from.stride,
                to.data, to.stride);
  else
    k.code.line("reshape<{}, {}, {}, {}>({}, {}, {}, {});", from.rows, from.columns, to.rows, to.columns,
                from.data, from.stride, to.data, to.stride);
}

// The lines of a tile's buffer along an axis, and where their elements lie.
std::string lines_text(const Matrix& m, int axis_from_last) {
  return axis_from_last == 0 ? fmt::format("{{{}, {}, 1, {}}}", m.rows, m.columns, m.stride)
                             : fmt::format("{{{}, {}, {}, 1}}", m.columns, m.rows, m.stride);
}

void print_argsort(KernelText& k, const tile::Op& op) {
  k.include("tw_cpu/sort.h");
  const Matrix from = matrix(k, op.operands[0]), to = matrix(k, op.results[0]);
  const int from_last = k.kernel.type(op.operands[0]).rank() - 1 - op.axis;
  k.code.line("argsort<{}>({}, {}, {}, {}, {});", op.order == Order::descending, from.data,
              lines_text(from, from_last), to.data, lines_text(to, from_last), k.room);
  k.code.line("clear_behind<{}, {}>({}, {});", to.rows, to.columns, to.data, to.stride);
}

void print_loop(KernelText& k, const Step& step) {
  const tile::Op& op = *step.op;
  const std::string i = k.name_scalar(op.blocks[0].args[0]);
  k.code.open("for (i64 {0} = {1}; {0} < {2}; {0} += {3})", i, k.scalar(op.operands[0]),
              k.scalar(op.operands[1]), k.scalar(op.operands[2]));
  print_steps(k, step.body[0]);
  k.code.close();
}

void print_branch(KernelText& k, const Step& step) {
  for (ValueId r : step.op->results)
    if (k.kernel.type(r).rank() == 0)
      k.code.line("{} {};", scalar_type(k.kernel.type(r).dtype), k.name_scalar(r));
  k.code.open("if ({})", k.scalar(step.op->operands[0]));
  print_steps(k, step.body[0]);
  if (!step.body[1].empty()) {
    k.code.close("} else {");
    k.code.indent();
    print_steps(k, step.body[1]);
  }
  k.code.close();
}

void print_copy(KernelText& k, const std::string& from, const Buffer& to) {
  k.code.line("__builtin_memcpy({}, {}, {});", to.name, from, to.elements * memory_bytes(to.dtype));
}

// All at once: a source that an earlier move overwrites is saved first.
void print_assign(KernelText& k, const Step& step) {
  std::map<ValueId, std::string> saved;
  for (std::size_t i = 0; i < step.moves.size(); ++i)
    for (std::size_t j = i + 1; j < step.moves.size(); ++j) {
      const ValueId overwritten = k.plan.storage(step.moves[i].second),
                    source = k.plan.storage(step.moves[j].first);
      if (overwritten != source || saved.count(source)) continue;
      const TileType& type = k.kernel.type(source);
      const std::string old = k.names.unique("old");
      saved[source] = old;
      if (type.rank() == 0) {
        k.code.line("const {} {} = {};", scalar_type(type.dtype), old, k.scalar(source));
      } else {
        const Buffer& buffer = k.buffer(source);
        k.code.line("alignas(64) {} {}[{}];", memory_type(type.dtype), old, buffer.elements);
        Buffer copy = buffer;
        copy.name = old;
        print_copy(k, buffer.name, copy);
      }
    }
  for (const auto& [from, to] : step.moves) {
    const TileType& type = k.kernel.type(to);
    const auto old = saved.find(k.plan.storage(from));
    if (type.rank() > 0) {
      print_copy(k, old != saved.end() ? old->second : k.buffer(from).name, k.buffer(to));
      continue;
    }
    const std::string value = old != saved.end() ? old->second : k.scalar(from);
    if (k.has_variable(to))
      k.code.line("{} = {};", k.scalar(to), value);
    else
      k.code.line("{} {} = {};", scalar_type(type.dtype), k.name_scalar(to), value);
  }
}

}  // namespace

Index argsort_room_bytes(const tile::Kernel& kernel) {
  constexpr Index kCopies = 2;
  Index most = 0;
  tile::for_each_op(kernel.body, [&](const tile::Op& op) {
    if (op.kind != OpKind::argsort) return;
    const TileType& type = kernel.type(op.operands[0]);
    const Index pair = size_bytes(type.dtype) > 4 ? 16 : 8;  // a key and a position (tw_cpu/sort.h)
    most = std::max(most, kCopies * pair * type.shape[static_cast<std::size_t>(op.axis)]);
  });
  return most;
}

void print_steps(KernelText& k, const std::vector<Step>& steps, const RowWalks& walks) {
  for (const Step& step : steps) {
    switch (step.kind) {
      case Step::Kind::scalar:
        print_scalar(k, *step.op);
        break;
      case Step::Kind::elements:
        for (const LoopPart& part : split_by_reduced_axis(step.loop)) {
          const auto walk = walks.find(&step.loop);
          LoopText(k, part, walk == walks.end() ? RowWalk() : walk->second).print();
        }
        break;
      case Step::Kind::relayout:
        step.op->kind == OpKind::argsort ? print_argsort(k, *step.op) : print_relayout(k, *step.op);
        break;
      case Step::Kind::dot:
        print_dot(k, *step.op);
        break;
      case Step::Kind::loop:
        print_loop(k, step);
        break;
      case Step::Kind::branch:
        print_branch(k, step);
        break;
      case Step::Kind::assign:
        print_assign(k, step);
        break;
    }
  }
}

}  // namespace tilewright::cpu
