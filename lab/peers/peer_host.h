// PeerHost: the process in which other people's programs run, and what comes back to life with it.
//
// Several contenders share a process, because each start costs seconds and each holds the device's memory.
// One that ends the process must cost the others nothing: the next that is asked for something finds a new
// process, and brings its inputs and its program there.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "peers/peer_files.h"
#include "peers/peer_process.h"
#include "peers/peers.h"

namespace tilewright::lab {

class PeerHost {
 public:
  // Starts the script with one interpreter and these variables ("NAME=value"), and does not wait: importing
  // PyTorch takes seconds, in which others can begin, too. The process ends with the thread that calls this.
  static Result<std::shared_ptr<PeerHost>> start(const std::string& python, const PeerOptions& options,
                                                 std::vector<std::string> variables = {});
  // Waits until it answers; a Failure when it has no PyTorch, PyTorch no such device, or the script ends.
  Status greet();

  // Asks the process that there is. A process that ends over it is the failure of whoever asked.
  Result<nlohmann::json> ask(const nlohmann::json& request);
  Status tell(const nlohmann::json& request);
  // Starts another process where the last one has ended.
  Status revive();
  bool is_alive() const { return process_.has_value(); }
  int generation() const { return generation_; }  // of the process, counted from 1
  int next_id() { return next_id_++; }
  const nlohmann::json& facts() const { return facts_; }  // of the answer to hello
  const PeerOptions& options() const { return options_; }
  const std::string& folder() const { return folder_.path(); }

 private:
  PeerHost() = default;
  Status start_process();
  PeerFolder folder_;
  std::optional<PeerProcess> process_;
  PeerOptions options_;
  std::string python_;
  std::vector<std::string> variables_;
  nlohmann::json facts_;
  int generation_ = 0, next_id_ = 0;
};
using PeerHostPtr = std::shared_ptr<PeerHost>;

// One instance's inputs as files, and in the process; shared by the jobs on them.
class PeerInputs {
 public:
  // Writes them now and after each change.
  static Result<std::shared_ptr<PeerInputs>> write(const PeerHostPtr& host, const PeerWorkload& workload);
  ~PeerInputs();
  PeerInputs(const PeerInputs&) = delete;
  PeerInputs& operator=(const PeerInputs&) = delete;

  Status bring();  // to the process that there is, as they are now
  PeerHost& host() const { return *host_; }
  const PeerWorkload& workload() const { return workload_; }
  int id() const { return id_; }

 private:
  PeerInputs(PeerHostPtr host, const PeerWorkload& workload)
      : host_(std::move(host)), workload_(workload), id_(host_->next_id()) {}
  Status write_files() const;
  std::string file(std::size_t input, std::int64_t copy) const;
  nlohmann::json describe() const;
  PeerHostPtr host_;
  PeerWorkload workload_;
  int id_;
  Status written_ = Unit{};
  int generation_ = 0;  // of the process that knows them
  bool loaded_ = false;
};

// One contender at the other end; dropped there when the last function that knows it goes.
class PeerJob {
 public:
  PeerJob(std::shared_ptr<PeerInputs> inputs, std::string mode)
      : inputs_(std::move(inputs)), mode_(std::move(mode)), id_(inputs_->host().next_id()) {}
  ~PeerJob();
  PeerJob(const PeerJob&) = delete;
  PeerJob& operator=(const PeerJob&) = delete;

  Status bring();  // program and inputs to the process that there is
  // Microseconds of so many iterations: of the calls, and of the device's own work in them.
  Result<double> call_us(std::int64_t first, std::int64_t count);
  Result<double> device_us(std::int64_t first, std::int64_t count);
  // What its programs waited for data in the iterations since the last question.
  double take_waited_us() { return std::exchange(waited_us_, 0.0); }
  Status poison(std::size_t output, std::uint8_t byte);
  Status read(std::size_t output, const ElementsVisitor& visit);
  Status release();  // what the last iteration left

 private:
  // A request of this job's own, with its id. After one that ended the process every other fails: it would
  // again.
  Result<nlohmann::json> ask(nlohmann::json request);
  Result<double> run(const char* command, std::int64_t first, std::int64_t count);
  std::string output_file() const;
  std::shared_ptr<PeerInputs> inputs_;
  std::string mode_;
  int id_;
  int generation_ = 0;  // of the process that knows it
  double waited_us_ = 0;
  std::int64_t last_ = -1;  // iteration that its outputs hold
  std::optional<Failure> ended_;
};

}  // namespace tilewright::lab
