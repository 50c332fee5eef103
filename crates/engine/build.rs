//! Has the linker put the changes to librdkafka of the kafka crate before its functions, in this package's tests, and
//! hands the names of these functions on.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A simulation has no librdkafka, and so none of the changes.
    let wrapped = std::env::var("DEP_AWOKE_KAFKA_WRAPPED").unwrap_or_default();
    for function in wrapped.split(',').filter(|name| !name.is_empty()) {
        println!("cargo:rustc-link-arg=-Wl,--wrap={function}");
    }
    println!("cargo:wrapped={wrapped}");
}
