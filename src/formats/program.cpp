// Programs in files.
#include "base/safe_file.h"
#include "formats/in_file.h"
#include "formats/mapped_file.h"

#include <tilewright/formats/program.h>

namespace tilewright {

Program load_program(const std::string& path, const Location& where) {
  return formats::in_file("load_program", path, where, [&] {
    const auto file = formats::MappedFile::open(path);
    try {
      return Program(formats::text(file->bytes()), where);
    } catch (const Error& e) {
      throw Error(without_place(e).substr(std::string_view("Program: ").size()));
    }
  });
}

namespace {

// Why a report's graph is not all that the function does; "": it is.
std::string why_no_program(const SpecialisationReport& report) {
  if (!report.breaks.empty())
    return fmt::format("the function has graph breaks, so it is no single program: {}",
                       report.breaks.front());
  if (report.captured > 0)
    return fmt::format("the function captures {} tensor{}, whose values no text has: make {} arguments of it",
                       report.captured, report.captured == 1 ? "" : "s",
                       report.captured == 1 ? "it" : "them");
  if (report.draws > 0)
    return "the function draws random numbers at each call, which no text does: draw them before the call";
  return "";
}

}  // namespace

void save_program(const std::string& path, const SpecialisationReport& report, const Location& where) {
  formats::in_file("save_program", path, where, [&] {
    if (const std::string why = why_no_program(report); !why.empty()) throw Error(why);
    SafeFile file = SafeFile::create(path).value();
    file.write(report.graph).value();
    file.finish().value();
    file.publish().value();
  });
}

}  // namespace tilewright
