// The subcommands of tw. Each adds itself to the application and runs from CLI11's callback; a user's mistake
// throws tilewright::Error (exit code 2), what could not be done tilewright::Unavailable or any exception
// that is no Error (exit code 1).
#pragma once

namespace CLI {
class App;
}

namespace tilewright::tw {

void add_bench(CLI::App& app);
void add_bench_compare(CLI::App& bench);  // tw bench compare
void add_bench_report(CLI::App& bench);
void add_bench_sweep(CLI::App& bench);
void add_cache(CLI::App& app);
void add_completion(CLI::App& app);
void add_devices(CLI::App& app);
void add_doctor(CLI::App& app);
void add_explain(CLI::App& app);
void add_help(CLI::App& app);
void add_kernel(CLI::App& app);
void add_man(CLI::App& app);
void add_roofline(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_train(CLI::App& app);
void add_train_report(CLI::App& train);
void add_train_bytes(CLI::App& train);

}  // namespace tilewright::tw
