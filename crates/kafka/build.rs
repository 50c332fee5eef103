//! Compiles what stands before functions of librdkafka's mock cluster: see `src/librdkafka/mock_groups.c`.
//!
//! The linker's option holds for this package's own tests; the build scripts of the engine and of the extension name it
//! again.

/// The function that `src/librdkafka/mock_groups.c` wraps.
#[cfg(feature = "librdkafka")]
const WRAPPED: &str = "rd_kafka_mock_cgrp_classic_member_add";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "librdkafka")]
    compile();
}

#[cfg(feature = "librdkafka")]
fn compile() {
    println!("cargo:rerun-if-changed=src/librdkafka/mock_groups.c");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        let librdkafka = std::env::var("DEP_RDKAFKA_ROOT").expect("rdkafka-sys says where it built librdkafka");
        println!("cargo:rustc-link-arg=-Wl,--wrap={WRAPPED}");
        cc::Build::new()
            .file("src/librdkafka/mock_groups.c")
            .include(format!("{librdkafka}/src"))
            .warnings(false) // librdkafka's headers have some.
            .link_lib_modifier("+whole-archive")
            .compile("mock_groups");
    }
}
