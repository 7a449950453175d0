//! Names and numbers that identify things.

use std::fmt;
use std::sync::Arc;

/// One endpoint for the life of this process; never given to another endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(pub u32);

/// An endpoint's place in tables and bitsets. Unlike [`EndpointId`] it is given again once its
/// endpoint has left, so whoever stores slots must be told to forget one (see `prefix`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u16);

impl Slot {
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(name: &str) -> Self {
                Self(name.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The text itself, to be kept elsewhere without a copy.
            pub fn shared(&self) -> &Arc<str> {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self::new(name)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    };
}

name! {
    /// A name that clients put into `model`: a base model, an adapter or an alias.
    ModelName
}
name! {
    /// The endpoints behind one base model.
    PoolName
}
name! {
    /// A priority and latency targets that requests can ask for by name.
    ObjectiveName
}
name! {
    /// Whose limits a request counts against, and whose share of a full pool it gets.
    TenantName
}
name! {
    /// A member's name: the identity that its heartbeats prove.
    MemberName
}
name! {
    /// Where a member or a router stands.
    Region
}
name! {
    /// A word that policies ask for, such as `eu` or `hipaa`.
    Label
}
