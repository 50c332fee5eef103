"""Makes the tools that build wheels: maturin and zig in an environment of their own, and launchers of zig's tools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from targets import GLIBC, Architecture, Rust

REPOSITORY = Path(__file__).resolve().parent.parent
WORK = REPOSITORY / "target" / "wheels"
PINNED = ("maturin==1.16.0", "ziglang==0.17.0")
"""The tools that compile. Others of their versions empty the folder of a build."""
COMPRESSOR = "deflate==0.9.0"
"""libdeflate, for `squeeze.py`."""
TOOLS = {"zig-cc": "cc", "zig-c++": "c++", "zig-ar": "ar", "zig-ranlib": "ranlib"}

PERL = "perl-of-openssl"
"""The launcher of Perl that the build of OpenSSL calls for its `Configure` alone."""

WITHOUT_TIME = ("-Wno-builtin-macro-redefined", '-D__DATE__="unknown"', '-D__TIME__="unknown"')
"""mimalloc writes these down. Zig's cache of objects does not ask for `SOURCE_DATE_EPOCH`: it would give old ones."""

SMALL = (
    "-fno-asynchronous-unwind-tables",  # Nothing unwinds through C: the debug symbols have the tables for debuggers.
    *("-ffunction-sections", "-fdata-sections"),  # The linker then leaves out each function that nothing reaches.
    *("-UZSTD_LEGACY_SUPPORT", "-DZSTD_LEGACY_SUPPORT=0"),  # Formats from before zstd 0.8, which Kafka never had.
)
"""Flags for C that keep a wheel small."""

OPENSSL_WITHOUT = (
    *("argon2", "aria", "bf", "blake2", "cast", "gost", "md4", "mdc2", "rc2", "rc4", "rmd160", "siphash", "siv"),
    *("ml-dsa", "slh-dsa", "sm2", "sm3", "sm4", "whirlpool", "ec2m", "ocb"),
    *("dtls", "multiblock", "nextprotoneg", "quic", "srp", "srtp", "tls1", "tls1_1"),
    *("cmp", "cms", "ct", "http", "ocsp", "rfc3779", "ts"),
    *("apps", "docs", "engine", "thread-pool"),
)
"""Parts of OpenSSL that no connection to Kafka uses: ciphers outside TLS 1.2 and 1.3, old and other protocols, tools.

What stays: TLS 1.2 and 1.3 with all their ciphers, curves and signatures, keys and certificates as PEM and PKCS#12, and
the hashes of SCRAM.
"""

UNWINDER = {
    "GCC_3.0": "DeleteException GetDataRelBase GetGR GetIP GetLanguageSpecificData GetRegionStart GetTextRelBase "
    "RaiseException Resume SetGR SetIP",
    "GCC_3.3": "Backtrace FindEnclosingFunction GetCFA",
    "GCC_4.2.0": "GetIPInfo",
}
"""The functions of libgcc that Rust calls, by the version that brought them."""


def environment_of_tools() -> Path:
    """Makes the virtual environment of the tools if there is none, and returns its folder. Blocks on pip."""
    folder, pinned = WORK / "tools", [*PINNED, COMPRESSOR]
    stamp = folder / "pinned"
    if not stamp.exists() or stamp.read_text() != " ".join(pinned):
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", *pinned], check=True)
        stamp.write_text(" ".join(pinned))
    return folder


def zig_of(tools: Path) -> Path:
    """Returns the program that the package of zig brings."""
    return next(tools.glob("lib/python*/site-packages/ziglang/zig"))


def launchers(tools: Path, architecture: Architecture, rust: Rust) -> Path:
    """Writes a launcher for each of zig's tools and of Rust's, and returns their folder.

    The builds know them by name only: OpenSSL writes the name of its compiler into its version, and maturin takes the
    first cargo of the path.
    """
    folder = WORK / architecture.name / "launchers"
    folder.mkdir(parents=True, exist_ok=True)
    front = Path(__file__).with_name("zig_front.py")
    commands = {name: f'"{tools}/bin/python" -IS "{front}" {tool} "$@"' for name, tool in TOOLS.items()}
    commands |= {name: f'"{shutil.which(path)}" "$@"' for name, path in (("rustc", rust.rustc), ("cargo", rust.cargo))}
    commands[PERL] = f'perl "$@" {" ".join(for_openssl())}'
    for name, command in commands.items():
        launcher = folder / name
        launcher.write_text(f"#!/bin/sh\nexec {command}\n")
        launcher.chmod(0o755)
    return folder


