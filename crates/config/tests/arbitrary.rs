//! Whatever the text, reading it ends with a document or with findings that can be shown.

use proptest::prelude::{Strategy, any, prop, proptest};
use wicketgate_config as config;

const EXAMPLES: [&str; 5] = [
    include_str!("../../../docs/examples/laptop.yaml"),
    include_str!("../../../docs/examples/two-models-lora.yaml"),
    include_str!("../../../docs/examples/aws-manifest.yaml"),
    include_str!("picker/good/everything.yaml"),
    include_str!("picker/good/warnings.yaml"),
];

fn read(text: &str) {
    show(config::parse(text, "arbitrary.yaml").map(|document| document.warnings));
    show(config::PickerConfig::parse(text, "arbitrary.yaml").map(|picker| {
        drop(picker.summary());
        picker.warnings
    }));
}

fn show(read: Result<Vec<config::Finding>, config::Errors>) {
    match read {
        Ok(warnings) => warnings.iter().for_each(|finding| drop(finding.to_string())),
        Err(errors) => {
            assert!(!errors.findings().is_empty());
            drop(errors.to_string());
        }
    }
}

/// An example with some pieces cut out, doubled, or replaced by YAML's special characters.
fn broken_example() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec![
        "",
        ":",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "&a ",
        "*a",
        "\t",
        "\n",
        "\"",
        "'",
        "null",
        "99999999999999999999",
        "-1",
        "1e999",
        "~",
        "!!int ",
        "<<: ",
        "|",
        "# ",
        "\u{0}",
        "ü",
        "---\n",
        "0s",
    ]);
    let edit = (any::<prop::sample::Index>(), 0..12_usize, special);
    (0..EXAMPLES.len(), prop::collection::vec(edit, 1..6)).prop_map(|(example, edits)| {
        let mut chars: Vec<char> = EXAMPLES[example].chars().collect();
        for (at, length, insert) in edits {
            let at = at.index(chars.len());
            let end = (at + length).min(chars.len());
            chars.splice(at..end, insert.chars());
        }
        chars.into_iter().collect()
    })
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        read(&text);
    }

    #[test]
    fn text_of_yaml_characters_never_panics(text in "[-a:{}\\[\\]&*!|>'\"%@# \n\t0-9.,~<]{0,200}") {
        read(&text);
    }

    #[test]
    fn a_broken_example_never_panics(text in broken_example()) {
        read(&text);
    }
}
