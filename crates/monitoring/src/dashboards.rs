//! Dashboards as data: what they ask, and how it is to be read.

mod cluster;
mod endpoint;
mod fleet;
mod flow;
mod pool;
mod rollout;

/// One dashboard.
#[derive(Debug)]
pub struct Dashboard {
    /// File name and Grafana's id, so that links last.
    pub uid: &'static str,
    pub title: &'static str,
    pub about: &'static str,
    /// What one chooses at its head.
    pub variables: &'static [Variable],
    pub rows: &'static [Row],
}

/// A choice of label values; all at first.
#[derive(Debug)]
pub struct Variable {
    /// As in `$pool`.
    pub name: &'static str,
    /// The metric whose label it is, with the choices made before.
    pub of: &'static str,
}

#[derive(Debug)]
pub struct Row {
    pub title: &'static str,
    pub panels: &'static [Panel],
}

#[derive(Debug)]
pub struct Panel {
    pub title: &'static str,
    pub about: &'static str,
    pub kind: Kind,
    pub unit: Unit,
    pub queries: &'static [Query],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The present value, large.
    Number,
    Lines,
    /// Lines on top of each other: parts of a whole.
    Stack,
}

/// Of a panel's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Count,
    Seconds,
    /// 0 to 1, shown in percent.
    Share,
    RequestsPerSecond,
    TokensPerSecond,
    PerSecond,
}

#[derive(Debug)]
pub struct Query {
    /// `$__rate_interval` and the dashboard's variables stand for choices.
    pub expr: &'static str,
    /// Name of its lines, with `{{label}}`.
    pub legend: &'static str,
}

pub fn all() -> [&'static Dashboard; 6] {
    [
        &cluster::OVERVIEW,
        &pool::POOL,
        &endpoint::ENDPOINT,
        &flow::FLOW,
        &rollout::ROLLOUT,
        &fleet::FLEET,
    ]
}

const fn query(expr: &'static str, legend: &'static str) -> Query {
    Query { expr, legend }
}

const fn panel(
    title: &'static str,
    kind: Kind,
    unit: Unit,
    about: &'static str,
    queries: &'static [Query],
) -> Panel {
    Panel { title, about, kind, unit, queries }
}

const OF_POOL: Variable = Variable { name: "pool", of: "wicketgate_pool_endpoints" };
