//! Reads the headers of the patches. Alone in a file because two programs do: the build script, and the test that
//! compares them with README.md.

use std::path::{Path, PathBuf};

/// One change of librdkafka, as the head of its file describes it.
pub struct Patch {
    /// The file, or the folder.
    pub path: PathBuf,
    /// The first line: the number, and what it changes.
    pub title: String,
    fields: Vec<(String, String)>,
}

impl Patch {
    /// Returns the value of a field; empty when the head does not have it.
    pub fn field(&self, name: &str) -> &str {
        self.fields.iter().find(|(each, _)| each == name).map_or("", |(_, value)| value)
    }

    /// Returns the functions that the linker wraps for it.
    pub fn wrapped(&self) -> impl Iterator<Item = &str> {
        self.field("Wraps").split(", ").filter(|name| !name.is_empty())
    }

    /// Returns the source with the head.
    pub fn source(&self) -> PathBuf {
        if self.path.is_dir() { self.path.join("mod.rs") } else { self.path.clone() }
    }

    fn read(place: PathBuf) -> Self {
        let mut patch = Self { path: place, title: String::new(), fields: Vec::new() };
        let source = std::fs::read_to_string(patch.source()).expect("a patch is a file, or a folder with a mod.rs");
        for line in source.lines() {
            let line = ["/*", " *", "//!"].iter().find_map(|start| line.strip_prefix(start)).unwrap_or_default();
            let text = line.trim();
            if text.starts_with("Patch ") {
                text.clone_into(&mut patch.title);
            } else if text.is_empty() && !patch.fields.is_empty() {
                break;
            } else if line.starts_with("  ") {
                let (_, value) = patch.fields.last_mut().expect("a field that is continued");
                value.extend([" ", text]);
            } else if !text.is_empty() {
                let (name, value) = text.split_once(": ").expect("a field of a patch is `Name: value`");
                patch.fields.push((name.to_owned(), value.to_owned()));
            }
        }
        patch
    }
}

/// Returns all patches in their order.
pub fn series(folder: &Path) -> Vec<Patch> {
    let entries = std::fs::read_dir(folder).expect("the folder of the patches");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry of the folder").path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit()));
    paths.sort();
    paths.into_iter().map(Patch::read).collect()
}
