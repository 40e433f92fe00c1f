// The pool's protocol. Each worker owns one word, `state`: the caller offers a job by idle → offered, the
// worker takes it by offered → taken and reports by taken → idle. An offer that was not taken when the caller
// is through with its own part is withdrawn (offered → idle) and run by the caller: nobody waits for a thread
// that is still waking up.
//
// The calling thread is worker 0, and the scheduler puts it on any CPU. On the CPU of a pinned worker it
// would keep that worker from running: both parts on one core, for as long as the scheduler leaves the caller
// there, while the caller's last CPU stands empty. So a call that begins on a worker's CPU first moves that
// worker to the CPU that the last call ran on.
#include <tilewright/base/error.h>
#include <tilewright/base/thread_pool.h>

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace tilewright {

namespace {

enum State : std::uint32_t { kIdle, kOffered, kTaken, kStop };

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Polls, then sleeps in the kernel, until `state` differs from `old`.
void wait_while(const std::atomic<std::uint32_t>& state, std::uint32_t old, std::chrono::microseconds spin) {
  if (state.load(std::memory_order_acquire) != old) return;
  if (spin.count() > 0) {
    const auto end = std::chrono::steady_clock::now() + spin;
    do {
      // Reading the clock costs about as much as a pause; once in 16 keeps the reaction fast.
      for (int i = 0; i < 16; ++i) {
        if (state.load(std::memory_order_acquire) != old) return;
        pause_cpu();
      }
    } while (std::chrono::steady_clock::now() < end);
  }
  while (state.load(std::memory_order_acquire) == old) state.wait(old);
}

// Sequentially consistent on purpose: notify skips the system call when it sees no sleeper, and must not look
// before the new state is visible.
void set_and_wake(std::atomic<std::uint32_t>& state, std::uint32_t value) {
  state.exchange(value);
  state.notify_all();
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) {  // more CPUs than cpu_set_t has bits: no pinning
    cpus.assign(std::max(1u, std::thread::hardware_concurrency()), -1);
  }
  return cpus;
}

void pin(std::thread& thread, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  pthread_setaffinity_np(thread.native_handle(), sizeof set, &set);  // a refusal costs speed, not correctness
}

// A pool whose body the current thread is in, and those around it: a nested call runs inline.
struct Frame {
  const void* pool;
  int worker;
  const Frame* outer;
};
thread_local const Frame* current_frame = nullptr;

const Frame* frame_of(const void* pool) {
  const Frame* frame = current_frame;
  while (frame != nullptr && frame->pool != pool) frame = frame->outer;
  return frame;
}

class ScopedFrame {
 public:
  ScopedFrame(const void* pool, int worker) : frame_{pool, worker, current_frame} { current_frame = &frame_; }
  ~ScopedFrame() { current_frame = frame_.outer; }
  ScopedFrame(const ScopedFrame&) = delete;
  ScopedFrame& operator=(const ScopedFrame&) = delete;

 private:
  Frame frame_;
};

struct Job {
  ThreadPool::Body body = nullptr;
  void* context = nullptr;
  Index count = 0;
  Index grain = 0;
  int parts = 0;  // workers that take part
};

struct Worker {
  alignas(64) std::atomic<std::uint32_t> state{kIdle};  // a cache line of its own
  std::atomic<int> cpu{-1};                             // the one meant for it, -1 without pinning
  std::thread thread;
};

}  // namespace

int allowed_cpu_count() { return static_cast<int>(allowed_cpus().size()); }

int checked_threads(int threads) {
  if (threads >= 0 && threads <= kMostThreads) return threads;
  throw Error(std::to_string(threads) + " threads: give 1 to " + std::to_string(kMostThreads) +
              ", or 0 for one on each allowed core");
}

struct ThreadPool::Impl {
  alignas(64) std::atomic<Index> next{0};  // the first index that no worker has taken yet
  std::exception_ptr error;                // of the thread that set `failed`
  std::chrono::microseconds spin{0};
  bool one_a_cpu = false;  // workers are pinned, each to a CPU of its own
  std::vector<Worker> workers;
  std::mutex turn;  // one job at a time
  Job job;          // written before an offer, read after it is taken
  std::atomic<bool> failed{false};

  explicit Impl(int threads) : workers(static_cast<std::size_t>(threads)) {}
  ~Impl();  // ends the threads that were started
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void start();
  void serve(int id);
  void run_part(int part, int worker);
  void call(Index begin, Index end, int worker);
  void make_room_for_caller();
  void dispatch(const Job& new_job);
  void collect();
};

ThreadPool::Impl::~Impl() {
  for (Worker& worker : workers)
    if (worker.thread.joinable()) set_and_wake(worker.state, kStop);
  for (Worker& worker : workers)
    if (worker.thread.joinable()) worker.thread.join();
}

void ThreadPool::Impl::start() {
  for (std::size_t w = 1; w < workers.size(); ++w) {
    try {
      workers[w].thread = std::thread([this, w] { serve(static_cast<int>(w)); });
    } catch (const std::system_error& error) {
      throw Error(std::to_string(workers.size()) + " threads: the system starts no more than " +
                  std::to_string(w) + " (" + error.code().message() + "); give fewer threads");
    }
    if (const int cpu = workers[w].cpu.load(); cpu >= 0) pin(workers[w].thread, cpu);
  }
}

