//! Compiles what `allocator.rs` needs of C.

fn main() {
    println!("cargo:rerun-if-changed=src/allocator.c");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        cc::Build::new()
            .file("src/allocator.c")
            .flag("-fno-builtin")
            .link_lib_modifier("+whole-archive")
            .compile("allocator");
    }
}
