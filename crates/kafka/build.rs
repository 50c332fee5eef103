//! Compiles what stands before functions of librdkafka's and of the C library's: `admin_requests.c`,
//! `clocks.c`, `late_answers.c`, `linger.c`, `one_moment.c`.
//!
//! `wrapped.txt` names the functions that these, `decompressors/` and `groupless.rs` wrap. Cargo hands no argument of
//! the linker to the crates above, so the build scripts of the engine and of the extension read it, too.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=wrapped.txt");
    #[cfg(feature = "librdkafka")]
    compile();
}

#[cfg(feature = "librdkafka")]
fn compile() {
    let files = ["admin_requests", "clocks", "late_answers", "linger", "one_moment"];
    let files = files.map(|name| format!("src/librdkafka/{name}.c"));
    files.iter().for_each(|file| println!("cargo:rerun-if-changed={file}"));
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        let librdkafka = std::env::var("DEP_RDKAFKA_ROOT").expect("rdkafka-sys says where it built librdkafka");
        for function in include_str!("wrapped.txt").lines() {
            println!("cargo:rustc-link-arg=-Wl,--wrap={function}");
        }
        cc::Build::new()
            .files(&files)
            .include(format!("{librdkafka}/src"))
            .warnings(false) // librdkafka's headers have some.
            .link_lib_modifier("+whole-archive")
            .compile("wrappers");
    }
}
