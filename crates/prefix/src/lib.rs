//! prefix
