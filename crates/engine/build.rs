//! Has the linker put the kafka crate's `mock_groups.c` before a function of librdkafka's, in this package's tests.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-link-arg=-Wl,--wrap=rd_kafka_mock_cgrp_classic_member_add");
    }
}
