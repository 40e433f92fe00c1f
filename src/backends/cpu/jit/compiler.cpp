// Drives Clang's front end and LLVM's code generator in the process, with a file system that lives in memory.
#include "backends/cpu/jit/compiler.h"

#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/DiagnosticOptions.h>
#include <clang/Basic/FileManager.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Basic/Version.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/FrontendActions.h>
#include <clang/Lex/Preprocessor.h>
#include <clang/Serialization/ASTWriter.h>
#include <clang/Serialization/PCHContainerOperations.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <fmt/format.h>

#include <mutex>
#include <vector>

#include "backends/cpu/jit/device_headers.h"

namespace tilewright::cpu {

namespace {

// LLVM's table of targets is one per process and registration is not thread-safe.
void initialise_llvm_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
}

// Collects each diagnostic as a line; locations are as #line presents them.
class DiagnosticLines : public clang::DiagnosticConsumer {
 public:
  void HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& info) override {
    DiagnosticConsumer::HandleDiagnostic(level, info);
    if (level < clang::DiagnosticsEngine::Note) return;
    llvm::SmallString<128> message;
    info.FormatDiagnostic(message);
    text_ +=
        fmt::format("{}{}: {}\n", place(info), word(level), std::string_view(message.data(), message.size()));
  }
  const std::string& text() const { return text_; }

 private:
  static std::string place(const clang::Diagnostic& info) {
    if (!info.hasSourceManager() || info.getLocation().isInvalid()) return {};
    const auto at = info.getSourceManager().getPresumedLoc(info.getLocation());
    if (at.isInvalid()) return {};
    return fmt::format("{}:{}:{}: ", at.getFilename(), at.getLine(), at.getColumn());
  }
  static const char* word(clang::DiagnosticsEngine::Level level) {
    switch (level) {
      case clang::DiagnosticsEngine::Note:
        return "note";
      case clang::DiagnosticsEngine::Remark:
        return "remark";
      case clang::DiagnosticsEngine::Warning:
        return "warning";
      default:
        return "error";
    }
  }
  std::string text_;
};

constexpr const char* kPrecompiledText = "precompiled.h";
constexpr const char* kPrecompiledPath = "/precompiled.pch";

std::vector<std::string> frontend_arguments(const CompileOptions& options) {
  std::vector<std::string> arguments = {
      "-triple", "x86_64-unknown-linux-gnu", "-emit-obj", "-x", "c++", "-std=c++20", "-ffreestanding", "-I",
      "/", "-nostdsysteminc", "-nobuiltininc", "-nostdinc++", "-fno-rtti", "-fno-threadsafe-statics",
      "-fno-use-cxa-atexit", "-fwrapv",
      // The object may be placed anywhere in the address space.
      "-mrelocation-model", "pic", "-pic-level", "2", "-pic-is-pie", "-mframe-pointer=none",
      "-w"};  // warnings have no reader; where the text is wrong they only hide the error
  arguments.insert(arguments.end(), {"-target-cpu", options.target.cpu});
  if (!options.target.tune.empty()) arguments.insert(arguments.end(), {"-tune-cpu", options.target.tune});
  for (const auto& feature : options.target.features)
    arguments.insert(arguments.end(), {"-target-feature", "+" + feature});
  arguments.push_back(fmt::format("-mprefer-vector-width={}", 8 * options.target.vector_bytes));
  arguments.push_back(options.effort == Effort::none ? "-O0" : "-O3");
  arguments.push_back("-disable-llvm-passes");  // ours follow: see passes_of
  if (options.show_unwritten) arguments.push_back("-ftrivial-auto-var-init=pattern");
  if (options.instantiate) arguments.push_back("-fpch-instantiate-templates");
  arguments.push_back("-ffp-contract=off");  // only what the text writes as an fma is one
  if (options.precompiled != nullptr) arguments.insert(arguments.end(), {"-include-pch", kPrecompiledPath});
  arguments.push_back(options.source_name);
  return arguments;
}

llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> files_in_memory(const std::string& source,
                                                                const CompileOptions& options) {
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  TW_CHECK(!files->setCurrentWorkingDirectory("/"), "files in memory have a root");
  files->addFileNoOwn("/" + options.source_name, 0, llvm::MemoryBufferRef(source, options.source_name));
  const auto add = [&](const std::string& path, llvm::StringRef text) {
    files->addFileNoOwn("/" + path, 0, llvm::MemoryBufferRef(text, path));
  };
  for (const auto& header : device_headers())
    add(std::string(header.name), llvm::StringRef(header.text.data(), header.text.size()));
  for (const auto& [name, text] : options.headers) add(name, text);
  if (options.precompiled != nullptr) {
    add(kPrecompiledText, options.precompiled->text);
    files->addFileNoOwn(kPrecompiledPath, 0,
                        llvm::MemoryBufferRef(options.precompiled->bytes, kPrecompiledPath));
  }
  return files;
}

