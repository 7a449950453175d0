//! Conversations, message by message: no gRPC, no time.

mod answers;
mod auth;
mod disorder;
mod picks;
mod queue;
mod rate_limits;
mod refusals;
mod rewrites;
mod routes;