// The thread of worker `id`.
void ThreadPool::Impl::serve(int id) {
  std::atomic<std::uint32_t>& state = workers[static_cast<std::size_t>(id)].state;
  for (;;) {
    wait_while(state, kIdle, spin);
    std::uint32_t seen = kOffered;
    if (state.compare_exchange_strong(seen, kTaken, std::memory_order_acquire)) {
      run_part(id, id);
      set_and_wake(state, kIdle);
    } else if (seen == kStop) {
      return;
    }
  }
}

void ThreadPool::Impl::call(Index begin, Index end, int worker) {
  try {
    job.body(job.context, begin, end, worker);
  } catch (...) {
    if (!failed.exchange(true)) error = std::current_exception();
    next.store(job.count, std::memory_order_relaxed);
  }
}

void ThreadPool::Impl::run_part(int part, int worker) {
  const ScopedFrame frame(this, worker);
  if (job.grain == 0) {
    const Index each = job.count / job.parts;
    const Index longer = job.count % job.parts;  // the first `longer` parts have one more
    const Index begin = part * each + std::min<Index>(part, longer);
    if (!failed.load(std::memory_order_relaxed)) call(begin, begin + each + (part < longer ? 1 : 0), worker);
    return;
  }
  for (;;) {
    const Index begin = next.fetch_add(job.grain, std::memory_order_relaxed);
    if (begin >= job.count) return;
    call(begin, std::min(job.count - begin, job.grain) + begin, worker);
  }
}

// Moves a worker that is pinned to the caller's CPU to the one where the last call began. No two workers have
// one CPU before or after.
void ThreadPool::Impl::make_room_for_caller() {
  const int here = sched_getcpu();
  const int before = workers[0].cpu.load(std::memory_order_relaxed);
  if (here < 0 || here == before) return;
  workers[0].cpu.store(here, std::memory_order_relaxed);
  for (std::size_t w = 1; w < workers.size(); ++w) {
    if (workers[w].cpu.load(std::memory_order_relaxed) != here) continue;
    workers[w].cpu.store(before, std::memory_order_relaxed);
    pin(workers[w].thread, before);
    return;
  }
}

void ThreadPool::Impl::dispatch(const Job& new_job) {
  if (one_a_cpu) make_room_for_caller();
  job = new_job;
  next.store(0, std::memory_order_relaxed);
  failed.store(false, std::memory_order_relaxed);
  for (int w = 1; w < job.parts; ++w) set_and_wake(workers[static_cast<std::size_t>(w)].state, kOffered);
  run_part(0, 0);
  collect();
  if (failed.load(std::memory_order_relaxed)) std::rethrow_exception(std::exchange(error, nullptr));
}

// Takes back the offers nobody took, then waits for the others.
void ThreadPool::Impl::collect() {
  for (int w = 1; w < job.parts; ++w) {
    std::uint32_t seen = kOffered;
    if (workers[static_cast<std::size_t>(w)].state.compare_exchange_strong(seen, kIdle)) {
      if (job.grain == 0) run_part(w, 0);
    }
  }
  for (int w = 1; w < job.parts; ++w) {
    wait_while(workers[static_cast<std::size_t>(w)].state, kTaken, spin);
  }
}

ThreadPool::ThreadPool(int threads, ThreadPoolOptions options) {
  const std::vector<int> cpus = allowed_cpus();
  const int available = static_cast<int>(cpus.size());
  const int size = checked_threads(threads) > 0 ? threads : std::min(available, kMostThreads);
  impl_ = std::make_unique<Impl>(size);
  impl_->spin = std::chrono::microseconds(size <= available ? options.spin_us : 0);
  impl_->one_a_cpu = options.pin && size <= available && cpus.front() >= 0;
  for (int w = 0; w < size; ++w) {
    impl_->workers[static_cast<std::size_t>(w)].cpu =
        options.pin ? cpus[static_cast<std::size_t>(w % available)] : -1;
  }
  impl_->start();
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::size() const { return static_cast<int>(impl_->workers.size()); }
int ThreadPool::cpu_of(int worker) const {
  return impl_->workers.at(static_cast<std::size_t>(worker)).cpu.load(std::memory_order_relaxed);
}

void ThreadPool::run(Body body, void* context, Index count, Index grain) {
  if (count <= 0) return;
  if (const Frame* frame = frame_of(impl_.get())) return body(context, 0, count, frame->worker);
  const std::lock_guard lock(impl_->turn);
  const Index parts = grain > 0 ? ceil_div(count, grain) : count;
  const int workers = static_cast<int>(std::min<Index>(parts, size()));
  if (workers == 1) {
    const ScopedFrame frame(impl_.get(), 0);
    return body(context, 0, count, 0);
  }
  impl_->dispatch({body, context, count, grain, workers});
}

void ThreadPool::run(PlainBody body, void* context, Index count, Index grain) {
  struct Plain {
    PlainBody body;
    void* context;
  } plain{body, context};
  const Body forward = [](void* at, Index begin, Index end, int) {
    const auto& to = *static_cast<const Plain*>(at);
    to.body(to.context, begin, end);
  };
  run(forward, &plain, count, grain);
}

}  // namespace tilewright
