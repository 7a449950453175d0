//! Rate limits that contradict themselves, each other, or the rest of the document.

mod overlap;
mod reach;

use std::collections::HashMap;

use limits::{Amount, Kind, Override, Period, Rule};
use types::Priority;

use super::entitled;
use crate::build::View;
use crate::node::Place;
use crate::report::Report;
use crate::spec::Spec;

/// A rule and where it stands.
#[derive(Clone, Copy)]
struct Written<'a> {
    rule: &'a Rule,
    view: View<'a>,
    index: usize,
}

impl Written<'_> {
    fn path(&self, rest: &str) -> String {
        format!("spec.rateLimits[{}]{rest}", self.index)
    }

    /// Where the rule's name stands.
    fn place(&self) -> Place {
        self.view.get("name").place()
    }
}

/// `view` is the document's `rateLimits`.
pub(crate) fn check(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    let rules = spec.rate_limits.iter().enumerate();
    let rules: Vec<Written<'_>> =
        rules.map(|(index, rule)| Written { rule, view: view.item(index), index }).collect();
    let mut names: HashMap<&str, Place> = HashMap::new();
    for own in &rules {
        if let Some(first) = names.insert(&own.rule.name, own.place())
            && !own.rule.name.is_empty()
        {
            let message = format!("Duplicate value: \"{}\"", own.rule.name);
            let hint = format!("the name must be unique; first in line {}", first.line);
            report.error_with_hint(own.place(), &own.path(".name"), message, hint);
        }
        amounts(own, report);
        priorities(own, spec, report);
        for (at, other) in own.rule.overrides.iter().enumerate() {
            overriding(own, at, other, report);
        }
        reach::check(own, spec, report);
    }
    overlap::check(&rules, report);
}

fn amounts(own: &Written<'_>, report: &mut Report<'_>) {
    if own.rule.limits_nothing() {
        let any = Kind::ALL.iter().any(|kind| own.view.get(kind.as_str()).is_present());
        if !any {
            report.error_with_hint(
                own.place(),
                &own.path(""),
                format!("rule `{}` limits nothing", own.rule.name),
                "add `requests`, `inputTokens`, `outputTokens`, `tokens` or `concurrent`",
            );
        }
    }
    for (kind, amount) in own.rule.amounts() {
        let view = own.view.get(kind.as_str());
        if view.is_present() {
            amount_of(amount, view, &own.path(&format!(".{}", kind.as_str())), report);
        }
    }
}

fn amount_of(amount: Amount, view: View<'_>, path: &str, report: &mut Report<'_>) {
    let rates: Vec<_> = amount.periods().filter(|(period, _)| *period != Period::Day).collect();
    if rates.is_empty() && amount.per_day.is_none() {
        report.error_with_hint(
            Place { width: 1, ..view.place() },
            path,
            "no amount is given",
            "add `perSecond`, `perMinute`, `perHour` or `perDay`",
        );
    }
    let daily = |(period, amount): &(Period, std::num::NonZeroU64)| {
        amount.get().saturating_mul(Period::Day.nanos() / period.nanos())
    };
    if let (Some(budget), Some(rate)) = (amount.per_day, rates.first())
        && daily(rate) <= budget.get()
    {
        report.warning(
            view.get("perDay").place(),
            &format!("{path}.perDay"),
            format!(
                "the budget of {budget} is never reached: the rate lets {} a day pass",
                daily(rate)
            ),
            Some("lower the budget, or leave it out"),
        );
    }
    let (place, burst_path) = (view.get("burst").place(), format!("{path}.burst"));
    let Some(burst) = amount.burst else { return };
    match rates.as_slice() {
        [] => report.error_with_hint(
            place,
            &burst_path,
            "`burst` means nothing for a day's budget: all of it may be used at once",
            "remove it, or add a rate such as `perMinute` beside the budget",
        ),
        [_, _, ..] => report.error_with_hint(
            place,
            &burst_path,
            "`burst` stands beside several rates: whose is it?",
            "write one rule for each rate",
        ),
        [_] => {}
    }
    if let Some(budget) = amount.per_day
        && burst > budget
    {
        let message = format!("a burst of {burst} is more than the whole day's budget of {budget}");
        report.error_with_hint(place, &burst_path, message, "lower `burst` or raise `perDay`");
    }
}

fn priorities(own: &Written<'_>, spec: &Spec, report: &mut Report<'_>) {
    let of_requests = entitled::priorities(spec);
    for (at, item) in own.view.get("match").get("priorities").items().enumerate() {
        let Some(text) = item.word() else { continue };
        let path = own.path(&format!(".match.priorities[{at}]"));
        let priority = Priority::parse(text);
        if let Some(priority) = priority.filter(|own| !of_requests.contains(own)) {
            report.warning(
                item.place(),
                &path,
                format!("never applies: no request ever has priority {priority}"),
                Some(super::flow::NO_SUCH_PRIORITY),
            );
        } else if priority.is_none() {
            let shown = crate::node::shortened(text);
            report.error_with_hint(
                item.place(),
                &path,
                format!("`{shown}` is no priority"),
                "write Critical, Standard, Sheddable or a whole number in quotes",
            );
        }
    }
}

fn overriding(own: &Written<'_>, at: usize, other: &Override, report: &mut Report<'_>) {
    let view = own.view.get("overrides").item(at);
    let (per, sets, rule_sets) = (own.rule.per, &other.matches, &own.rule.matches);
    let parts = [
        ("tenants", "tenant", per.tenant, &sets.tenants, &rule_sets.tenants),
        ("keys", "key", per.key, &sets.keys, &rule_sets.keys),
        ("models", "model", per.model, &sets.models, &rule_sets.models),
        ("routes", "route", per.route, &sets.routes, &rule_sets.routes),
    ];
    let path = |key: &str| own.path(&format!(".overrides[{at}]{key}"));
    for (key, property, is_apart, names, of_rule) in parts {
        if names.is_empty() {
            continue;
        }
        let place = view.get(key).place();
        let place = Place { width: 1, ..place };
        if !is_apart {
            report.error_with_hint(
                place,
                &path(&format!(".{key}")),
                format!("the rule has no bucket for each {property}, so none can have an amount of its own"),
                format!("add `{property}` to `per`"),
            );
        } else if !of_rule.is_empty()
            && let Some(outside) = names.iter().find(|name| !of_rule.contains(*name))
        {
            report.error_with_hint(
                place,
                &path(&format!(".{key}")),
                format!("never applies to `{outside}`, which the rule's `match` leaves out"),
                format!("add it to `match.{key}`, or remove it here"),
            );
        }
    }
    if parts.iter().all(|(.., names, _)| names.is_empty()) {
        report.error_with_hint(
            Place { width: 1, ..view.place() },
            &path(""),
            "names nobody: it would replace the rule for all",
            "add `tenants`, `keys`, `models` or `routes`",
        );
    }
    let numbers = own.rule.amounts().into_iter().flat_map(|(kind, amount)| {
        let periods = amount.periods().map(|(_, number)| number);
        periods.chain(amount.burst).map(move |number| (kind, number))
    });
    let places = own.rule.concurrent.map(|most| (Kind::Concurrent, most.into()));
    if let Some((kind, number)) =
        numbers.chain(places).find(|(_, number)| other.factor.empties(*number))
    {
        report.error_with_hint(
            view.get("factor").place(),
            &path(".factor"),
            format!("makes less than one of the {number} of `{}`", kind.as_str()),
            "raise the factor or the amount; whoever shall have nothing needs no rule but no access",
        );
    }
}
