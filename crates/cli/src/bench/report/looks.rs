//! How each policy is drawn: ours stands out, rivals are muted but can be told apart, by colour, by
//! dashes and by the shape of their points, so also by those who see no difference in colour.
//!
//! Colours are those of Paul Tol's muted scheme, darker on white and lighter on black.

use lab::Policy;

use super::super::measured::Role;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// A class of `style.css`, for weight and opacity.
    pub(super) class: &'static str,
    /// A variable of `style.css`.
    pub(super) colour: &'static str,
    /// Dashes; empty: none.
    pub(super) dashes: &'static str,
    marker: Marker,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marker {
    Circle,
    Square,
    Diamond,
    Up,
    Down,
    Cross,
}

/// Those that ignore load and cache are grey, those that go by load alone are green.
pub(super) fn look(policy: Policy) -> Look {
    use Marker::{Circle, Cross, Diamond, Down, Square, Up};
    let (colour, dashes, marker) = match policy.name() {
        "wicketgate" => ("--ours", "", Circle),
        "expected-time" => ("--ours", "7 3", Square),
        "oracle-ttft" => ("--ink", "2 3", Diamond),
        "oracle-e2e" => ("--ink", "7 3 2 3", Diamond),
        "reference" => ("--rose", "", Circle),
        "lmetric" => ("--teal", "", Square),
        "dynamo-kv" => ("--purple", "", Up),
        "sglang-cache-aware" => ("--wine", "", Diamond),
        "smg-least-load" => ("--olive", "", Down),
        "least-request" => ("--green", "", Up),
        "power-of-two" => ("--green", "4 3", Down),
        "round-robin" => ("--grey", "", Square),
        "connection-sticky" => ("--grey", "7 3", Cross),
        "random" => ("--grey", "2 3", Up),
        _ => ("--olive", "5 2 1 2", Cross),
    };
    let class = match Role::of(policy) {
        Role::Ours => "ours",
        Role::Variant => "variant",
        Role::Oracle => "oracle",
        Role::Rival => "rival",
    };
    Look { class, colour, dashes, marker }
}

impl Look {
    /// The path of a point at `x`, `y`.
    pub(super) fn point(&self, x: f64, y: f64) -> String {
        let size = if self.class == "ours" { 5.0 } else { 3.6 };
        let at = |dx: f64, dy: f64| format!("{:.1} {:.1}", x + dx * size, y + dy * size);
        let shape = |corners: &[(f64, f64)]| {
            let corners: Vec<String> = corners.iter().map(|(dx, dy)| at(*dx, *dy)).collect();
            format!("M{}Z", corners.join("L"))
        };
        match self.marker {
            Marker::Circle => {
                format!(
                    "M{}A{size} {size} 0 1 1 {}A{size} {size} 0 1 1 {}Z",
                    at(-1.0, 0.0),
                    at(1.0, 0.0),
                    at(-1.0, 0.0)
                )
            }
            Marker::Square => shape(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            Marker::Diamond => shape(&[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)]),
            Marker::Up => shape(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
            Marker::Down => shape(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
            Marker::Cross => shape(&[
                (-0.4, -1.2),
                (0.4, -1.2),
                (0.4, -0.4),
                (1.2, -0.4),
                (1.2, 0.4),
                (0.4, 0.4),
                (0.4, 1.2),
                (-0.4, 1.2),
                (-0.4, 0.4),
                (-1.2, 0.4),
                (-1.2, -0.4),
                (-0.4, -0.4),
            ]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_policies_look_the_same() {
        let looks: Vec<Look> = Policy::ALL.into_iter().map(look).collect();
        for (at, look) in looks.iter().enumerate() {
            assert!(!looks[..at].contains(look), "{} looks like another", Policy::ALL[at].name());
        }
    }
}
