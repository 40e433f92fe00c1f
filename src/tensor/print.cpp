// The layout of printed tensors: brackets, lines and what is left out, as numpy/_core/arrayprint.py
// (_formatArray) has them.
#include "base/no_value.h"
#include "tensor/element_texts.h"
#include "tensor/state.h"

#include <tilewright/tensor/print.h>

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

namespace tilewright {

namespace {

void check(const PrintOptions& options) {
  const auto want = [](const char* what, Index value, Index low, Index high) {
    if (value < low || value > high)
      throw Error(fmt::format("PrintOptions::{} is {}, it must be in [{}, {}]", what, value, low, high));
  };
  constexpr Index kMost = Index{1} << 31;  // more than anybody reads
  want("precision", options.precision, 0, 100);
  want("threshold", options.threshold, 0, kMost);
  want("edge_items", options.edge_items, 0, kMost);
  want("line_width", options.line_width, 0, kMost);
}

std::string without_spaces_at_end(const std::string& line) {
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

class Layout {
 public:
  Layout(const char* data, const ir::Type& type, const PrintOptions& options)
      : shape_(type.shape),
        options_(options),
        summarised_(type.shape.size() > options.threshold),
        strides_(row_major_strides(type.shape)) {
    std::vector<Index> shown;
    collect(0, 0, shown);
    texts_ = detail::element_texts(data, type.dtype, shown, options.precision);
  }

  std::string text() { return nested(0, " ", static_cast<std::size_t>(options_.line_width)); }

 private:
  bool leaves_out(int axis) const { return summarised_ && shape_[axis] > 2 * options_.edge_items; }

  // Calls `item` with each position along the axis that is shown, `gap` where others are left out.
  template <class Item, class Gap>
  void walk(int axis, const Item& item, const Gap& gap) const {
    const Index extent = shape_[axis], edge = leaves_out(axis) ? options_.edge_items : 0;
    for (Index i = 0; i < edge; ++i) item(i);
    if (leaves_out(axis)) gap();
    for (Index i = leaves_out(axis) ? extent - edge : 0; i < extent; ++i) item(i);
  }

  void collect(int axis, Index offset, std::vector<Index>& shown) const {
    if (axis == shape_.rank()) {
      shown.push_back(offset);
      return;
    }
    const Index step = strides_[static_cast<std::size_t>(axis)];
    walk(axis, [&](Index i) { collect(axis + 1, offset + i * step, shown); }, [] {});
  }

  // The axis and those within it, the elements in the order of collect(). `indent` is what each line of it
  // begins with; `width` what is left of a line, brackets that close behind it taken off.
  std::string nested(int axis, const std::string& indent, std::size_t width) {
    std::string out = axis + 1 == shape_.rank() ? row(axis, indent, width) : rows(axis, indent, width);
    return "[" + out.substr(indent.size()) + "]";
  }

  std::string row(int axis, const std::string& indent, std::size_t width) {
    const std::size_t most = width - std::min<std::size_t>(width, 1);  // for the bracket
    std::string out, line = indent;
    const auto add = [&](const std::string& word) {
      if (line.size() + word.size() > most && line.size() > indent.size()) {
        out += without_spaces_at_end(line) + "\n";
        line = indent;
      }
      line += word + " ";
    };
    walk(axis, [&](Index) { add(texts_[next_++]); }, [&] { add("..."); });
    line.pop_back();
    return out + line;
  }

  std::string rows(int axis, const std::string& indent, std::size_t width) {
    const std::string end(static_cast<std::size_t>(shape_.rank() - axis - 1), '\n');
    std::string out;
    const auto add = [&](const std::string& block) { out += indent + block + end; };
    walk(
        axis, [&](Index) { add(nested(axis + 1, indent + " ", width - std::min<std::size_t>(width, 1))); },
        [&] { add("..."); });
    out.resize(out.size() - end.size());
    return out;
  }

  const Shape& shape_;
  const PrintOptions& options_;
  bool summarised_;
  Strides strides_;
  std::vector<std::string> texts_;
  std::size_t next_ = 0;
};

std::string body(const char* data, const ir::Type& type, const PrintOptions& options) {
  if (type.shape.size() == 0) return "[]";
  if (type.shape.rank() == 0) return detail::scalar_text(data, type.dtype);
  return Layout(data, type, options).text();
}

std::string printed(const char* function, const Tensor& x, const PrintOptions& options,
                    const Location& where) {
  if (!x.defined()) return fmt::format("a tensor that {}", kNoValue);
  return detail::in_function(function, where, [&] {
    check(options);
    const ir::Type& type = x.impl()->type;
    const auto bytes = static_cast<std::size_t>(type.shape.size()) * size_bytes(type.dtype);
    const auto data = std::make_unique_for_overwrite<char[]>(bytes);
    x.read(data.get(), type.dtype, where);
    return body(data.get(), type, options) + " " + to_string(type);
  });
}

}  // namespace

std::string to_string(const Tensor& x, const PrintOptions& options, const Location& where) {
  return printed("to_string", x, options, where);
}

std::ostream& operator<<(std::ostream& out, const detail::Printed& x) {
  return out << printed("operator<<", x.tensor, {}, x.where);
}

}  // namespace tilewright