// The passes of Effort::kernel, in order. Measured on a pointwise kernel: 0.8 ms and 1.5 ms of code
// generation, against 2.5 and 4.1 for -O3, most of which went into unrolling what the printer had already
// unrolled.
constexpr std::string_view kKernelPasses =
    "function(sroa,early-cse),always-inline,cgscc(inline),globaldce,"
    "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm,loop-rotate,"
    "licm),indvars,"
    "loop-unroll-full,sroa,gvn,instcombine<no-verify-fixpoint>,simplifycfg)";

// Small loops over lanes and coefficients in the device functions are unrolled there, once for each function:
// in the kernel each of hundreds of copies is unrolled by itself, and each time LLVM looks through the whole
// loop around it, which made a chain of 200 tanh and sin take four times as long as one of 100. Nests (dot.h)
// are left to the passes over the kernel, which see what they are for.
constexpr std::string_view kDevicePasses =
    "sroa,early-cse<memssa>,simplifycfg,loop(loop-rotate),indvars,loop-unroll-full,sroa,early-cse<memssa>";

void unroll_device_functions(llvm::Module& module, llvm::PassBuilder& builder,
                             llvm::FunctionAnalysisManager& functions) {
  llvm::FunctionPassManager passes;
  llvm::cantFail(builder.parsePassPipeline(passes, kDevicePasses));
  for (llvm::Function& function : module) {
    if (function.isDeclaration() || !function.hasFnAttribute(llvm::Attribute::AlwaysInline)) continue;
    const llvm::LoopInfo& loops = functions.getResult<llvm::LoopAnalysis>(function);
    if (loops.empty() ||
        llvm::any_of(loops, [](const llvm::Loop* loop) { return !loop->getSubLoops().empty(); }))
      continue;
    functions.invalidate(function, passes.run(function, functions));
  }
}

std::string_view passes_of(Effort effort) {
  switch (effort) {
    case Effort::none:
      return "always-inline";
    case Effort::kernel:
      return kKernelPasses;
    case Effort::full:
      return "default<O3>";
  }
  return kKernelPasses;
}

// The code generator of LLVM 19 takes lanes in which both operands of a division are known to be zero for
// zero, though 0 / 0 is NaN, and leaves out the mask that would have cleared them
// (TargetLowering::SimplifyDemandedVectorElts, FDIV beside FMUL). Behind a fence, which is no instruction, it
// does not know the divisor.
void hide_divisors(llvm::Module& module) {
  std::vector<llvm::Instruction*> divisions;
  for (llvm::Function& function : module)
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& i : block)
        if (i.getOpcode() == llvm::Instruction::FDiv && i.getType()->isVectorTy()) divisions.push_back(&i);
  for (llvm::Instruction* division : divisions) {
    llvm::IRBuilder<> builder(division);
    division->setOperand(1, builder.CreateArithmeticFence(division->getOperand(1), division->getType()));
  }
}

void run_passes(llvm::Module& module, llvm::TargetMachine& machine, Effort effort) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = effort == Effort::full;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager call_graph;
  llvm::ModuleAnalysisManager modules;
  // Freestanding: a loop that zeroes a buffer stays a loop, and no name is taken for the C library's.
  llvm::TargetLibraryInfoImpl library(llvm::Triple(module.getTargetTriple()));
  library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(call_graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, call_graph, modules);
  if (effort == Effort::kernel) unroll_device_functions(module, builder, functions);
  llvm::ModulePassManager passes;
  llvm::cantFail(builder.parsePassPipeline(passes, passes_of(effort)));
  passes.run(module, modules);
  hide_divisors(module);
}

// What the code generator itself refuses: bad inline assembly, an impossible register constraint.
struct BackendErrors {
  std::string text;
  static void collect(const llvm::DiagnosticInfo* info, void* errors) {
    if (info->getSeverity() != llvm::DS_Error) return;
    llvm::raw_string_ostream out(static_cast<BackendErrors*>(errors)->text);
    llvm::DiagnosticPrinterRawOStream printer(out);
    info->print(printer);
    out << "\n";
  }
};

