//! The extension's allocator: mimalloc, for Rust and for the C libraries that are linked into it.
//!
//! A message is allocated by the thread that sends it and freed by the one that serves its report. With glibc's
//! allocator both threads wait for the lock of the sender's arena, the more often the faster they are. The rest of the
//! process keeps its allocator. `allocator.c` maps the C library's names to mimalloc's for this extension's linker
//! only.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

unsafe extern "C" {
    fn mi_version() -> std::ffi::c_int;
}

/// The version of mimalloc, which has it as one number with two digits for each but the first part: 30302.
pub fn version() -> String {
    // SAFETY: returns a constant.
    let number = unsafe { mi_version() };
    format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100)
}
