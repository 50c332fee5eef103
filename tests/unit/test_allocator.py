"""The extension's imports from the C library: no memory that it would return to another allocator."""

import subprocess
import sys
from pathlib import Path

import pytest

from awoke import _native

ALLOCATE = {
    *("malloc", "calloc", "realloc", "reallocarray", "free", "posix_memalign", "aligned_alloc", "memalign", "valloc"),
    *(
        "strdup",
        "strndup",
        "wcsdup",
        "asprintf",
        "vasprintf",
        "__asprintf_chk",
        "__vasprintf_chk",
        "getline",
        "getdelim",
    ),
    *(
        "realpath",
        "scandir",
        "scandir64",
        "open_memstream",
        "get_current_dir_name",
        "tempnam",
        "canonicalize_file_name",
    ),
}
"""Functions that return memory which `free` gives back, and `free`."""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the extension uses the C library's allocator")
def test_all_memory_that_the_extension_frees_is_of_its_own_allocator() -> None:
    # Given what the extension leaves to others
    listed = subprocess.run(
        ["nm", "--dynamic", "--undefined-only", "--format=posix", str(Path(_native.__file__))],
        check=True,
        capture_output=True,
        text=True,
    )
    taken = {line.split()[0].split("@")[0] for line in listed.stdout.splitlines()}

    # Then it calls others' functions, but none that allocates what it would free, or frees what it allocated
    assert "pthread_create" in taken
    assert not taken & ALLOCATE


FIRST_USE = """
import threading

def use():
    import awoke
    with awoke.Producer("127.0.0.1:1") as producer:
        producer.queued()

for _ in range(20):
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
"""


def test_the_thread_that_loads_the_extension_may_end() -> None:
    """A later thread gets its address: it must not be taken for it."""
    for _ in range(2):
        subprocess.run([sys.executable, "-c", FIRST_USE], check=True, timeout=60)
