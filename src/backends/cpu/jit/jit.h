// Object bytes to callable code in this process, through LLVM's ORC layers.
#pragma once

#include <tilewright/base/error.h>

#include <memory>
#include <string>
#include <string_view>

namespace tilewright::cpu {

class JitSession;

// The code of one object: its functions stay callable for as long as this lives. Outlives the Jit that loaded
// it.
class LoadedObject {
 public:
  LoadedObject(LoadedObject&&) noexcept;
  LoadedObject& operator=(LoadedObject&&) noexcept;
  ~LoadedObject();

  // The address of a function or variable with C linkage; nullptr when the object defines no such name.
  void* symbol(std::string_view name) const;

 private:
  friend class Jit;
  struct State;
  explicit LoadedObject(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Links objects in the process. Each object has its own table of names, so two may define the same ones; what
// an object leaves undefined (memcpy, sinf …) is found in this process. May be used from several threads at
// once.
class Jit {
 public:
  static Result<std::unique_ptr<Jit>> create();
  ~Jit();

  // Links at once: a name that nobody defines is a Failure{compile} here, not a crash at the first call.
  Result<LoadedObject> load(std::string_view object_bytes);

 private:
  explicit Jit(std::shared_ptr<JitSession> session);
  std::shared_ptr<JitSession> session_;
};

}  // namespace tilewright::cpu
