//! Shares and weights as they are written on a command line.

use std::str::FromStr;

/// 0 to 1, written as per cent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share(pub(super) f64);

impl FromStr for Share {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "write a share as 0% to 100%, such as 25%";
        let percent: f64 =
            text.strip_suffix('%').ok_or(WRONG)?.trim().parse().map_err(|_| WRONG)?;
        if (0.0..=100.0).contains(&percent) { Ok(Self(percent / 100.0)) } else { Err(WRONG) }
    }
}

/// `TARGET=WEIGHT`; a model's name may hold a `=`, a weight none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) target: String,
    pub(super) weight: u32,
}

impl FromStr for Weight {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "write TARGET=WEIGHT, such as llama-v2=10";
        let (target, weight) = text.rsplit_once('=').ok_or(WRONG)?;
        let weight = weight.parse().map_err(|_| WRONG)?;
        if target.is_empty() { Err(WRONG) } else { Ok(Self { target: target.to_owned(), weight }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_per_cent_and_says_so() {
        for (text, share) in [("25%", 0.25), ("0.5%", 0.005), ("100 %", 1.0), ("0%", 0.0)] {
            assert_eq!(text.parse(), Ok(Share(share)), "{text}");
        }
        for text in ["25", "0.25", "-1%", "101%", "%", "NaN%", ""] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_weight_follows_the_last_equals_sign() {
        let weight = |target: &str, weight| Weight { target: target.to_owned(), weight };
        assert_eq!("org/a:b=10".parse(), Ok(weight("org/a:b", 10)));
        assert_eq!("a=b=0".parse(), Ok(weight("a=b", 0)));
        for text in ["a", "=1", "a=", "a=-1", "a=x", "a=4294967296"] {
            assert!(text.parse::<Weight>().is_err(), "{text}");
        }
    }
}
