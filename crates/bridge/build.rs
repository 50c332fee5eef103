//! Compiles what the extension gives its C libraries in the place of the C library's: memory, and waits that no clock step prolongs.

fn main() {
    println!("cargo:rerun-if-changed=src/allocator.c");
    println!("cargo:rerun-if-changed=src/clocks.c");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        let include = std::env::var("DEP_MIMALLOC_INCLUDE_DIR").expect("libmimalloc-sys says where its headers are");
        cc::Build::new()
            .file("src/allocator.c")
            .file("src/clocks.c")
            .include(include)
            .flag("-fno-builtin") // Or the compiler would see in `malloc` what it knows of the C library's.
            .link_lib_modifier("+whole-archive")
            .compile("given");
    }
}
