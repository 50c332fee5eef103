//! Compiles the extension's allocator, and has the linker put the changes to librdkafka of the kafka crate before its
//! functions.

fn main() {
    describe_the_build();
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/allocator.c");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        let include = std::env::var("DEP_MIMALLOC_INCLUDE_DIR").expect("libmimalloc-sys exports its include path");
        let wrapped = std::env::var("DEP_AWOKE_ENGINE_WRAPPED").expect("the engine hands the names on");
        for function in wrapped.split(',') {
            println!("cargo:rustc-link-arg-cdylib=-Wl,--wrap={function}");
        }
        cc::Build::new()
            .file("src/allocator.c")
            .include(include)
            .flag("-fno-builtin") // Otherwise the compiler assumes that `malloc` is the C library's.
            .link_lib_modifier("+whole-archive")
            .compile("given");
    }
}

/// Gives `versions.rs` the profile and the target, which only a build script knows.
fn describe_the_build() {
    let target = std::env::var("TARGET").expect("cargo names the target");
    // `PROFILE` names the one that a profile inherits from. The folders are target/[TARGET/]PROFILE/build/PACKAGE/out.
    let out = std::env::var("OUT_DIR").expect("cargo names the output folder");
    let profile = std::path::Path::new(&out).iter().rev().nth(3).and_then(|name| name.to_str()).unwrap_or("unknown");
    println!("cargo:rustc-env=AWOKE_TARGET={target}");
    println!("cargo:rustc-env=AWOKE_PROFILE={profile}");
}
