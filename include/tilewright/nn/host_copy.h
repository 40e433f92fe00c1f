// HostCopy: a tree's tensors as they were at some step, in the host's memory. A training goes on, in place,
// while the copy is written to a disk, or kept to go back to.
#pragma once

#include <tilewright/base/list.h>
#include <tilewright/tensor/tree.h>

#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::nn {

class HostCopy {
 public:
  struct Entry {
    std::string name;
    DType dtype = DType::f32;
    Shape shape;
    std::vector<std::byte> bytes;  // of the elements, row-major
  };

  // Takes what the tree holds now, in the place of what was taken before, whose memory is used again. Waits
  // for what computes the tensors.
  template <class T>
    requires tilewright::detail::IsTree<T>
  void take(const T& tree, const Location& where = Location::current()) {
    take_tensors(named_tensors(tree), where);
  }
  // The same of tensors by name.
  void take_tensors(const NamedTensors& tensors, const Location& where = Location::current());

  // The tree as it was, in the form of `like`, in memory of its own on the Context's device. Throws Error
  // where names, shapes or types are not those of `like`.
  template <class T>
    requires tilewright::detail::IsTree<T>
  T on(Context& ctx, const T& like, const Location& where = Location::current()) const {
    return with_tensors(like, tensors_on(ctx, where), where);
  }
  // The tensors as they were, by name, in memory of their own on the Context's device.
  NamedTensors tensors_on(Context& ctx, const Location& where = Location::current()) const;

  // What was taken, a tensor each, in the order of the tree's leaves.
  const List<Entry>& entries() const& { return entries_; }
  List<Entry> entries() && { return std::move(entries_); }
  // Whether nothing was taken yet.
  bool empty() const { return entries_.empty(); }

 private:
  List<Entry> entries_;
};

}  // namespace tilewright::nn
#pragma GCC visibility pop
