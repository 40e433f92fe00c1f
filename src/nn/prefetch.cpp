// A thread that makes batches, and the few that wait.
#include <tilewright/nn/prefetch.h>

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace tilewright::nn {

struct Prefetch::Impl {
  Impl(std::function<Batch(std::uint64_t)> make_batch, const PrefetchOptions& options)
      : make(std::move(make_batch)),
        ahead(static_cast<std::size_t>(options.ahead)),
        given(options.first),
        thread([this, first = options.first] { run(first); }) {}
  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    thread.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void run(std::uint64_t number) {
    for (;; ++number) {
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return stopping || made.size() < ahead; });
        if (stopping) return;
      }
      std::exception_ptr thrown;
      Batch batch;
      try {
        batch = make(number);
      } catch (...) {
        thrown = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex);
        if (thrown)
          failure = thrown;
        else
          made.push_back(std::move(batch));
      }
      changed.notify_all();
      if (thrown) return;
    }
  }

  PrefetchedBatch next() {
    const auto begin = std::chrono::steady_clock::now();
    PrefetchedBatch taken;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return !made.empty() || failure; });
      if (made.empty()) std::rethrow_exception(failure);
      taken.batch = std::move(made.front());
      made.pop_front();
      taken.number = given++;
    }
    changed.notify_all();
    taken.waited_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return taken;
  }

  const std::function<Batch(std::uint64_t)> make;
  const std::size_t ahead;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Batch> made;
  std::exception_ptr failure;
  bool stopping = false;
  std::uint64_t given;  // the number of the next batch that is taken
  std::thread thread;   // last: it uses what stands before it
};

Prefetch::Prefetch(std::function<Batch(std::uint64_t number)> make, const PrefetchOptions& options,
                   const Location& where) {
  if (options.ahead < 1 || !make)
    throw Error(fmt::format("Prefetch: {} batches ahead{}", options.ahead,
                            make ? "; at least 1" : ", and no function that makes them"),
                where);
  impl_ = std::make_unique<Impl>(std::move(make), options);
}

Prefetch::~Prefetch() = default;
Prefetch::Prefetch(Prefetch&& from) noexcept = default;

PrefetchedBatch Prefetch::next() { return impl_->next(); }

}  // namespace tilewright::nn
