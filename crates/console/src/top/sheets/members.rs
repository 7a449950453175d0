//! The members of a router over clusters.

use gateway::{FleetView, MemberView};

use super::share;
use crate::text::{count, percent, time};
use crate::top::sheet::{Cell, Column, Row, Sheet};
use crate::top::theme::Tone;

pub(super) fn members(fleet: &FleetView) -> Sheet {
    Sheet {
        columns: vec![
            Column::left("member", 14, 0),
            Column::left("state", 9, 0),
            Column::right("age", 6, 0),
            Column::right("share", 6, 0),
            Column::right("flying", 6, 0),
            Column::left("full", 11, 0),
            Column::right("waiting", 7, 70),
            Column::right("ready", 5, 78),
            Column::right("ramp", 5, 86),
            Column::right("failed", 6, 94),
            Column::right("way", 6, 102),
            Column::right("spill", 6, 110),
            Column::right("sent", 6, 118),
            Column::left("region", 14, 126),
        ],
        rows: fleet.members.iter().map(member).collect(),
        empty: "the document names no member",
    }
}

fn member(view: &MemberView) -> Row {
    let age = view.heartbeat_age_ms.map(|age| age as f64 / 1000.0);
    let load = view.models.iter().map(|model| f64::from(model.load)).reduce(f64::max);
    let waiting: u64 = view.models.iter().map(|model| u64::from(model.waiting)).sum();
    let ready: u64 = view.models.iter().map(|model| u64::from(model.endpoints_ready)).sum();
    // Requests that came because there was no room elsewhere.
    let spilled: u64 = ["spill", "overflow"].iter().filter_map(|why| view.reasons.get(*why)).sum();
    let tone = match view.state.as_str() {
        "fresh" => Tone::Good,
        "suspect" | "returning" | "draining" => Tone::Warn,
        _ => Tone::Bad,
    };
    let number = |number: u64, tone| Cell::number(number.to_string(), number as f64, tone);
    let warn_above = |is_above| if is_above { Tone::Warn } else { Tone::Plain };
    Row {
        id: format!("\n{}", view.member),
        cells: vec![
            Cell::text(&view.member, Tone::Name),
            Cell::text(&view.state, tone),
            Cell::maybe(age, time, warn_above(age.is_some_and(|age| age > 6.0))),
            Cell::number(percent(view.share_now), view.share_now, Tone::Plain),
            number(view.in_flight.into(), Tone::Plain),
            share(load),
            number(waiting, warn_above(waiting > 0)),
            number(ready, warn_above(ready == 0)),
            Cell::number(percent(view.ramp.into()), view.ramp.into(), warn_above(view.ramp < 1.0)),
            Cell::number(
                percent(view.failed.into()),
                view.failed.into(),
                warn_above(view.failed > 0.05),
            ),
            // Before the first report the way there is not known.
            Cell::maybe(age.map(|_| view.round_trip_ms / 1000.0), time, Tone::Dim),
            Cell::number(count(spilled), spilled as f64, warn_above(spilled > 0)),
            Cell::number(count(view.sent), view.sent as f64, Tone::Dim),
            Cell::text(&view.region, Tone::Dim),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_is_a_line_with_its_state_and_share() {
        let member = |name: &str, state: &str| MemberView {
            member: name.to_owned(),
            state: state.to_owned(),
            heartbeat_age_ms: Some(1500),
            ramp: 0.5,
            share_now: 0.25,
            reasons: [("spill".to_owned(), 7), ("local".to_owned(), 90)].into(),
            ..MemberView::default()
        };
        let fleet = FleetView {
            members: vec![member("west", "fresh"), member("east", "dead")],
            ..FleetView::default()
        };
        let text = members(&fleet).plain(150);
        let line = text.lines().find(|line| line.contains("west")).unwrap();
        assert!(line.contains("fresh") && line.contains("25 %") && line.contains("50 %"), "{text}");
        assert!(line.split_whitespace().any(|word| word == "7"), "what spilled there: {text}");
        assert!(text.lines().any(|line| line.contains("east") && line.contains("dead")), "{text}");
    }
}
