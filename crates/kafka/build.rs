//! Compiles the changes to librdkafka, and has the linker put those that wrap a function before it:
//! `src/librdkafka/patches/README.md`.
//!
//! Cargo hands no argument of the linker to the crates above. So their build scripts get the names of the functions
//! that are wrapped, as the metadata `wrapped`.

#[cfg(feature = "librdkafka")]
#[path = "src/librdkafka/patches/series.rs"]
mod series;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "librdkafka")]
    compile();
}

#[cfg(feature = "librdkafka")]
fn compile() {
    const FOLDER: &str = "src/librdkafka/patches";
    println!("cargo:rerun-if-changed={FOLDER}");
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    let mut patches = series::series(std::path::Path::new(FOLDER));
    patches.retain(|patch| is_linux || patch.field("Systems") == "all");
    let wrapped: Vec<_> = patches.iter().flat_map(series::Patch::wrapped).collect();
    for function in &wrapped {
        println!("cargo:rustc-link-arg=-Wl,--wrap={function}");
    }
    println!("cargo:wrapped={}", wrapped.join(","));

    let librdkafka = std::env::var("DEP_RDKAFKA_ROOT").expect("rdkafka-sys says where it built librdkafka");
    cc::Build::new()
        .files(patches.iter().map(series::Patch::source).filter(|file| file.extension().is_some_and(|end| end == "c")))
        .include(FOLDER)
        .include(format!("{librdkafka}/src"))
        .includes(folders_of_librdkafka(&librdkafka))
        .warnings(false) // librdkafka's headers have some.
        .link_lib_modifier(if is_linux { "+whole-archive" } else { "-whole-archive" })
        .compile("patches");
}

/// Returns the folders of headers with which librdkafka was compiled: OpenSSL's, zlib's.
#[cfg(feature = "librdkafka")]
fn folders_of_librdkafka(root: &str) -> Vec<String> {
    let flags = std::fs::read_to_string(format!("{root}/Makefile.config")).expect("librdkafka keeps its flags");
    let lines = flags.lines().filter(|line| line.starts_with("CFLAGS+=") || line.starts_with("CPPFLAGS+="));
    let words = lines.flat_map(|line| line.split(|letter: char| letter.is_whitespace() || letter == '='));
    words.filter_map(|word| word.strip_prefix("-I")).map(str::to_owned).collect()
}