def for_openssl() -> list[str]:
    """Returns the arguments of OpenSSL's `Configure` that keep it small. They stand last: the last -O counts."""
    return [*(f"no-{part}" for part in OPENSSL_WITHOUT), "-Os"]


def folder_of_cargo(architecture: Architecture, flags: Iterable[str]) -> Path:
    """Returns the folder of a build. It is emptied if the flags have changed.

    Neither Cargo asks for those of C, nor zig for those of its own files.
    """
    folder = WORK / architecture.name / "cargo"
    stamp = folder / "flags"
    wanted = "\n".join([*PINNED, *flags, *for_openssl()])
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        stamp.write_text(wanted)
    return folder


def libgcc(zig: Path, architecture: Architecture, flags: Iterable[str], environment: Mapping[str, str]) -> Path:
    """Builds a stand-in for libgcc with the same names and versions, to link with, and returns its file.

    This is the first link. For it, zig compiles its parts of the C library, which keep the folder that it runs in.
    """
    folder = WORK / architecture.name / "libgcc"
    folder.mkdir(parents=True, exist_ok=True)
    library, source, versions = (folder / name for name in ("libgcc_s.so.1", "unwinder.c", "versions"))
    functions = {version: [f"_Unwind_{name}" for name in names.split()] for version, names in UNWINDER.items()}
    source.write_text("".join(f"void {each}(void) {{}}\n" for names in functions.values() for each in names))
    versions.write_text("".join(f"{version} {{ {'; '.join(names)}; }};\n" for version, names in functions.items()))
    command = [str(zig), "cc", *flags, "-shared", "-fPIC", "-o", str(library)]
    command += ["-Wl,-soname,libgcc_s.so.1", f"-Wl,--version-script={versions}", str(source)]
    subprocess.run(command, check=True, cwd=REPOSITORY, env=environment)
    return library


def target_of(architecture: Architecture) -> str:
    """Returns zig's name of a target, with the version of the C library."""
    return f"{architecture.name}-linux-gnu.{GLIBC}"


def for_zig(cargo: Path, maps: Iterable[str]) -> dict[str, str]:
    """Returns the settings of zig: its caches in the folder of a build, and flags for what it compiles by itself.

    Those parts of the C library get no flag of a command line. Clang reads more flags here; `#` keeps it quiet.
    """
    places = {name: str(cargo / "zig") for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")}
    return {**places, "CCC_OVERRIDE_OPTIONS": "#" + " ".join(f"+{each}" for each in maps)}


def paths_without_machine() -> dict[str, str]:
    """Returns the folders whose names may not reach a binary, each with what stands for it."""
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    return {str(home / "registry" / "src"): "crates", str(REPOSITORY): "awoke"}


def environment(architecture: Architecture, rust: Rust, epoch: int) -> dict[str, str]:
    """Returns the environment of a build for a processor. `epoch` is the time, in seconds, that stands in the result.

    Blocks while pip and zig make what is missing.
    """
    tools = environment_of_tools()
    zig = zig_of(tools)
    maps = paths_without_machine()
    flags = ["-target", target_of(architecture), "-fno-sanitize=all", "-gline-tables-only", *SMALL, *WITHOUT_TIME]
    maps_of_c = [f"-ffile-prefix-map={folder}={name}" for folder, name in maps.items()]
    flags += maps_of_c
    remaps = [f"--remap-path-prefix={folder}={name}" for folder, name in maps.items()]
    cargo = folder_of_cargo(architecture, flags)
    own = for_zig(cargo, maps_of_c)
    settings = {"zig": str(zig), "flags": flags, "libgcc": str(libgcc(zig, architecture, flags, {**os.environ, **own}))}
    return {
        **os.environ,
        **own,
        "AWOKE_ZIG": json.dumps(settings),
        "PATH": f"{launchers(tools, architecture, rust)}:{tools}/bin:{os.environ['PATH']}",
        "CC": "zig-cc",
        "CXX": "zig-c++",
        "AR": "zig-ar",
        "RANLIB": "zig-ranlib",
        "OPENSSL_SRC_PERL": PERL,
        "PKG_CONFIG": "false",  # The libraries of this machine are not those of the wheel.
        "CARGO_TARGET_DIR": str(cargo),
        f"CARGO_TARGET_{architecture.rust.upper().replace('-', '_')}_LINKER": "zig-cc",
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join([*remaps, "-Clink-arg=-Wl,--build-id=sha1"]),
        "SOURCE_DATE_EPOCH": str(epoch),
    }
