//! Where the extension's memory comes from: mimalloc, for Rust and for the C libraries that are linked into it.

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
