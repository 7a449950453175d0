//! Header fields.

use bytes::Bytes;

#[derive(Clone, PartialEq, prost::Message)]
pub struct HeaderMap {
    #[prost(message, repeated, tag = "1")]
    pub headers: Vec<HeaderValue>,
}

/// One field. Envoy sends names in lower case and values in `raw_value`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HeaderValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(string, tag = "2")]
    pub value: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub raw_value: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct HeaderMutation {
    #[prost(message, repeated, tag = "1")]
    pub set_headers: Vec<HeaderValueOption>,
    #[prost(string, repeated, tag = "2")]
    pub remove_headers: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct HeaderValueOption {
    #[prost(message, optional, tag = "1")]
    pub header: Option<HeaderValue>,
    #[prost(enumeration = "AppendAction", tag = "3")]
    pub append_action: i32,
}

/// What becomes of a field that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum AppendAction {
    AppendIfExistsOrAdd = 0,
    AddIfAbsent = 1,
    OverwriteIfExistsOrAdd = 2,
    OverwriteIfExists = 3,
}

impl HeaderValue {
    pub fn new(key: impl Into<String>, value: impl Into<Bytes>) -> Self {
        Self { key: key.into(), value: String::new(), raw_value: value.into() }
    }

    /// The value, in whichever of the two fields it stands.
    pub fn bytes(&self) -> &[u8] {
        if self.raw_value.is_empty() { self.value.as_bytes() } else { &self.raw_value }
    }
}

impl HeaderMap {
    /// The value of the first field of this name, in lower case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let found = self.headers.iter().find(|field| field.key.eq_ignore_ascii_case(name));
        found.map(HeaderValue::bytes)
    }

    /// The same, where it is text.
    pub fn get_str(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }
}

impl HeaderMap {
    /// Names, in lower case, of the fields whose name begins so.
    pub fn names_beginning_with(&self, head: &str) -> impl Iterator<Item = String> {
        let names = self.headers.iter().map(|field| field.key.to_ascii_lowercase());
        names.filter(move |name| name.starts_with(head))
    }
}

impl HeaderMutation {
    /// Sets a field, replacing what is there.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Bytes>) {
        self.set_headers.push(HeaderValueOption {
            header: Some(HeaderValue::new(name, value)),
            append_action: AppendAction::OverwriteIfExistsOrAdd as i32,
        });
    }

    /// Adds a field beside those of the same name.
    pub fn append(&mut self, name: impl Into<String>, value: impl Into<Bytes>) {
        self.set_headers.push(HeaderValueOption {
            header: Some(HeaderValue::new(name, value)),
            append_action: AppendAction::AppendIfExistsOrAdd as i32,
        });
    }

    pub fn remove(&mut self, name: impl Into<String>) {
        self.remove_headers.push(name.into());
    }

    pub fn is_empty(&self) -> bool {
        self.set_headers.is_empty() && self.remove_headers.is_empty()
    }
}
