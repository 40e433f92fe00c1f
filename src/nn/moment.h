// A moment of an optimizer in the type that it is kept in.
#pragma once

#include "nn/update_rules.h"

#include <string_view>
#include <vector>

namespace tilewright::nn {

// An average of gradients, or of their squares, in slots of a parameter's state: one in f32 or bf16, two in 8
// bits by blocks, codes and scales. It is computed in f32 and rounded once a step: to nearest in 16 bits,
// stochastically in 8, by the step's number and the parameter's name.
class Moment {
 public:
  enum class Of : std::uint8_t { gradients, squares };
  Moment(Of of, DType type, std::size_t first_slot) : of_(of), type_(type), first_(first_slot) {}
  std::size_t slots() const { return type_ == DType::f8e4m3 ? 2 : 1; }
  std::vector<SlotType> types(const NamedTensor& parameter) const;
  // f32, of the parameter's shape.
  Tensor read(const std::vector<Tensor>& slots) const;
  std::vector<Tensor> written(const Tensor& value, const UpdateRule::Step& step) const;

 private:
  Of of_;
  DType type_;
  std::size_t first_;
};

// Throws Error where a moment of this decay, `called` so, cannot be kept in the type: another type than f32,
// bf16 and f8e4m3; bf16 where the average would stand still; 8 bits where its roundings would be too large.
void check_moment(std::string_view optimizer, std::string_view called, double beta, DType type,
                  const Location& where);

}  // namespace tilewright::nn
