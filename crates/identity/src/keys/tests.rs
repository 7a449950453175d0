//! Keys and their files.

use std::os::unix::fs::PermissionsExt;

use super::*;

fn entry(name: &str) -> KeyEntry {
    KeyEntry {
        name: name.to_owned(),
        hash: Hasher::plain().show(name),
        caller: None,
        created: None,
        expires: None,
        disabled: false,
    }
}

fn load(path: &Path, pepper: Option<&Path>) -> Result<KeyStore, KeysError> {
    let spec = ApiKeys { file: path.to_owned(), pepper_file: pepper.map(Path::to_owned) };
    KeyStore::load(&spec, &Callers::default())
}

#[test]
fn every_key_is_another_one_and_says_so_when_it_is_mistyped() {
    let keys: std::collections::HashSet<_> = (0..1000).map(|_| generate()).collect();
    assert_eq!(keys.len(), 1000);
    for key in keys {
        assert_eq!(key.len(), 51);
        assert!(key.starts_with("wg-") && is_well_formed(&key));
        for at in 3..key.len() {
            let mut bytes = key.clone().into_bytes();
            bytes[at] = if bytes[at] == b'a' { b'b' } else { b'a' };
            assert!(!is_well_formed(&String::from_utf8(bytes).unwrap()));
        }
        assert!(!is_well_formed(&key[..50]) && !is_well_formed(&key.to_ascii_uppercase()));
    }
}

#[test]
fn what_is_written_reads_back_and_only_its_owner_may_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut keys = vec![entry("plain"), entry("with \"quotes\": and #"), entry("ünï")];
    keys[0].caller = Some("a".to_owned());
    keys[1].expires = Some("2027-01-31T00:00:00Z".to_owned());
    keys[1].created = Some("2026-01-31T00:00:00Z".to_owned());
    keys[2].disabled = true;
    for name in ["keys.yaml", "keys.json"] {
        let path = folder.path().join(name);
        for keys in [keys.clone(), vec![]] {
            let file = KeyFile { keys };
            file.write(&path).unwrap();
            assert_eq!(KeyFile::read(&path).unwrap(), file);
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}

#[test]
fn a_folder_is_read_file_by_file() {
    let folder = tempfile::tempdir().unwrap();
    KeyFile { keys: vec![entry("a"), entry("b")] }.write(&folder.path().join("x.yaml")).unwrap();
    std::fs::write(folder.path().join("c"), Hasher::plain().show("c") + "\n").unwrap();
    // What Kubernetes puts beside mounted files.
    std::fs::create_dir(folder.path().join("..2026_data")).unwrap();
    std::fs::write(folder.path().join(".hidden"), "rubbish").unwrap();
    let store = load(folder.path(), None).unwrap();
    assert_eq!(store.len(), 3);
    assert_eq!(store.caller_of("c", 0).unwrap().tenant.as_str(), "c");
}

#[test]
fn a_pepper_is_part_of_every_hash() {
    let folder = tempfile::tempdir().unwrap();
    let (pepper, file) = (folder.path().join("pepper"), folder.path().join("keys.yaml"));
    std::fs::write(&pepper, "salt and vinegar\n").unwrap();
    let hasher = Hasher::with_pepper("salt and vinegar");
    KeyFile { keys: vec![KeyEntry { hash: hasher.show("k"), ..entry("k") }] }.write(&file).unwrap();
    assert!(load(&file, Some(&pepper)).unwrap().caller_of("k", 0).is_ok());
    let without = load(&file, None).unwrap_err();
    assert!(without.to_string().contains("pepperFile"), "{without}");
    std::fs::write(&pepper, "other").unwrap();
    let other = load(&file, Some(&pepper)).unwrap();
    assert_eq!(other.caller_of("k", 0).unwrap_err(), Denied::UnknownKey);
}

#[test]
fn a_file_that_cannot_be_used_says_where_and_why_but_quotes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.yaml");
    let good = Hasher::plain().show("x");
    for (text, wanted) in [
        ("wg-secretsecret".to_owned(), "keys.yaml"),
        ("keys:\n- { name: a, key: wg-secretsecret }".to_owned(), "expected `keys:`"),
        ("keys:\n- { name: a, hash: wg-secretsecret }".to_owned(), "`a`"),
        ("keys:\n- { name: a, hash: 'sha256:12' }".to_owned(), "64"),
        (format!("keys:\n- {{ name: a, hash: '{good}', expires: soon }}"), "expires"),
        (
            format!("keys:\n- {{ name: a, hash: '{good}' }}\n- {{ name: b, hash: '{good}' }}"),
            "same hash",
        ),
        (
            format!(
                "keys:\n- {{ name: a, hash: '{good}' }}\n- {{ name: a, hash: '{}' }}",
                Hasher::plain().show("y")
            ),
            "two keys",
        ),
    ] {
        std::fs::write(&path, &text).unwrap();
        let error = load(&path, None).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
        assert!(!error.contains("secretsecret"), "{error}");
    }
    let missing = load(&folder.path().join("none"), None).unwrap_err();
    assert!(missing.to_string().contains("none"), "{missing}");
}

#[test]
fn a_changed_file_changes_the_stamp() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.yaml");
    let stamp = || Stamp::of([folder.path(), path.as_path()]);
    let absent = stamp();
    KeyFile { keys: vec![entry("a")] }.write(&path).unwrap();
    let written = stamp();
    assert_ne!(written, absent);
    assert_eq!(written, stamp());
    KeyFile { keys: vec![entry("b")] }.write(&path).unwrap();
    assert_ne!(written, stamp());
}
