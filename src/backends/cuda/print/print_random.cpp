// Random words of an element loop. The cipher gives four words, of counters that lie side by side, and takes
// some 80 instructions: elements that lie side by side share a run of it, whether one thread has them or four
// lanes of a warp.
#include "backends/cuda/print/element_printer.h"
#include "backends/cuda/print/kernel_printer.h"

namespace tilewright::cuda {

using tile::OpKind;

namespace {

constexpr Index kWords = 4;  // of a run

// Threads whose rows or columns a run's words belong to are lanes of one warp, and all of them get there.
bool is_whole_accumulator(const TileFrame& f) {
  return f.map == RowMap::mma && f.vector == 2 && f.col_steps() % 2 == 0 && !f.ragged_rows() &&
         !f.ragged_cols();
}

}  // namespace

LoopAnalysis::Draws LoopAnalysis::draws(const PrintedLoop& loop, std::size_t i) const {
  const Instr& in = loop.plan->body[i];
  const bool drawn = in.kind == Instr::Kind::compute && in.op->kind == OpKind::random;
  if (!drawn || level(loop, in) != Level::element) return Draws::apart;
  const auto form = neighbours(loop).form(in.operands[1]);
  if (!form || form->divisor % kWords != 0) return Draws::apart;
  const bool along_columns = form->col == 1 && form->row % kWords == 0,
             along_rows = form->row == 1 && form->col % kWords == 0;
  const bool tile = loop.layout.part == Part::all, columns = tile || loop.layout.part == Part::cols;
  if (along_columns && columns && loop.frame.vector % kWords == 0) return Draws::four_columns;
  if (!tile || !is_whole_accumulator(loop.frame)) return Draws::apart;
  return along_columns ? Draws::across_columns : along_rows ? Draws::across_rows : Draws::apart;
}

Index LoopAnalysis::column_step_of_counter(const PrintedLoop& loop, std::size_t i) const {
  return neighbours(loop).form(loop.plan->body[i].operands[1])->col;
}

void ElementPrinter::print_words(PrintedLoop& loop, std::size_t i) {
  loop.outputs[i] = out_.local("drawn_" + names_.hint(loop.plan->body[i].value));
  out_.line("Vec<u32, {}> {};", kWords, loop.outputs[i]);
}

// Lanes exchange the words of two vectors at a time.
void ElementPrinter::print_words_of_row(PrintedLoop& loop) {
  for (std::size_t i = 0; i < loop.plan->body.size(); ++i) {
    const LoopAnalysis::Draws how = analysis_.draws(loop, i);
    if (how == LoopAnalysis::Draws::across_columns || how == LoopAnalysis::Draws::across_rows)
      print_words(loop, i);
  }
}

// The word of an element, behind a line that computes it for all who share it.
TypedText ElementPrinter::drawn_word(const PrintedLoop& loop, std::size_t i,
                                     const std::vector<TypedText>& operands) {
  need("philox");
  const std::string& words = loop.outputs[i];
  const std::string seed = fmt::format("u64({})", operands[0].text),
                    counter = fmt::format("u64({})", operands[1].text);
  const Index step = analysis_.column_step_of_counter(loop, i);
  std::string word = "c % 2 * 2 + v";
  switch (analysis_.draws(loop, i)) {
    case LoopAnalysis::Draws::across_columns:
      out_.line("if (c % 2 == 0 && v == 0) {} = philox_across_columns({}, {}, {});", words, seed, counter,
                kQuad * loop.frame.vector);
      break;
    case LoopAnalysis::Draws::across_rows:
      out_.line("if (c % 2 == 0 && v == 0) {} = philox_across_rows({}, {}, {}, {});", words, seed, counter,
                step, step * kQuad * loop.frame.vector);
      break;
    default:
      out_.line("if (v % 4 == 0) {} = philox({}, {} >> 2);", words, seed, counter);
      word = "v % 4";
  }
  return {fmt::format("i64({}.v[{}])", words, word), DType::i64, 0, Binding::call};
}

}  // namespace tilewright::cuda
