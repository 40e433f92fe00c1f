// The mutex of a Context and of a compiled function. No thread holds one while a function of the user's runs:
// that may wait for another thread, which has work of its own to do with the same Context.
#pragma once

#include <mutex>
#include <tuple>
#include <utility>

namespace tilewright::detail {

// A recursive mutex whose owner can open it at once, however often it has locked it.
class OpenMutex {
 public:
  void lock() {
    mutex_.lock();
    ++depth_;
  }
  bool try_lock() {
    if (!mutex_.try_lock()) return false;
    ++depth_;
    return true;
  }
  void unlock() {
    --depth_;
    mutex_.unlock();
  }
  // Unlocks it as often as this thread has locked it, and says how often that was.
  int open() {
    const int depth = depth_;
    for (int i = 0; i < depth; ++i) unlock();
    return depth;
  }

 private:
  std::recursive_mutex mutex_;
  int depth_ = 0;  // guarded by mutex_
};

// Opens mutexes that this thread has locked, and locks them as before in the end: together, so that no thread
// holds one of them while it waits for another.
template <class... Mutex>
class Opened {
 public:
  explicit Opened(Mutex&... mutexes) : mutexes_(mutexes...), depths_{mutexes.open()...} {}
  ~Opened() {
    std::apply(
        [&](Mutex&... each) {
          const std::scoped_lock all(each...);
          const int* depth = depths_;
          (lock(each, *depth++), ...);
        },
        mutexes_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

 private:
  static void lock(OpenMutex& mutex, int depth) {
    for (int i = 0; i < depth; ++i) mutex.lock();
  }
  std::tuple<Mutex&...> mutexes_;
  int depths_[sizeof...(Mutex)];
};

}  // namespace tilewright::detail
