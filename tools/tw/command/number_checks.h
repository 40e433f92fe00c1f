// Checks of numbers after an option. CLI11's own print the largest float64 in their messages, take what is no
// number, and of an integer that is too large the largest.
#pragma once

#include <CLI/CLI.hpp>

namespace tilewright::tw {

CLI::Validator positive();
CLI::Validator not_negative();
CLI::Validator at_least(long long least);
// From 0 to 1, both included.
CLI::Validator share();

// Every option of an application and its subcommands that takes a number takes none that is not finite, and
// no integer beyond 64 bits. To be called when all are there.
void check_numbers(CLI::App& app);

}  // namespace tilewright::tw
