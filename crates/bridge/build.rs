//! Compiles the extension's replacements for functions that its C libraries call: the allocator, waits that no clock
//! step prolongs, and decompressors that bound the size of a batch.

/// The functions that `src/decompressors/`, `src/groupless.rs` and the kafka crate's `mock_groups.c` wrap.
const WRAPPED: [&str; 8] = [
    "rd_gz_decompress",
    "rd_kafka_cgrp_op",
    "rd_kafka_lz4_decompress",
    "rd_kafka_mock_cgrp_classic_member_add",
    "rd_kafka_snappy_java_uncompress",
    "rd_kafka_snappy_uncompress",
    "rd_kafka_snappy_uncompressed_length",
    "rd_kafka_zstd_decompress",
];

fn main() {
    describe_the_build();
    println!("cargo:rerun-if-changed=src/allocator.c");
    println!("cargo:rerun-if-changed=src/clocks.c");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        let include = std::env::var("DEP_MIMALLOC_INCLUDE_DIR").expect("libmimalloc-sys exports its include path");
        println!("cargo:rerun-if-changed=build.rs");
        for function in WRAPPED {
            println!("cargo:rustc-link-arg-cdylib=-Wl,--wrap={function}");
        }
        cc::Build::new()
            .file("src/allocator.c")
            .file("src/clocks.c")
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
