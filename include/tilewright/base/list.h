// List: what functions return whose elements are looked into at once.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright {

// A vector whose elements, taken out of a temporary one, are values of their own: what is made of
// f.report().front() lives as long as whoever holds it, in a loop over f.report().front().breaks, too.
template <class T>
class List : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  List() = default;
  List(std::vector<T> elements) : std::vector<T>(std::move(elements)) {}

  // As a vector's; of a temporary List the element itself.
  const T& front() const& { return std::vector<T>::front(); }
  T& front() & { return std::vector<T>::front(); }
  T front() && { return std::move(std::vector<T>::front()); }
  const T& back() const& { return std::vector<T>::back(); }
  T& back() & { return std::vector<T>::back(); }
  T back() && { return std::move(std::vector<T>::back()); }
  const T& operator[](std::size_t place) const& { return std::vector<T>::operator[](place); }
  T& operator[](std::size_t place) & { return std::vector<T>::operator[](place); }
  T operator[](std::size_t place) && { return std::move(std::vector<T>::operator[](place)); }
  const T& at(std::size_t place) const& { return std::vector<T>::at(place); }
  T& at(std::size_t place) & { return std::vector<T>::at(place); }
  T at(std::size_t place) && { return std::move(std::vector<T>::at(place)); }
};

}  // namespace tilewright
#pragma GCC visibility pop
