// Programs in files: a compiled function's graph as text, ….tw, which another process loads.
#pragma once

#include <tilewright/tensor/compile.h>
#include <tilewright/tensor/program.h>

#pragma GCC visibility push(default)
namespace tilewright {

// The program in a file. Throws Error: the file cannot be read, or is no text of a graph: then it names line
// and column.
Program load_program(const std::string& path, const Location& where = Location::current());

// Writes the graph of a compiled function: save_program("elu.tw", f.report().front()). Its inputs are the
// tensors of the function's arguments, its outputs those of the results (tensors_of()); shapes and types are
// those of the report's key. The file is written beside, and takes its name when it is whole. Throws Error
// where no text says what the function does: with graph breaks, with tensors that it captured (make them
// arguments, and save their values with save_safetensors()), and with random numbers that it draws; and where
// the file cannot be written.
void save_program(const std::string& path, const SpecialisationReport& report,
                  const Location& where = Location::current());

}  // namespace tilewright
#pragma GCC visibility pop
