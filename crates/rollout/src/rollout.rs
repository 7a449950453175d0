//! One split and what has become of it.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use types::Timestamp;
use xxhash_rust::xxh3::xxh3_64;

use crate::{Breach, Guard, Sequence, WEIGHT_MAX, Weights, Window, judge};

/// How far back a target is looked at where no [`Guard`] says so.
const WINDOW: Duration = Duration::from_secs(300);
/// Looks in one window; a breach must be seen in [`LOOKS_MIN`] of them in a row.
const LOOKS: u32 = 50;
const LOOK_EVERY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Looks in a row, each with something new to see, until a breach counts. One bad moment is none.
const LOOKS_MIN: u32 = 3;
/// Shares that a step without a goal goes through.
const LADDER: [f64; 6] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0];

/// One target of a split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The model that requests are sent to.
    pub name: Box<str>,
    /// 0 to [`WEIGHT_MAX`].
    pub weight: u32,
    /// The others are judged by it.
    pub is_stable: bool,
}

/// A split as the document has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// At least one; no name twice.
    pub targets: Vec<Target>,
    /// `None`: nobody is taken back by itself.
    pub guard: Option<Guard>,
}

/// How a request to a target ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// `None`: it says nothing of the target, such as a client's own mistake or leaving.
    pub failed: Option<bool>,
    /// Time to the first token of a stream, or how long its client has waited for it at least.
    pub ttft: Option<Duration>,
}

/// Why a target gets nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct RollBack {
    pub reason: Reason,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    Breach(Breach),
    /// Somebody said so, in these words.
    Operator(Box<str>),
}

/// Why a split was left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("there is no target `{name}`; targets: {known}")]
    Unknown { name: String, known: String },
    #[error("`{0}` is the stable target: shift traffic to or from the others")]
    Stable(String),
    #[error("it has several targets beside the stable one ({0}): name one of them")]
    Which(String),
    #[error("it has a single target: there is nothing to shift traffic to")]
    Single,
    #[error("a weight must be 0 to {WEIGHT_MAX}, and one of them above 0")]
    Weights,
    #[error("`{0}` gets all traffic already")]
    Top(String),
    #[error("it is {0}: resume it first")]
    Held(&'static str),
    #[error("it is neither paused nor rolled back")]
    Running,
}

/// A split in force: dealing out takes no lock, everything else is rare.
#[derive(Debug)]
pub struct Rollout {
    pub(crate) plan: Plan,
    pub(crate) stable: usize,
    salts: Box<[u64]>,
    sequence: Sequence,
    /// What requests are dealt by.
    effective: ArcSwap<Weights>,
    board: Mutex<Board>,
}

/// What is known and wanted beside the plan.
#[derive(Debug)]
pub(crate) struct Board {
    /// What the document says, or an operator since.
    pub(crate) wanted: Weights,
    pub(crate) is_overridden: bool,
    pub(crate) is_paused: bool,
    pub(crate) tallies: Vec<Tally>,
    look_at: Timestamp,
}

#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) window: Window,
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) rolled_back: Option<RollBack>,
    /// Looks in a row that saw a breach.
    breaches: u32,
    /// Samples so far, and how many of them the last look has seen.
    samples: u64,
    seen: u64,
}

impl Tally {
    fn new(span: Duration) -> Self {
        Self {
            window: Window::new(span),
            requests: 0,
            errors: 0,
            rolled_back: None,
            breaches: 0,
            samples: 0,
            seen: 0,
        }
    }
}

