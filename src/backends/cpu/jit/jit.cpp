// ORC without LLJIT: kernels need no IR layer, no static constructors and no platform runtime, only JITLink.
#include "backends/cpu/jit/jit.h"

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectFileInterface.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/MemoryBuffer.h>

#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>

namespace tilewright::cpu {

namespace orc = llvm::orc;

// One ORC session. Shared by the Jit and its loaded objects, whichever ends last closes it.
class JitSession {
 public:
  JitSession(std::unique_ptr<orc::ExecutorProcessControl> process)
      : session(std::move(process)),
        linker(session, session.getExecutorProcessControl().getMemMgr()),
        process_symbols(session.createBareJITDylib("process")) {
    // Linking reports its cause here and a general "failed to materialize" to whoever looks a symbol up.
    session.setErrorReporter([this](llvm::Error error) {
      const std::lock_guard lock(report_mutex);
      report += llvm::toString(std::move(error)) + "\n";
    });
  }
  ~JitSession() { llvm::consumeError(session.endSession()); }

  std::string take_report() {
    const std::lock_guard lock(report_mutex);
    return std::exchange(report, {});
  }

  orc::ExecutionSession session;
  orc::ObjectLinkingLayer linker;
  orc::JITDylib& process_symbols;
  std::atomic<long> objects = 0;

 private:
  std::mutex report_mutex;
  std::string report;
};

struct LoadedObject::State {
  ~State() {
    if (library) llvm::consumeError(session->session.removeJITDylib(*library));
  }
  std::shared_ptr<JitSession> session;
  orc::JITDylib* library = nullptr;
  std::map<std::string, void*, std::less<>> symbols;
};

LoadedObject::LoadedObject(std::unique_ptr<State> state) : state_(std::move(state)) {}
LoadedObject::LoadedObject(LoadedObject&&) noexcept = default;
LoadedObject& LoadedObject::operator=(LoadedObject&&) noexcept = default;
LoadedObject::~LoadedObject() = default;

void* LoadedObject::symbol(std::string_view name) const {
  const auto found = state_->symbols.find(name);
  return found == state_->symbols.end() ? nullptr : found->second;
}

Jit::Jit(std::shared_ptr<JitSession> session) : session_(std::move(session)) {}
Jit::~Jit() = default;

Result<std::unique_ptr<Jit>> Jit::create() {
  auto process = orc::SelfExecutorProcessControl::Create();
  if (!process) return failure(Failure::Kind::device, "no JIT: " + llvm::toString(process.takeError()));
  auto session = std::make_shared<JitSession>(std::move(*process));
  auto generator = orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(/*GlobalPrefix=*/'\0');
  if (!generator) return failure(Failure::Kind::device, "no JIT: " + llvm::toString(generator.takeError()));
  session->process_symbols.addGenerator(std::move(*generator));
  return std::unique_ptr<Jit>(new Jit(std::move(session)));
}

Result<LoadedObject> Jit::load(std::string_view object_bytes) {
  const auto fail = [this](llvm::Error error) {
    std::string message = "cannot load the object: " + llvm::toString(std::move(error));
    if (const auto cause = session_->take_report(); !cause.empty()) message += "\n" + cause;
    return failure(Failure::Kind::compile, std::move(message));
  };
  auto& session = session_->session;
  const auto id = fmt::format("object_{}", session_->objects++);
  auto bytes =
      llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object_bytes.data(), object_bytes.size()), id);
  auto interface = orc::getObjectFileInterface(session, bytes->getMemBufferRef());
  if (!interface) return fail(interface.takeError());
  orc::SymbolLookupSet names;
  for (const auto& [name, flags] : interface->SymbolFlags) names.add(name);

  auto state = std::make_unique<LoadedObject::State>();
  state->session = session_;
  state->library = &session.createBareJITDylib(id);
  state->library->addToLinkOrder(session_->process_symbols);
  if (auto error = session_->linker.add(*state->library, std::move(bytes), std::move(*interface)))
    return fail(std::move(error));
  auto found = session.lookup(orc::makeJITDylibSearchOrder(state->library), std::move(names));
  if (!found) return fail(found.takeError());
  for (const auto& [name, definition] : *found)
    state->symbols.emplace((*name).str(), definition.getAddress().toPtr<void*>());
  return LoadedObject(std::move(state));
}

}  // namespace tilewright::cpu