Result<std::string> generate_code(llvm::Module& module, const CompileOptions& options) {
  BackendErrors errors;
  module.getContext().setDiagnosticHandlerCallBack(BackendErrors::collect, &errors);
  std::string message;
  const auto* target = llvm::TargetRegistry::lookupTarget(module.getTargetTriple(), message);
  if (!target) return failure(Failure::Kind::unsupported, message);
  // The features stand on each function, as Clang wrote them.
  const std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      module.getTargetTriple(), options.target.cpu, "", llvm::TargetOptions(), llvm::Reloc::PIC_,
      std::nullopt,
      options.effort == Effort::none ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Aggressive,
      /*JIT=*/false));
  run_passes(module, *machine, options.effort);
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream out(object);
  llvm::legacy::PassManager emit;
  if (machine->addPassesToEmitFile(emit, out, nullptr, llvm::CodeGenFileType::ObjectFile,
                                   /*DisableVerify=*/true))
    return failure(Failure::Kind::unsupported, "the code generator writes no objects");
  emit.run(module);
  if (!errors.text.empty())
    return failure(Failure::Kind::compile, "the generated C++ does not compile:\n" + errors.text);
  return std::string(object.data(), object.size());
}

// Reads a text to the end and leaves what it declares in a buffer, where Clang's own action writes a file.
class Precompile : public clang::ASTFrontendAction {
 public:
  std::string bytes() const { return {buffer_->Data.data(), buffer_->Data.size()}; }

 protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler,
                                                        llvm::StringRef) override {
    return std::make_unique<clang::PCHGenerator>(compiler.getPreprocessor(), compiler.getModuleCache(),
                                                 kPrecompiledPath, "", buffer_,
                                                 compiler.getFrontendOpts().ModuleFileExtensions);
  }
  clang::TranslationUnitKind getTranslationUnitKind() override { return clang::TU_Prefix; }

 private:
  std::shared_ptr<clang::PCHBuffer> buffer_ = std::make_shared<clang::PCHBuffer>();
};

// Lets Clang read the source; what then comes of it lies in the action.
Status read_source(const std::string& source, const CompileOptions& options, clang::FrontendAction& action) {
  initialise_llvm_once();
  DiagnosticLines lines;
  auto diagnostic_options = llvm::makeIntrusiveRefCnt<clang::DiagnosticOptions>();
  auto diagnostics = llvm::makeIntrusiveRefCnt<clang::DiagnosticsEngine>(
      llvm::makeIntrusiveRefCnt<clang::DiagnosticIDs>(), diagnostic_options, &lines,
      /*ShouldOwnClient=*/false);

  const auto arguments = frontend_arguments(options);
  std::vector<const char*> pointers;
  pointers.reserve(arguments.size());
  for (const auto& argument : arguments) pointers.push_back(argument.c_str());
  auto invocation = std::make_shared<clang::CompilerInvocation>();
  if (!clang::CompilerInvocation::CreateFromArgs(*invocation, pointers, *diagnostics))
    return failure(Failure::Kind::invalid, "the compiler refuses its options:\n" + lines.text());

  clang::CompilerInstance compiler;
  compiler.setInvocation(std::move(invocation));
  compiler.setDiagnostics(diagnostics.get());
  compiler.setFileManager(
      new clang::FileManager(clang::FileSystemOptions(), files_in_memory(source, options)));
  // A stream of its own: llvm::nulls() is one for all threads, and has a buffer.
  compiler.setVerboseOutputStream(std::make_unique<llvm::raw_null_ostream>());
  if (!compiler.ExecuteAction(action))
    return failure(Failure::Kind::compile, "the generated C++ does not compile:\n" + lines.text());
  return Unit{};
}

}  // namespace

Result<std::string> compile_cpp(const std::string& source, const CompileOptions& options) {
  llvm::LLVMContext context;
  clang::EmitLLVMOnlyAction emit_ir(&context);
  if (Status read = read_source(source, options, emit_ir); !read) return read.error();
  const auto module = emit_ir.takeModule();
  return generate_code(*module, options);
}

Result<Precompiled> precompile(const std::string& text, const CompileOptions& options) {
  CompileOptions named = options;
  named.source_name = kPrecompiledText;
  Precompile action;
  if (Status read = read_source(text, named, action); !read) return read.error();
  return Precompiled{.text = text, .bytes = action.bytes()};
}

std::string compiler_version() { return "clang " CLANG_VERSION_STRING; }
std::string kernel_passes() { return fmt::format("{};{}", kDevicePasses, kKernelPasses); }

}  // namespace tilewright::cpu
