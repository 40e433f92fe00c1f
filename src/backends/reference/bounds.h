// Bounds on what rounding may change, carried beside the values of a run.
//
// For each element: |value in any correct backend - value here| ≤ error. An infinite error means that the
// element is undecided: the backend may hold anything, NaN too. Integers and indices are exact or undecided;
// an undecided bool has the error 1.
#pragma once

#include "backends/reference/memory.h"

namespace tilewright::reference {

// The distance by which a primitive's result y moves when its operands move by their errors.
double spread(tile::Prim prim, double y, const double value[3], const double error[3], int arity);

// The error of the result of a compute op, whose primitive may err by `short_form` of its result beside its
// own bound. May turn a float that overflows its type into infinity.
void propagate(const tile::Kernel& kernel, const tile::Op& op, const ErrorModel& model, double short_form,
               Values& values);

// The largest change that rounding to `dtype` can bring near `value`: half the distance of its neighbours.
double half_spacing(DType dtype, double value);

class BoundsTracker {
 public:
  BoundsTracker(const tile::Kernel& kernel, const std::vector<BoundView>& views,
                const std::vector<ViewBinding>& bindings, ErrorModel model);

  void compute(const tile::Op& op, Values& values) const {
    propagate(kernel_, op, model_, short_forms_[static_cast<std::size_t>(op.results[0])], values);
  }
  void load(const tile::Op& op, const BlockWalk& walk, Values& values) const;
  void store(const tile::Op& op, const BlockWalk& walk, const Values& values);
  void gather(const tile::Op& op, const BoundView& view, Values& values) const;
  void scatter(const tile::Op& op, const BoundView& view, const Values& values);
  void atomic_add(const tile::Op& op, const BoundView& view, const Values& values);
  // Rounding may decide whether these blocks run, or how often: what they write is undecided.
  void undecided(const std::vector<tile::Block>& blocks);

  ErrorBounds finish();

 private:
  struct ViewErrors {
    std::vector<double> error;             // by element of the buffer; empty: never written
    std::vector<double> magnitude, count;  // of what was added atomically
    std::size_t origin = 0;
    bool undecided = false;
    DType dtype = DType::f32;
    double& at(std::vector<double>& list, Index offset) const {
      return list[static_cast<std::size_t>(static_cast<Index>(origin) + offset)];
    }
  };
  ViewErrors& errors_of(const tile::Op& op) { return views_[static_cast<std::size_t>(op.param)]; }
  const ViewErrors& errors_of(const tile::Op& op) const { return views_[static_cast<std::size_t>(op.param)]; }
  bool starts_undecided(const tile::Op& op, const Values& values) const;

  const tile::Kernel& kernel_;
  ErrorModel model_;
  std::vector<double> short_forms_;  // by value
  std::vector<ViewErrors> views_;
};

}  // namespace tilewright::reference
