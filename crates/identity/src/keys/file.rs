//! Files of hashes.

use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{KeysError, read};

/// A file of keys, YAML or JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyFile {
    pub keys: Vec<KeyEntry>,
}

/// What is kept of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyEntry {
    /// Unique; what operators call it.
    pub name: String,
    /// `sha256:…`, or `hmac-sha256:…` with a pepper.
    pub hash: String,
    /// The caller of the document whose key it is; absent: the first that matches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// RFC 3339; the key is refused from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
}

impl KeyEntry {
    /// Seconds since 1970. `Err`: why it is no time.
    pub fn expires_at(&self) -> Result<Option<u64>, String> {
        let Some(text) = &self.expires else { return Ok(None) };
        let time = humantime::parse_rfc3339_weak(text)
            .map_err(|_| "`expires` is no time: write 2027-01-31T00:00:00Z".to_owned())?;
        Ok(Some(time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())))
    }

    /// A time as it stands in files.
    pub fn show_time(time: SystemTime) -> String {
        humantime::format_rfc3339_seconds(time).to_string()
    }
}

impl KeyFile {
    /// Reads a file of keys, or a file with one hash, which is then the key of the file's name.
    pub fn read(path: &Path) -> Result<Self, KeysError> {
        let text = read(path)?;
        if let Some(hash) = lone_hash(&text) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let entry = KeyEntry {
                name,
                hash: hash.to_owned(),
                caller: None,
                created: None,
                expires: None,
                disabled: false,
            };
            return Ok(Self { keys: vec![entry] });
        }
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        serde_saphyr::from_str(&text).map_err(|_| KeysError::Form {
            // The reader's own message might quote the line, and with it a secret put there by mistake.
            path: path.to_owned(),
            reason: "expected `keys:` with a list of `name` and `hash` (and perhaps `caller`, `created`, \
                     `expires`, `disabled`)"
                .to_owned(),
        })
    }

    /// Replaces the file at once, readable by its owner alone.
    pub fn write(&self, path: &Path) -> Result<(), KeysError> {
        let fault = |source| KeysError::Write { path: path.to_owned(), source };
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        let text = if is_json {
            serde_json::to_string_pretty(self).map_err(|error| fault(error.into()))? + "\n"
        } else {
            self.yaml()
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // Made with mode 0600.
        let mut file =
            tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(fault)?;
        file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(fault)?;
        file.persist(path).map_err(|error| fault(error.error))?;
        Ok(())
    }

    fn yaml(&self) -> String {
        // JSON strings are YAML strings, whatever is in them.
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut yaml = "# Hashes of API keys; changed by `wicketgate keys`.\nkeys:".to_owned();
        if self.keys.is_empty() {
            yaml.push_str(" []");
        }
        yaml.push('\n');
        for key in &self.keys {
            yaml.push_str(&format!(
                "- name: {}\n  hash: {}\n",
                quoted(&key.name),
                quoted(&key.hash)
            ));
            let optional =
                [("caller", &key.caller), ("created", &key.created), ("expires", &key.expires)];
            for (field, value) in optional {
                if let Some(value) = value {
                    yaml.push_str(&format!("  {field}: {}\n", quoted(value)));
                }
            }
            if key.disabled {
                yaml.push_str("  disabled: true\n");
            }
        }
        yaml
    }
}

/// The hash, where the file is one line with nothing else.
fn lone_hash(text: &str) -> Option<&str> {
    let text = text.trim();
    let is_hash = text.starts_with("sha256:") || text.starts_with("hmac-sha256:");
    (is_hash && !text.contains(char::is_whitespace)).then_some(text)
}
