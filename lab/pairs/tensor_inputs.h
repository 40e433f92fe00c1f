// The inputs of a pair as tensors: described once, made at random, in as many copies as a cache could hold.
#pragma once

#include <tilewright/tensor/tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "harness/run/workload.h"
#include "pairs/host_rows.h"

namespace tilewright::lab {

struct InputSpec {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::function<Tensor(Context&)> make;  // new random values, from the context's random state
  bool rotated = true;                   // false: small and shared by all copies, like weights
};
// mean + deviation · N(0, 1)
struct Normal {
  double mean = 0, deviation = 1;
};
InputSpec normal_input(std::string name, const Shape& shape, DType dtype, Normal values = {});
InputSpec integer_input(std::string name, const Shape& shape, Index high);  // i64, uniform in [0, high)
InputSpec shared(InputSpec spec);                                           // the same for every copy

// How many copies of the inputs are rotated. Work that fits a quarter of the cache twice over is measured as
// a program meets it, resident; other work finds no input in the cache.
std::int64_t copies_for(const std::vector<InputSpec>& inputs, double output_bytes, double cache_bytes);

double input_bytes(const InputSpec& input);

class TensorInputs {
 public:
  TensorInputs(std::vector<InputSpec> specs, std::int64_t copies, Context& context);

  Status refresh(std::uint64_t seed);
  const std::vector<Tensor>& copy(std::int64_t iteration) const {
    return copies_[static_cast<std::size_t>(iteration) % copies_.size()];
  }
  std::int64_t copies() const { return static_cast<std::int64_t>(copies_.size()); }
  const std::vector<InputSpec>& specs() const { return specs_; }
  Result<std::uint64_t> digest(ThreadPool& pool) const;
  std::vector<MemoryRange> memory() const;
  HostArrays host(std::int64_t iteration, ThreadPool& pool) const;
  double working_bytes() const;  // of all copies
  // Called after each refresh, by contenders that keep copies of their own.
  void on_refresh(std::function<Status()> listener) { listeners_.push_back(std::move(listener)); }

 private:
  std::vector<InputSpec> specs_;
  Context* context_;
  std::vector<std::vector<Tensor>> copies_;  // copies_[c][input]; shared inputs are the same tensor
  std::vector<std::function<Status()>> listeners_;
};

// The elements in float64, converted on all cores.
HostArray to_doubles(const Tensor& t, ThreadPool& pool);
// The elements as they are stored, in pieces where the host cannot read them in place.
Status visit_elements(const Tensor& t, const ElementsVisitor& visit);
// A hash of the bytes of a tensor.
Result<std::uint64_t> tensor_digest(const Tensor& t, ThreadPool& pool);
MemoryRange memory_of(const Tensor& t);

}  // namespace tilewright::lab
