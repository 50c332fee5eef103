"""A wheel that is incomplete, too large, or would not run where its tag says, is refused."""

from __future__ import annotations

import json
import platform
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import check_wheel

PROCESSOR = platform.machine()
NAME = f"awoke-0.1.0-cp311-abi3-manylinux_2_28_{PROCESSOR}.whl"
INFO = "awoke-0.1.0.dist-info"
BILL = json.dumps({"components": [{"name": name} for name in check_wheel.LIBRARIES]})


def compiled(folder: Path, source: str = "", *options: str) -> bytes:
    """Returns a shared library that is compiled from C."""
    file = folder / "native.so"
    command = ["cc", "-shared", "-fPIC", *options, "-o", str(file), "-x", "c", "-"]
    subprocess.run(command, input=source, text=True, check=True, cwd=folder)
    return file.read_bytes()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return compiled(tmp_path_factory.mktemp("native"))


Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path, library: bytes) -> Make:
    """Returns a function that writes a good wheel, but for the files that it is given; `None` leaves one out."""

    def write(name: str = NAME, **changes: bytes | str | None) -> Path:
        files: dict[str, bytes | str | None] = dict.fromkeys(check_wheel.NEEDED_FILES, "")
        files |= {f"{INFO}/licenses/{name}": "text" for name in check_wheel.LICENSES}
        files |= {f"{INFO}/sboms/awoke.cdx.json": BILL, "awoke/_native.abi3.so": library, **changes}
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for file, content in files.items():
                if content is not None:
                    archive.writestr(file, content)
        return tmp_path / name

    return write


def test_a_good_wheel_passes(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_wheel.main([str(make())]) == 0
    assert capsys.readouterr().out == f"{NAME}: good\n"


@pytest.mark.parametrize(
    ("file", "fault"),
    [
        ("awoke/__init__.pyi", "awoke/__init__.pyi is missing"),
        ("awoke/_native.pyi", "awoke/_native.pyi is missing"),
        ("awoke/py.typed", "awoke/py.typed is missing"),
        ("awoke/pages/llms.txt", "awoke/pages/llms.txt is missing: run `make docs`"),
        (f"{INFO}/licenses/LICENSE", "licenses/LICENSE is missing"),
        (f"{INFO}/licenses/LICENSE.third-party.txt", "LICENSE.third-party.txt is missing: run packaging/notices.py"),
        (f"{INFO}/sboms/awoke.cdx.json", "no bill of materials names librdkafka, LZ4, OpenSSL"),
        ("awoke/_native.abi3.so", "must have one native module, and has none"),
    ],
)
def test_a_wheel_without_one_of_its_files_is_refused(
    make: Make, file: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_wheel.main([str(make(**{file: None}))]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{NAME}: refused"
    assert len(said) == 2
    assert fault in said[1]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        (f"awoke-0.1.0-cp311-cp311-linux_{PROCESSOR}.whl", "names no supported Python and platform"),
        (f"awoke-0.1.0-py3-none-manylinux_2_28_{PROCESSOR}.whl", "names no supported Python and platform"),
        (f"awoke-0.1.0-cp314-cp314t-manylinux_2_34_{PROCESSOR}.whl", "shuts out systems with glibc 2.28"),
        (NAME.replace(PROCESSOR, "aarch64" if PROCESSOR == "x86_64" else "x86_64"), "its native module is not for"),
    ],
)
def test_a_wheel_with_a_wrong_tag_is_refused(make: Make, name: str, fault: str) -> None:
    assert fault in "\n".join(check_wheel.faults(make(name)))


def test_a_wheel_that_is_too_large_is_refused(make: Make) -> None:
    extra = bytes(check_wheel.SIZE_MAX + 1)
    (fault,) = check_wheel.faults(make(**{"awoke/extra": extra}))
    assert fault.endswith(" MB; the most are 6")


def test_a_library_that_not_every_system_has_is_refused(make: Make, tmp_path: Path) -> None:
    subprocess.run(
        ["cc", "-shared", "-o", "libstrange.so", "-x", "c", "-"], input="", text=True, check=True, cwd=tmp_path
    )
    native = compiled(tmp_path, "", "-Wl,--no-as-needed", "-L.", "-lstrange", "-Wl,-rpath,/opt")

    assert list(check_wheel.faults(make(**{"awoke/_native.abi3.so": native}))) == [
        "its native module needs other shared libraries: libstrange.so",
        "its native module looks for libraries in folders of its own (RPATH)",
    ]


def test_symbols_that_are_newer_than_the_tag_are_refused(make: Make, tmp_path: Path) -> None:
    # glibc 2.34 moved pthread_create into its main library, under a version of its own.
    source = '#include <pthread.h>\n__asm__(".symver pthread_create,pthread_create@GLIBC_2.34");\n'
    native = compiled(tmp_path, source + "void *f(void) { return (void *)pthread_create; }")

    faults = list(check_wheel.faults(make(**{"awoke/_native.abi3.so": native})))
    assert faults == ["its native module needs glibc 2.34; its tag promises 2.28"]


@pytest.mark.parametrize("folder", ["/home/builder/awoke/x.rs", f"{check_wheel.REPOSITORY}/crates/x.rs"])
def test_a_folder_of_the_build_machine_in_the_binary_is_refused(make: Make, tmp_path: Path, folder: str) -> None:
    native = compiled(tmp_path, f'const char *where = "{folder}";')
    (fault,) = check_wheel.faults(make(**{"awoke/_native.abi3.so": native}))
    assert "names folders of the machine that built it" in fault


def test_folders_of_the_compiler_s_own_build_are_no_fault(make: Make, tmp_path: Path) -> None:
    native = compiled(tmp_path, 'const char *where = "/rustc/5980/library/core/src/home/x.rs";')
    assert list(check_wheel.faults(make(**{"awoke/_native.abi3.so": native}))) == []


def test_a_bill_of_materials_with_a_folder_of_the_build_machine_is_refused(make: Make) -> None:
    bill = json.dumps({**json.loads(BILL), "from": "path+file:///home/builder/awoke"})
    faults = list(check_wheel.faults(make(**{f"{INFO}/sboms/awoke.cdx.json": bill})))
    assert len(faults) == 1
    assert "/home/builder/awoke" in faults[0]


@pytest.mark.parametrize("content", [None, b"no wheel"])
def test_a_file_that_is_no_wheel_is_refused(
    tmp_path: Path, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / NAME).write_bytes(content)
    assert check_wheel.main([str(tmp_path / NAME)]) == 1
    assert "it cannot be read: " in capsys.readouterr().out


@pytest.mark.parametrize(("folder", "found"), [("/home/somebody/awoke", 1), ("awoke", 0)])
def test_debug_symbols_name_no_folder_of_the_machine_even_where_they_are_compressed(
    folder: str, found: int, tmp_path: Path
) -> None:
    deep = folder + "/deep" * 100  # Short texts are not compressed.
    compiled(tmp_path, "int number;", "-g", "-gz", f"-ffile-prefix-map={tmp_path}={deep}")
    symbols = tmp_path / "native.so"
    assert folder.encode() not in symbols.read_bytes()
    assert [folder in each for each in check_wheel.faults_of_symbols(symbols, "objcopy")] == [True] * found
