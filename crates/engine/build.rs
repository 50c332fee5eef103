//! Has the linker put the kafka crate's wrappers before functions of librdkafka's, in this package's tests.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../kafka/wrapped.txt");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        for function in include_str!("../kafka/wrapped.txt").lines() {
            println!("cargo:rustc-link-arg=-Wl,--wrap={function}");
        }
    }
}
