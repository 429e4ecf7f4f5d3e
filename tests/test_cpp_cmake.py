"""The CMake package: found in an installed wheel, wherever that lies, and used by a project of its user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pt2wire
import pytest

from .helpers import cpp
from .helpers.archives import linear_archive, linear_program
from .helpers.wheels import installed

_PROJECT = """\
cmake_minimum_required(VERSION 3.16)
project(consumer CXX)
find_package(pt2wire 0.1 REQUIRED COMPONENTS thrift)
message(STATUS "pt2wire is ${pt2wire_VERSION}")
add_executable(reader reader.cpp)
target_link_libraries(reader PRIVATE pt2wire::pt2wire)
add_executable(stream stream.cpp)
target_link_libraries(stream PRIVATE pt2wire::thrift)
foreach(program reader stream)
  target_compile_options(${program} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Werror)
endforeach()
# Else the headers would pass for the system's, whose warnings are not shown.
set_target_properties(reader PROPERTIES NO_SYSTEM_FROM_IMPORTED ON)
"""

_READER = """\
#include <iostream>
#include "pt2wire/archive.h"

int main(int, char** argv) try {
  const auto archive = pt2wire::Archive::open(argv[1]);
  for (const auto& weight : archive.weights().list) std::cout << weight.fqn << "\\n";
} catch (const pt2wire::Error& error) {
  std::cout << error.what() << "\\n";
}
"""

_STREAM = """\
#include <thrift/protocol/TBinaryProtocol.h>
#include <iostream>
#include "pt2wire/schema.h"
#include "pt2wire/thrift.h"

int main() {
  auto buffer = std::make_shared<apache::thrift::transport::TMemoryBuffer>();
  apache::thrift::protocol::TBinaryProtocol protocol(buffer);
  pt2wire::owned::Device device;
  device.type = "npu";
  pt2wire::write_thrift(protocol, device);
  std::cout << pt2wire::read_thrift<pt2wire::owned::Device>(protocol).type << "\\n";
}
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `pt2wire paths --cmake` prints, for a wheel whose folder was moved after it had been installed.

    Without pip's metadata beside it, as in a project that has a copy of the package.
    """
    folder = tmp_path_factory.mktemp("wheel")
    moved = folder / "moved to" / "site"
    moved.parent.mkdir()
    installed(folder).rename(moved)
    for metadata in moved.glob("*.dist-info"):
        shutil.rmtree(metadata)
    command = [sys.executable, "-c", "from pt2wire.cli import main; main()", "paths", "--cmake"]
    printed = cpp.run(["env", f"PYTHONPATH={moved}", *command]).decode()
    assert printed == f"{moved}/pt2wire/cmake\n"
    return printed.rstrip("\n")


def _project(folder: Path, text: str = _PROJECT) -> Path:
    for name, content in {"CMakeLists.txt": text, "reader.cpp": _READER, "stream.cpp": _STREAM}.items():
        (folder / name).write_text(content)
    return folder


def _configure(source: Path, *options: str, compiler: str = "g++") -> tuple[int, str]:
    command = ["cmake", "-S", str(source), "-B", str(source / "build"), *options]
    environment = {**os.environ, "CXX": compiler}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return done.returncode, " ".join((done.stdout + done.stderr).split())  # CMake wraps its messages


@pytest.mark.parametrize("compiler", cpp.COMPILERS)
def test_a_project_of_a_user_builds_from_an_installed_wheel(
    compiler: str, package: str, tmp_path: Path
) -> None:
    source = _project(tmp_path)
    code, output = _configure(source, f"-Dpt2wire_DIR={package}", compiler=compiler)
    assert code == 0, output
    assert f"pt2wire is {pt2wire.__version__}" in output
    cpp.run(["cmake", "--build", source / "build"])
    file = tmp_path / "model.pt2"
    file.write_bytes(linear_archive())
    names = "".join(f"{name}\n" for name in linear_program().state_dict)
    assert cpp.run([source / "build" / "reader", file]).decode() == names
    assert cpp.run([source / "build" / "stream"]) == b"npu\n"


_BARE = "cmake_minimum_required(VERSION 3.16)\nproject(bare CXX)\n"
_HIDDEN = "-DCMAKE_IGNORE_PATH=/usr/include;/usr/lib;/usr/lib/x86_64-linux-gnu;/usr/lib/aarch64-linux-gnu"

#: A request, options for CMake, and what it says to that.
REQUESTS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "any version": ("pt2wire REQUIRED", (), ""),
    "this one": ("pt2wire 0.1.0 EXACT REQUIRED", (), ""),
    "a later one": ("pt2wire 0.1.9 REQUIRED", (), 'compatible with requested version "0.1.9"'),
    "another minor one": ("pt2wire 0.0.1 REQUIRED", (), 'compatible with requested version "0.0.1"'),
    "a major one": ("pt2wire 1.0 REQUIRED", (), 'compatible with requested version "1.0"'),
    "an unknown component": ("pt2wire REQUIRED COMPONENTS proto", (), "no component proto: there is thrift"),
    "no libthrift": (
        "pt2wire REQUIRED COMPONENTS thrift",
        (_HIDDEN,),
        "no component thrift: there is thrift, which needs",
    ),
    "libthrift not asked for": ("pt2wire REQUIRED", (_HIDDEN,), ""),
    "no zlib": ("pt2wire REQUIRED", (_HIDDEN, "-DPT2WIRE_WITH_ZLIB=ON"), "Could NOT find ZLIB"),
}


@pytest.mark.parametrize(("request_", "options", "message"), REQUESTS.values(), ids=REQUESTS)
def test_requests_are_met_or_refused(
    request_: str, options: tuple[str, ...], message: str, package: str, tmp_path: Path
) -> None:
    (tmp_path / "CMakeLists.txt").write_text(f"{_BARE}find_package({request_})\n")
    code, output = _configure(tmp_path, f"-Dpt2wire_DIR={package}", *options)
    assert (code == 0) == (message == ""), output
    assert message in output


def test_a_package_without_generated_headers_is_refused(package: str, tmp_path: Path) -> None:
    cmake = tmp_path / "pt2wire" / "cmake"
    cmake.mkdir(parents=True)
    for file in Path(package).iterdir():
        (cmake / file.name).write_bytes(file.read_bytes())
    (tmp_path / "CMakeLists.txt").write_text(f"{_BARE}find_package(pt2wire REQUIRED)\n")
    shutil.copy(Path(package).parent / "version.py", cmake.parent)
    code, output = _configure(tmp_path, f"-Dpt2wire_DIR={cmake}")
    assert code != 0
    assert "the generated headers of pt2wire are missing: install the package pt2wire again" in output


@pytest.mark.parametrize("option", [(), ("-DPT2WIRE_WITH_ZLIB=OFF",)], ids=["zlib", "no zlib"])
def test_the_examples_build_in_the_source_tree(option: tuple[str, ...], tmp_path: Path) -> None:
    source = cpp.ROOT / "examples" / "cpp"
    cpp.run(["cmake", "-S", source, "-B", tmp_path, *option])
    cpp.run(["cmake", "--build", tmp_path, "--target", "inspect"])
    path = tmp_path / "model.pt2"
    path.write_bytes(linear_archive())
    done = subprocess.run([tmp_path / "inspect", path], capture_output=True, check=False)
    assert (done.returncode == 0) == (not option)
    assert option == () or b"-DPT2WIRE_WITH_ZLIB=1" in done.stderr
