//! Has the linker put the kafka crate's wrappers before functions of librdkafka's, in this package's tests.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../kafka/wrapped.txt");
    // A simulation has no librdkafka, and so none of the wrappers.
    let has_librdkafka = std::env::var_os("CARGO_FEATURE_LIBRDKAFKA").is_some();
    if has_librdkafka && std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        for function in include_str!("../kafka/wrapped.txt").lines() {
            println!("cargo:rustc-link-arg=-Wl,--wrap={function}");
        }
    }
}