impl Rollout {
    /// * `seed`: where in the sequence dealing begins; other for each gateway.
    pub fn new(plan: Plan, seed: u64) -> Self {
        let weights = Weights::new(plan.targets.iter().map(|t| t.weight).collect::<Box<_>>());
        let heaviest = plan.targets.iter().map(|target| target.weight).max();
        let stable = plan
            .targets
            .iter()
            .position(|target| target.is_stable)
            .or_else(|| plan.targets.iter().position(|target| Some(target.weight) == heaviest))
            .unwrap_or(0);
        let span = plan.guard.map_or(WINDOW, |guard| guard.window);
        let board = Board {
            wanted: weights.clone(),
            is_overridden: false,
            is_paused: false,
            tallies: plan.targets.iter().map(|_| Tally::new(span)).collect(),
            look_at: Timestamp::ZERO,
        };
        let salts = plan.targets.iter().map(|target| xxh3_64(target.name.as_bytes())).collect();
        Self {
            plan,
            stable,
            salts,
            sequence: Sequence::new(seed),
            effective: ArcSwap::from_pointee(weights),
            board: Mutex::new(board),
        }
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The target that the others are judged by.
    pub fn stable(&self) -> usize {
        self.stable
    }

    /// The target of the next request, of those that can be had; `None` if none of them has a weight.
    ///
    /// * `key`: keeps requests that share it together.
    pub fn choose(&self, key: Option<u64>, may: impl Fn(usize) -> bool) -> Option<usize> {
        let weights = self.effective.load();
        match key {
            Some(key) => weights.for_key(key, &self.salts, may),
            None => weights.at(self.sequence.next(), may),
        }
    }

    /// What [`Self::choose`] would say; nothing is dealt out.
    pub fn preview(&self, key: Option<u64>, may: impl Fn(usize) -> bool) -> Option<usize> {
        let weights = self.effective.load();
        match key {
            Some(key) => weights.for_key(key, &self.salts, may),
            None => weights.at(self.sequence.peek(), may),
        }
    }

    /// The weights that requests are dealt by.
    pub fn weights(&self) -> Arc<Weights> {
        self.effective.load_full()
    }

    /// Notes how a request ended. The target that is taken back because of it, if one is.
    pub fn record(&self, target: usize, sample: Sample, now: Timestamp) -> Option<usize> {
        let mut board = self.board();
        let tally = board.tallies.get_mut(target)?;
        if let Some(failed) = sample.failed {
            tally.window.ended(failed, now);
            tally.requests += 1;
            tally.errors += u64::from(failed);
        }
        if let Some(ttft) = sample.ttft {
            tally.window.first_token(ttft, now);
        }
        tally.samples += u64::from(sample != Sample::default());
        let guard = self.plan.guard.as_ref()?;
        if now < board.look_at {
            return None;
        }
        let (least, most) = LOOK_EVERY;
        board.look_at = now + (guard.window / LOOKS).clamp(least, most);
        let back = self.look(guard, &mut board, now)?;
        self.put_in_force(&board);
        Some(back)
    }

    /// The first target whose breach has been seen often enough; it is taken back.
    fn look(&self, guard: &Guard, board: &mut Board, now: Timestamp) -> Option<usize> {
        let stable = board.tallies.get_mut(self.stable)?.window.summary(now);
        for (target, tally) in board.tallies.iter_mut().enumerate() {
            if target == self.stable || tally.rolled_back.is_some() || tally.samples == tally.seen {
                continue;
            }
            tally.seen = tally.samples;
            let Some(breach) = judge(guard, &tally.window.summary(now), &stable) else {
                tally.breaches = 0;
                continue;
            };
            tally.breaches += 1;
            if tally.breaches >= LOOKS_MIN {
                tally.rolled_back = Some(RollBack { reason: Reason::Breach(breach), at: now });
                return Some(target);
            }
        }
        None
    }

    /// Sets weights by name; targets that are not named keep theirs.
    pub fn set(&self, weights: &[(&str, u32)]) -> Result<(), Refused> {
        let mut board = self.board();
        board.check_free()?;
        let mut wanted = board.wanted.clone();
        for (name, weight) in weights {
            if *weight > WEIGHT_MAX {
                return Err(Refused::Weights);
            }
            wanted = wanted.with(self.find(name)?, *weight);
        }
        if wanted.is_zero() {
            return Err(Refused::Weights);
        }
        self.want(&mut board, wanted);
        Ok(())
    }

    /// Gives a target more: this share (0 to 1), or the next of 1, 5, 10, 25, 50 and 100 %. Answers
    /// the share.
    pub fn step(&self, target: Option<&str>, to: Option<f64>) -> Result<f64, Refused> {
        let mut board = self.board();
        board.check_free()?;
        let target = self.canary(target)?;
        let share = match to {
            Some(share) => share,
            None => {
                // A share of 25 % may be a hair off as whole weights.
                let above = board.wanted.share(target) + 1e-6;
                let next = LADDER.into_iter().find(|share| *share > above);
                next.ok_or_else(|| Refused::Top(self.plan.targets[target].name.to_string()))?
            }
        };
        let wanted = board.wanted.stepped(target, share, self.stable);
        self.want(&mut board, wanted);
        Ok(share)
    }

    /// Holds the split as it is, until it is resumed; taking back goes on.
    pub fn pause(&self) -> Result<(), Refused> {
        let mut board = self.board();
        board.check_free()?;
        board.is_paused = true;
        Ok(())
    }

    /// Takes targets back: one, or all but the stable one.
    pub fn roll_back(
        &self,
        target: Option<&str>,
        reason: &str,
        now: Timestamp,
    ) -> Result<(), Refused> {
        let only = target.map(|name| self.canary(Some(name))).transpose()?;
        if self.plan.targets.len() < 2 {
            return Err(Refused::Single);
        }
        let mut board = self.board();
        for (at, tally) in board.tallies.iter_mut().enumerate() {
            if at != self.stable
                && only.is_none_or(|only| only == at)
                && tally.rolled_back.is_none()
            {
                let reason = Reason::Operator(reason.into());
                tally.rolled_back = Some(RollBack { reason, at: now });
            }
        }
        self.put_in_force(&board);
        Ok(())
    }

    /// Lifts a pause and every taking back; what was held against targets is forgotten.
    ///
    /// * `to`: the share that the target begins with, as in [`Self::step`]; else the one it had.
    pub fn resume(&self, target: Option<&str>, to: Option<f64>) -> Result<(), Refused> {
        let mut board = self.board();
        if board.check_free().is_ok() {
            return Err(Refused::Running);
        }
        let wanted = match to {
            None => None,
            Some(share) => {
                let target = self.canary(target)?;
                Some(board.wanted.stepped(target, share, self.stable))
            }
        };
        board.is_paused = false;
        for tally in &mut board.tallies {
            if tally.rolled_back.take().is_some() {
                tally.window.clear();
                tally.breaches = 0;
            }
        }
        match wanted {
            Some(wanted) => self.want(&mut board, wanted),
            None => self.put_in_force(&board),
        }
        Ok(())
    }

    fn want(&self, board: &mut Board, wanted: Weights) {
        let planned = self.plan.targets.iter().map(|target| target.weight);
        board.is_overridden = wanted != Weights::new(planned.collect::<Box<_>>());
        board.wanted = wanted;
        self.put_in_force(board);
    }

    fn put_in_force(&self, board: &Board) {
        let mut weights = board.wanted.only(|at| board.tallies[at].rolled_back.is_none());
        if weights.is_zero() {
            weights = weights.all_to(self.stable);
        }
        self.effective.store(Arc::new(weights));
    }

    fn find(&self, name: &str) -> Result<usize, Refused> {
        let found = self.plan.targets.iter().position(|target| &*target.name == name);
        found.ok_or_else(|| Refused::Unknown { name: name.to_owned(), known: self.names(|_| true) })
    }

    /// The target that is meant: the named one, or the only one beside the stable.
    fn canary(&self, name: Option<&str>) -> Result<usize, Refused> {
        if let Some(name) = name {
            let target = self.find(name)?;
            return if target == self.stable {
                Err(Refused::Stable(name.to_owned()))
            } else {
                Ok(target)
            };
        }
        match self.plan.targets.len() {
            0 | 1 => Err(Refused::Single),
            2 => Ok(1 - self.stable),
            _ => Err(Refused::Which(self.names(|at| at != self.stable))),
        }
    }

    fn names(&self, of: impl Fn(usize) -> bool) -> String {
        let targets = self.plan.targets.iter().enumerate().filter(|(at, _)| of(*at));
        targets.map(|(_, target)| &*target.name).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn board(&self) -> MutexGuard<'_, Board> {
        // A panic elsewhere leaves counts behind, nothing half done.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Board {
    fn check_free(&self) -> Result<(), Refused> {
        if self.tallies.iter().any(|tally| tally.rolled_back.is_some()) {
            return Err(Refused::Held("rolled back"));
        }
        if self.is_paused { Err(Refused::Held("paused")) } else { Ok(()) }
    }
}

impl Reason {
    /// As a label of metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Breach(breach) => breach.kind(),
            Self::Operator(_) => "operator",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Breach(breach) => breach.fmt(f),
            Self::Operator(words) => f.write_str(words),
        }
    }
}
