#!/usr/bin/env python3
"""Adds this repository to examples/subdirectory by add_subdirectory: nothing of ours may leak into that project, and of ours it builds the
library and its backends alone. Its program is compiled as that project compiles it, and linked with the library that the tests' own build
has: building all of that again takes 4 minutes of a core, which --build spends.

Usage: tests/package/subdirectory_test.py BUILD_FOLDER COMPILER [--build]"""
import json
import pathlib
import re
import sys
import tempfile

from package import EXAMPLES, ROOT, check, run

# Variables of the user's project that ours sets for itself.
VARIABLES = """BUILD_SHARED_LIBS BUILD_TESTING CMAKE_BUILD_RPATH CMAKE_BUILD_TYPE CMAKE_CXX_COMPILER_LAUNCHER CMAKE_CXX_EXTENSIONS CMAKE_CXX_FLAGS
CMAKE_CXX_STANDARD CMAKE_CXX_VISIBILITY_PRESET CMAKE_LIBRARY_OUTPUT_DIRECTORY CMAKE_POSITION_INDEPENDENT_CODE
CMAKE_RUNTIME_OUTPUT_DIRECTORY CMAKE_UNITY_BUILD""".split()
TELL = """function(tell)
  foreach(variable {names})
    if(NOT "${{${{variable}}}}" STREQUAL "")
      message(STATUS "leaked: ${{variable}}=${{${{variable}}}}")
    endif()
  endforeach()
endfunction()
cmake_language(DEFER CALL tell)
"""


def configure(folder, *options):
    (folder / "tell.cmake").write_text(TELL.format(names=" ".join(VARIABLES)))
    said = run("cmake", "-S", EXAMPLES / "subdirectory", "-B", folder / "build", "-G", "Ninja", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
               f"-DCMAKE_PROJECT_elu_INCLUDE={folder}/tell.cmake", *options)
    check("leaked:" not in said, said)
    return folder / "build"


def check_targets(build):
    tests = run("ctest", "--test-dir", build, "-N")
    check("Total Tests: 0" in tests, f"the project has tests: {tests}")
    steps = run("ninja", "-C", build, "-t", "commands", "all")
    for unwanted in ("gtest", "_test.cpp", f"{ROOT}/lab/", f"{ROOT}/tools/", f"{ROOT}/tests/", "libtilewright.a"):
        check(unwanted not in steps, f"the project builds {unwanted}")
    for wanted in ("-o elu ", "libtilewright.so", "libtw_cpu.so", "libtw_cuda.so"):
        check(wanted in run("ninja", "-C", build, "-t", "commands", "elu"), f"building the program does not make {wanted}")


def command_of(build):
    """How the project compiles its own source."""
    entries = json.loads((build / "compile_commands.json").read_text())
    command = next(entry["command"] for entry in entries if entry["file"] == str(EXAMPLES / "subdirectory/main.cpp"))
    return command.split()


def check_flags(build):
    for word in command_of(build)[1:]:
        ours = word == f"-I{ROOT}/include" or word == "-std=gnu++20"
        files = word in ("-o", "-c") or word.startswith("CMakeFiles/") or word == str(EXAMPLES / "subdirectory/main.cpp")
        check(ours or files, f"the project's source is compiled with {word}")


def linked_with_ours(build, library, folder):
    """The program, compiled as the project compiles it."""
    command = command_of(build)
    command[command.index("-o") + 1] = folder / "main.o"
    run(*command)
    run(command[0], folder / "main.o", "-o", folder / "elu", f"{library}/libtilewright.so", f"-Wl,-rpath,{library}")
    return folder / "elu"


def main():
    library, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        build = configure(folder, f"-DCMAKE_CXX_COMPILER={compiler}")
        check_targets(build)
        check_flags(build)
        if "--build" in sys.argv[3:]:
            run("cmake", "--build", build)
            program = build / "elu"
        else:
            program = linked_with_ours(build, library, folder)
        said = run(program)
        check(re.search("^  kernel .*exp", said, re.MULTILINE), said)
    print("package: a subdirectory of another project")


if __name__ == "__main__":
    main()
