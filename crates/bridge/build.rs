//! Compiles what `allocator.rs` needs of C.

fn main() {
    println!("cargo:rerun-if-changed=src/allocator.c");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        let include = std::env::var("DEP_MIMALLOC_INCLUDE_DIR").expect("libmimalloc-sys says where its headers are");
        cc::Build::new()
            .file("src/allocator.c")
            .include(include)
            .flag("-fno-builtin") // Or the compiler would see in `malloc` what it knows of the C library's.
            .link_lib_modifier("+whole-archive")
            .compile("allocator");
    }
}
