// How things fail: Error for a user's mistake, Result for what may fail in a correct program, CHECK for our
// own bugs.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#pragma GCC visibility push(default)
namespace tilewright {

// A user's mistake, thrown where the mistake is made; what() names the op, the shapes and the user's source
// line.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
  // Appends " (at file.cpp:41)"; the file without its folders.
  Error(const std::string& message, const std::source_location& at);
};

// An Error that is nobody's mistake: a device that is not there, a file that cannot be written, memory that
// ran out. The same call may succeed elsewhere, or later.
class Unavailable : public Error {
 public:
  using Error::Error;
};

// " (at file.cpp:41)"
std::string at(const std::source_location& location);

// Why an expected failure happened: compile, out of memory, I/O, a missing backend.
struct Failure {
  enum class Kind { unsupported, compile, out_of_memory, io, device, not_found, invalid };
  Kind kind = Kind::invalid;
  std::string message;
  friend bool operator==(const Failure&, const Failure&) = default;
};
std::string_view name(Failure::Kind kind);  // "out_of_memory", …

// A Failure of this kind, for functions that return a Result.
inline Failure failure(Failure::Kind kind, std::string message) { return {kind, std::move(message)}; }

// A T or the Failure that prevented it.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}

  // Whether there is a T.
  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  // Why there is none; only where ok() is false.
  const Failure& error() const& { return std::get<1>(state_); }
  Failure error() && { return std::get<1>(std::move(state_)); }
  // The T, out of a temporary one as a value of its own. Throws Error with the Failure's message where there
  // is none.
  T& value() & { return get(); }
  const T& value() const& { return const_cast<Result*>(this)->get(); }
  T value() && { return std::move(get()); }
  T& operator*() & { return get(); }
  const T& operator*() const& { return const_cast<Result*>(this)->get(); }
  T operator*() && { return std::move(get()); }
  T* operator->() & { return &get(); }
  const T* operator->() const& { return &const_cast<Result*>(this)->get(); }

 private:
  T& get() {
    if (!ok()) throw Error(error().message);
    return std::get<0>(state_);
  }
  std::variant<T, Failure> state_;
};

struct Unit {
  friend bool operator==(const Unit&, const Unit&) = default;
};
using Status = Result<Unit>;

// Breaks only by a bug of ours: throws std::logic_error with the condition and the place.
[[noreturn]] void check_failed(const char* condition, const std::string& why,
                               const std::source_location& where);
#define TW_CHECK(condition, why)                                                                    \
  do {                                                                                              \
    if (!(condition)) ::tilewright::check_failed(#condition, why, std::source_location::current()); \
  } while (false)

}  // namespace tilewright
#pragma GCC visibility pop
