// InlineVector: a vector whose first elements lie in it, for lists that hardly ever are longer: copies of
// these ask for no memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace tilewright {

template <class T, std::size_t kInside>
class InlineVector {
 public:
  InlineVector() = default;
  InlineVector(const InlineVector&) = default;
  InlineVector& operator=(const InlineVector&) = default;
  InlineVector(InlineVector&& from) noexcept
      : size_(std::exchange(from.size_, 0)), few_(std::move(from.few_)), many_(std::move(from.many_)) {}
  InlineVector& operator=(InlineVector&& from) noexcept {
    size_ = std::exchange(from.size_, 0);
    few_ = std::move(from.few_);
    many_ = std::move(from.many_);
    return *this;
  }
  ~InlineVector() = default;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return size_ <= kInside ? few_.data() : many_.data(); }
  T* end() { return begin() + size_; }
  const T* begin() const { return size_ <= kInside ? few_.data() : many_.data(); }
  const T* end() const { return begin() + size_; }
  const T& operator[](std::size_t i) const { return begin()[i]; }
  const T& front() const { return *begin(); }
  const T& back() const { return end()[-1]; }

  void push_back(T element) { insert(end(), std::move(element)); }
  void insert(const T* place, T element) {
    const auto at = place - begin();
    resize(size_ + 1);
    std::move_backward(begin() + at, end() - 1, end());
    begin()[at] = std::move(element);
  }
  void erase(const T* place) {
    T* const at = begin() + (place - begin());
    std::move(at + 1, end(), at);
    resize(size_ - 1);
  }

 private:
  // Elements move where they begin to lie in the other place.
  void resize(std::size_t size) {
    if (size_ <= kInside && size > kInside) {
      many_.assign(std::make_move_iterator(few_.begin()), std::make_move_iterator(few_.end()));
      many_.resize(size);
    } else if (size_ > kInside && size <= kInside) {
      std::move(many_.begin(), many_.begin() + static_cast<std::ptrdiff_t>(size), few_.begin());
      many_.clear();
    } else if (size > kInside) {
      many_.resize(size);
    } else if (size < size_) {
      few_[size] = T();
    }
    size_ = size;
  }

  std::size_t size_ = 0;
  std::array<T, kInside> few_ = {};
  std::vector<T> many_;  // all of them, where they are more
};

}  // namespace tilewright
