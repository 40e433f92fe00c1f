// ThreadPool: pinned threads that run one loop at a time, with a dispatch well under 2 µs while they are
// awake.
#pragma once

#include <tilewright/base/shape.h>

#include <memory>
#include <type_traits>

#pragma GCC visibility push(default)
namespace tilewright {

struct ThreadPoolOptions {
  int spin_us =
      50;           // how long an idle worker polls before it sleeps; 0 when there are more threads than CPUs
  bool pin = true;  // bind worker i to the i-th CPU the process may use, and elsewhere when a caller is there
  friend bool operator==(const ThreadPoolOptions&, const ThreadPoolOptions&) = default;
};

// The CPUs the calling thread may run on, by its affinity mask.
int allowed_cpu_count();

// The most threads that a pool may be asked for: several times the hardware threads of the largest servers of
// today (2 × 192 cores of two threads each).
inline constexpr int kMostThreads = 4096;

// `threads` where a pool may be asked for so many: 0 to kMostThreads. Throws Error otherwise.
int checked_threads(int threads);

class ThreadPool {
 public:
  using Body = void (*)(void* context, Index begin, Index end, int worker);
  using PlainBody = void (*)(void* context, Index begin, Index end);

  // 0 threads: one for each CPU in the affinity mask. The calling thread takes part as worker 0, so `threads
  // - 1` are started; it is not pinned, its owner decides that, and a worker whose CPU it runs on
  // makes room. Throws Error where the
  // count is below 0 or over kMostThreads, and where the system does not start so many.
  explicit ThreadPool(int threads = 0, ThreadPoolOptions options = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const;              // threads, the calling one among them
  int cpu_of(int worker) const;  // the CPU meant for it now, -1 without pinning

  // Runs f(begin, end, worker) over parts of [0, count) and returns when all are done. grain 0: one
  // contiguous part for each worker; otherwise workers take parts of `grain` as they become free. Each index
  // is run exactly once; which worker runs a part is not promised: a part whose worker is still asleep is run
  // by the caller. The first exception is rethrown here, parts not yet begun are dropped. Calls from inside a
  // body run inline on that worker, as one part whatever the grain, and so do calls that have only one part;
  // calls from several threads take turns.
  template <class F>
  void parallel_for(Index count, F&& f, Index grain = 0) {
    using Function = std::remove_reference_t<F>;
    const Body body = [](void* context, Index begin, Index end, int worker) {
      (*static_cast<Function*>(context))(begin, end, worker);
    };
    run(body, const_cast<void*>(static_cast<const void*>(&f)), count, grain);
  }

  // The same without a template, for generated code.
  void run(Body body, void* context, Index count, Index grain);
  void run(PlainBody body, void* context, Index count, Index grain);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tilewright
#pragma GCC visibility pop
