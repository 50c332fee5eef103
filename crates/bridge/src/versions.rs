//! The versions of the libraries that are built in, and how the module was built.

use pyo3::prelude::*;

/// Returns the version of librdkafka that is built in.
#[pyfunction]
pub fn librdkafka_version() -> &'static str {
    awoke_engine::kafka::librdkafka_version()
}

/// Returns the C libraries that are linked, with their versions, librdkafka first. Each of them is asked.
#[pyfunction]
pub fn library_versions() -> Vec<(&'static str, String)> {
    let mut found: Vec<_> =
        awoke_engine::kafka::library_versions().map(|(name, version)| (name, version.to_owned())).into();
    #[cfg(target_os = "linux")]
    found.push(("mimalloc", crate::allocator::version()));
    found
}

/// Returns how the module was built: its profile, target, commit and time (seconds since 1970), None for unknown.
///
/// Commit and time come from the environment of the build alone, so that the same sources give the same module.
#[pyfunction]
pub fn build_facts() -> [(&'static str, Option<&'static str>); 4] {
    [
        ("profile", Some(env!("AWOKE_PROFILE"))),
        ("target", Some(env!("AWOKE_TARGET"))),
        ("commit", option_env!("AWOKE_COMMIT")),
        ("time", option_env!("SOURCE_DATE_EPOCH")),
    ]
}
