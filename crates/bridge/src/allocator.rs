//! Where the extension's memory comes from: mimalloc, for Rust and for the C libraries that are linked into it.
//!
//! A message is allocated by the thread that sends it and freed by the one that serves its report. With glibc's allocator the
//! two wait for each other at the lock of the sender's arena, more often the faster both are. The rest of the process keeps its
//! allocator: `allocator.c` gives the names of the C library's functions to mimalloc's for the linker of this extension only.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
