//! The changes to librdkafka that are written in Rust. README.md lists all changes, and says how they work.

#[cfg(target_os = "linux")] // Only Linux's linker can wrap a function.
#[path = "0008_bounded_batches/mod.rs"]
mod bounded_batches;

#[cfg(test)]
mod series;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::series::{Patch, series};
    use crate::librdkafka::librdkafka_version;

    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/librdkafka/patches");
    const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

    fn patches() -> Vec<Patch> {
        let patches = series(Path::new(FOLDER));
        assert!(patches.len() > 5);
        patches
    }

    /// Returns the rows of a page's table.
    fn rows(page: &str) -> String {
        let text = std::fs::read_to_string(page).expect("a page");
        text.lines().filter(|line| line.starts_with("| [00") || line.starts_with("| 00")).collect::<Vec<_>>().join("\n")
    }

    fn name(patch: &Patch) -> &str {
        patch.path.file_name().and_then(|name| name.to_str()).expect("a name")
    }

    /// Returns the number, and what the patch changes.
    fn title(patch: &Patch) -> (&str, &str) {
        let title = patch.title.strip_prefix("Patch ").and_then(|title| title.strip_suffix('.'));
        title.and_then(|title| title.split_once(": ")).expect("`Patch 0000: title.`")
    }

    fn way(patch: &Patch) -> String {
        let ways = ["Wraps", "Replaces", "Writes", "Reads", "Calls"];
        let found: Vec<_> = ways.iter().filter(|way| !patch.field(way).is_empty()).collect();
        assert_eq!(found.len(), 1, "{}: one of {ways:?}", name(patch));
        let names: Vec<_> = patch.field(found[0]).split(", ").map(|name| format!("`{name}`")).collect();
        format!("{} {}", found[0].to_lowercase(), names.join(", "))
    }

    #[test]
    fn the_table_has_each_patch() {
        let row = |patch: &Patch| {
            let ((number, title), name) = (title(patch), name(patch));
            format!("| [{number}]({name}) | {title} | {} | {} |", way(patch), patch.field("Test"))
        };
        let expected: Vec<_> = patches().iter().map(row).collect();
        assert_eq!(rows(&format!("{FOLDER}/README.md")), expected.join("\n"));
    }

    #[test]
    fn the_page_of_the_internals_has_each_patch() {
        let row = |patch: &Patch| {
            let (number, title) = title(patch);
            format!("| {number} | {title} | {} |", patch.field("Upstream"))
        };
        let expected: Vec<_> = patches().iter().map(row).collect();
        assert_eq!(rows(&format!("{REPOSITORY}/docs/internals/patches.md")), expected.join("\n"));
    }

    #[test]
    fn each_patch_is_for_the_version_that_is_linked() {
        for patch in &patches() {
            assert_eq!(patch.field("Version"), format!("librdkafka {}", librdkafka_version()), "{}", name(patch));
        }
    }

    #[test]
    fn the_test_of_each_patch_exists() {
        for patch in patches() {
            let test = patch.field("Test");
            assert!(test.starts_with("none, because ") || Path::new(REPOSITORY).join(test).exists(), "{test}");
        }
    }

    #[test]
    fn numbers_are_unique_and_those_of_the_names() {
        let patches = patches();
        let numbers: BTreeSet<_> = patches.iter().map(|patch| title(patch).0.to_owned()).collect();
        assert_eq!(numbers.len(), patches.len());
        assert!(patches.iter().all(|patch| name(patch).starts_with(title(patch).0)));
    }

    /// A function that stands in the code and not in the head is not wrapped, and does nothing. One that stands in the
    /// head and not in the code does not link.
    #[test]
    fn each_function_in_the_code_is_named_in_the_head() {
        for patch in &patches() {
            let is_folder = patch.path.is_dir();
            let files: Vec<_> = if is_folder {
                std::fs::read_dir(&patch.path).expect("a folder").map(|entry| entry.expect("a file").path()).collect()
            } else {
                vec![patch.source()]
            };
            let code: String = files.iter().map(|file| std::fs::read_to_string(file).expect("a source")).collect();
            let defined: BTreeSet<_> = code
                .split("__wrap_")
                .skip(1)
                .map(|rest| rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next())
                .collect();
            assert_eq!(defined, patch.wrapped().map(Some).collect(), "{}", name(patch));
        }
    }
}
