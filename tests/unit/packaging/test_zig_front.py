"""Zig behind a compiler's name: arguments it does not know, paths that stay out, one unwinder."""

from __future__ import annotations

from zig_front import LENIENT, apart, arguments

FLAGS = ["-target", "x86_64-linux-gnu.2.28"]
LIBGCC = "stand-in/libgcc_s.so.1"


def test_flags_stand_behind_the_arguments_in_their_order() -> None:
    assert arguments(["-c", "a.c", "-O2"], FLAGS, LIBGCC) == ["-c", "a.c", "-O2", *FLAGS]


def test_a_target_without_a_version_of_the_c_library_is_left_out() -> None:
    assert arguments(["--target=x86_64-unknown-linux-gnu", "a.c"], FLAGS, LIBGCC) == ["a.c", *FLAGS]


def test_a_library_is_linked_with_the_unwinder_of_the_process() -> None:
    assert arguments(["-shared", "-lgcc_s", "-lc"], [], LIBGCC) == ["-shared", LIBGCC, "-lc", *LENIENT]


def test_a_program_keeps_the_unwinder_of_zig() -> None:
    assert arguments(["-lgcc_s", "-lc"], [], LIBGCC) == ["-lgcc_s", "-lc"]


def test_folders_of_the_build_do_not_reach_openssl() -> None:
    given = ['-DENGINESDIR="/home/me/engines-3"', '-DMODULESDIR="/home/me/modules"', '-DOPENSSLDIR="/usr/local/ssl"']
    assert not [each for each in arguments(given, [], LIBGCC) if "/home/me" in each]
    assert given[2] in arguments(given, [], LIBGCC)


def test_an_archive_is_an_argument_of_its_own() -> None:
    assert apart("-Wl,--whole-archive,/b/libx.a,--no-whole-archive") == [
        "-Wl,--whole-archive",
        "/b/libx.a",
        "-Wl,--no-whole-archive",
    ]
    assert apart("-Wl,/b/libx.a") == ["/b/libx.a"]
    assert apart("-Wl,-soname,libx.so") == ["-Wl,-soname,libx.so"]
