// PeerProcess: a Python program at the other end of a socket, and one JSON object a line each way.
#pragma once

#include <tilewright/base/error.h>

#include <sys/types.h>
#include <string>
#include <vector>

namespace tilewright::lab {

class PeerProcess {
 public:
  // Starts `python script` with these variables ("NAME=value") beside the present ones. The Failure says what
  // is missing.
  static Result<PeerProcess> start(const std::string& python, const std::string& script,
                                   const std::vector<std::string>& variables = {});
  PeerProcess(PeerProcess&& other) noexcept;
  PeerProcess& operator=(PeerProcess&&) = delete;
  ~PeerProcess();

  // Sends a line and waits for the answering one. Until the next line the process stands still: none of its
  // threads takes a core from what is timed meanwhile. After a Failure it is ended: every later call fails.
  Result<std::string> ask(const std::string& line);

 private:
  PeerProcess(pid_t pid, int socket) : pid_(pid), socket_(socket) {}
  Failure end(const std::string& why);
  pid_t pid_;
  int socket_;
  std::string received_;  // beyond the last answer
};

}  // namespace tilewright::lab
