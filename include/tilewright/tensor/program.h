// Program: a function of tensors that comes as the text of its graph.
#pragma once

#include <tilewright/base/list.h>
#include <tilewright/tensor/tensor.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright {

// What a graph's text says, as a function of a list of tensors that gives one: `stage_text(report,
// Stage::graph)` of a compiled function, or such a text written by hand. It may be called as it is, inside
// functions that are compiled or differentiated, and be compiled itself: compile(load_program("elu.tw")).
class Program {
 public:
  using Signature = std::vector<Tensor>(std::vector<Tensor>);
  struct Input {
    std::string name;
    DType dtype = DType::f32;
    Shape shape;
  };

  // Throws Error with the line and column of the text where it is no graph.
  explicit Program(std::string_view text, const Location& where = Location::current());

  // The outputs of the graph, for a tensor for each of its inputs. Throws Error where there are not as many,
  // or where one has another type or shape than its input.
  std::vector<Tensor> operator()(const std::vector<Tensor>& arguments,
                                 const Location& where = Location::current()) const;
  // What it is called with, in this order.
  const List<Input>& inputs() const&;
  List<Input> inputs() &&;
  std::string text() const;  // of its graph, which reads back as the same program

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace tilewright
#pragma GCC visibility pop
