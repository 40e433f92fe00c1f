#!/usr/bin/env python3
"""Installs what was built into an empty prefix and uses it as others do: by find_package with either form of the library, by pkg-config
and make, by the installed command; then again where the prefix was moved to. Looks at what the libraries show, and at what is said
where the backends are missing.

Usage: tests/package/installed_test.py BUILD_FOLDER COMPILER"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from package import EXAMPLES, ROOT, check, run

# What may stand in front of `tilewright::` in the name of what is shown.
SHOWN = re.compile(r"(?:(?:vtable|typeinfo|typeinfo name) for )?tilewright::(\w+)")
INNER = {"backends", "cpu", "cuda", "ir", "ops", "passes", "printer", "reference", "runtime", "embedded"}
ENTRY = {"tilewright_open_backend", "tilewright_backend_version"}
# What no user should wait for: reading the API takes half of a second of which each of these would add a tenth or more.
HEAVY = ("iostream", "sstream", "fstream", "regex", "chrono", "thread", "mutex", "filesystem", "ranges", "map", "fmt/")
# Headers of ours with a variant of many types, which is compiled wherever it is read.
HEAVY_OF_OURS = ("tile/schedule.h", "tile/target.h")
# What g++ 12 allocates for the example of a training step, beside the standard headers that ours read: 159 and 90 MB. It does not vary with
# the machine's load, as time does, for which it stands in roughly: code that is optimised longer shows little in it.
MOST_MB, STANDARD_HEADERS = 80, ("vector", "string", "memory", "optional", "functional", "span", "variant", "string_view")


def shown(library):
    """Names of the symbols that others see in a shared library."""
    lines = run("nm", "-DC", "--defined-only", library).splitlines()
    return {line.split(" ", 2)[2] for line in lines}


def check_symbols(prefix):
    library = shown(prefix / "lib/libtilewright.so")
    for name in library:
        found = SHOWN.match(name)
        check(found and found[1] not in INNER, f"libtilewright.so shows {name}")
    for wanted in ("tilewright::Tensor::read(", "tilewright::exp(", "tilewright::tile::Builder::", "typeinfo for tilewright::Error",
                   "typeinfo for tilewright::OutOfMemory", "tilewright::library_version()"):
        check(any(name.startswith(wanted) for name in library), f"libtilewright.so hides {wanted}")
    for backend in ("cpu", "cuda"):
        names = shown(prefix / f"lib/tilewright/libtw_{backend}.so")
        check(names == ENTRY, f"libtw_{backend}.so shows {sorted(names)}")
    dynamic = run("readelf", "-d", prefix / "lib/libtilewright.so")
    check(f"soname: [libtilewright.so.{version().split('.')[0]}]" in dynamic, f"libtilewright.so: no soname in {dynamic}")


def version():
    return re.search(r'TILEWRIGHT_VERSION "(.*)"', (ROOT / "include/tilewright/version.h").read_text())[1]


def check_files(prefix, build):
    def headers(folder):
        return sorted(file.relative_to(folder) for file in folder.rglob("*") if file.is_file())

    check(headers(prefix / "include") == headers(ROOT / "include"), "other headers are installed than include/ has")
    for folder in {ROOT, build}:
        for file in prefix.rglob("*"):
            if file.is_file() and not file.is_symlink():
                check(os.fsencode(f"{folder}/") not in file.read_bytes(), f"{file} names {folder}")


def check_includes(prefix, compiler):
    """A user's source reads no header that costs much, and compiles with a user's warnings. Prints the time that it takes."""
    source = EXAMPLES / "subdirectory/main.cpp"
    flags = ["-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{prefix}/include"]
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
        file.write("#include <tilewright/tilewright.hpp>\n")
        file.flush()
        read = run(compiler, *flags, "-H", "-fsyntax-only", file.name)
    for header in HEAVY:
        check(not re.search(rf"^\.+ \S*/(?:c\+\+/\d+/|include/){header}(?:$|(?<=/))", read, re.MULTILINE), f"tilewright.hpp reads <{header}>")
    for header in HEAVY_OF_OURS:
        check(f"/tilewright/{header}\n" not in read, f"tilewright.hpp reads <tilewright/{header}>")
    check_work(prefix, compiler)
    before = os.times()
    run(compiler, *flags, "-c", source, "-o", "/dev/null")
    spent = os.times().children_user - before.children_user
    print(f"package: {source.relative_to(ROOT)} compiles in {spent:.2f} s of a core at -O2")


def check_work(prefix, compiler):
    """How much more than the standard headers the example takes to compile, as memory that the compiler hands out; of g++ alone."""
    if "Free Software Foundation" not in run(compiler, "--version"):
        return
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
        file.write("".join(f"#include <{header}>\n" for header in STANDARD_HEADERS))
        file.flush()
        megabytes = [int(re.search(r"^ TOTAL .* (\d+)M$", run(compiler, "-std=c++20", "-O2", f"-I{prefix}/include", "-ftime-report", "-c", source,
                                                             "-o", "/dev/null"), re.MULTILINE)[1])
                     for source in (EXAMPLES / "installed/main.cpp", file.name)]
    more = megabytes[0] - megabytes[1]
    print(f"package: the example costs {megabytes[0]} MB of compiler's memory, {more} more than standard headers")
    check(more <= MOST_MB, f"examples/installed/main.cpp takes {more} MB of the compiler's memory beside the standard headers', at most {MOST_MB} "
                           "are wanted: see which templates are instantiated, by clang++-19 -ftime-trace")


def build_with_cmake(prefix, folder, *options):
    run("cmake", "-S", EXAMPLES / "installed", "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", *options)
    run("cmake", "--build", folder)
    return folder / "fit"


def check_fit(program, **variables):
    said = run(program, **variables)
    check(f"Tilewright {version()}: loss" in said and "kernel " in said, said)


def check_tw(prefix):
    said = run(prefix / "bin/tw", "--version").strip()
    check(re.fullmatch(rf"tw {re.escape(version())}( \([0-9a-f]+(-dirty)?\))?", said), said)
    said = run(prefix / "bin/tw", "devices")
    check(re.search(r"^cpu: ", said, re.MULTILINE) and "isa" in said, f"the installed command finds no CPU: {said}")
    for command, file in (("man", "man/man1/tw.1"), ("completion bash", "bash-completion/completions/tw"),
                          ("completion zsh", "zsh/site-functions/_tw"), ("completion fish", "fish/vendor_completions.d/tw.fish")):
        check((prefix / "share" / file).read_text() == run(prefix / "bin/tw", *command.split()), f"share/{file} is not what tw {command} prints")


def check_what_is_said_of_backends(prefix, program, compiler):
    """None, one that is no library, one of another version."""
    def check_said(*wanted):
        said = run(program, fails=True)
        for words in wanted:
            check(words in said, f"the program does not say '{words}': {said}")

    backend = prefix / "lib/tilewright/libtw_cpu.so"
    backend.unlink()
    check_said(f"{prefix}/lib/libtw_cpu.so", str(backend), "the loader's path", "ContextOptions::library_directory")
    said = run(prefix / "bin/tw", "doctor", fails=True)
    check(f"{prefix}/lib/tilewright" in said, f"the command does not say where it looked for the backend: {said}")
    backend.write_text("no library\n")
    check_said(f"could not be opened: {backend}: ")
    source = prefix / "old.cpp"
    source.write_text('extern "C" const char* tilewright_backend_version() { return "0.0.9"; }\n'
                      'extern "C" void tilewright_open_backend() {}\n')
    run(compiler, "-shared", "-fPIC", source, "-o", backend)
    check_said(f"{backend} is of version 0.0.9, this library of {version()}")


def check_page(prefix, folder, page, *wanted):
    """The project that a page shows, as it stands there."""
    text = (ROOT / page).read_text()
    folder.mkdir()
    for language, file in (("cmake", "CMakeLists.txt"), ("cpp", "main.cpp")):
        block = re.search(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        (folder / file).write_text(block[1])
    run("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", folder / "build")
    said = run(folder / "build/mine")
    for words in wanted:
        check(words in said, f"the program of {page} does not say '{words}': {said}")


def main():
    build, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prefix = folder / "prefix"
        run("cmake", "--install", build, "--prefix", prefix)
        check_symbols(prefix)
        check_files(prefix, build)
        check_includes(prefix, compiler)
        check_tw(prefix)
        shared = build_with_cmake(prefix, folder / "shared")
        check_fit(shared)
        static = build_with_cmake(prefix, folder / "static", "-DSTATIC=ON")
        check("libtilewright" not in run("readelf", "-d", static), "the static form needs libtilewright.so")
        check_fit(static)
        check_page(prefix, folder / "readme", "README.md", "1 specialisation")
        check_page(prefix, folder / "install", "docs/guide/install.md", "f32[3,2]", "1 kernel")
        # What a backend's library throws is what the program catches.
        # Enums arrive as they were passed, whatever compiled the program.
        for source in ("thrown_by_backend", "enums_by_value"):
            program = folder / source
            run(compiler, "-std=c++20", "-O1", f"-I{prefix}/include", ROOT / f"tests/package/{source}.cpp", "-o", program,
                f"-L{prefix}/lib", "-ltilewright", f"-Wl,-rpath,{prefix}/lib")
            run(program)

        moved = folder / "somewhere/else"
        moved.parent.mkdir()
        prefix.rename(moved)
        check_tw(moved)
        check_fit(shared, LD_LIBRARY_PATH=f"{moved}/lib")
        check_fit(static, LD_LIBRARY_PATH=f"{moved}/lib/tilewright")
        made = folder / "made"
        made.mkdir()
        for file in ("Makefile", "main.cpp"):
            (made / file).write_text((EXAMPLES / "installed" / file).read_text())
        run("make", "-C", made, f"CXX={compiler}", PKG_CONFIG_PATH=f"{moved}/lib/pkgconfig")
        check_fit(made / "fit")
        run("make", "-C", made, "-B", f"CXX={compiler}", "PACKAGE=tilewright-static", PKG_CONFIG_PATH=f"{moved}/lib/pkgconfig")
        check_fit(made / "fit")
        if "libtilewright" in run("readelf", "-d", made / "fit"):
            raise SystemExit("package: tilewright-static still needs libtilewright.so")
        run("make", "-C", made, "-B", f"CXX={compiler}", PKG_CONFIG_PATH=f"{moved}/lib/pkgconfig")

        check_what_is_said_of_backends(moved, made / "fit", compiler)
    print("package: installed, used, moved, used again")


if __name__ == "__main__":
    main()
