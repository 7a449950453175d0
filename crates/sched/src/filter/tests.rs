use types::{EndpointId, Slot};

use super::{AsleepFilter, EjectedFilter, Filter, NotServingFilter, StaleFilter};
use crate::{Candidate, Health, LoraFit, RequestView};

fn kept(filter: &dyn Filter, candidates: &[Candidate]) -> Vec<bool> {
    let mut keep = vec![true; candidates.len()];
    filter.filter(&RequestView::default(), candidates, &mut keep);
    keep
}

fn candidates<T: Copy>(values: &[T], set: impl Fn(&mut Candidate, T)) -> Vec<Candidate> {
    let numbered = values.iter().enumerate();
    numbered
        .map(|(n, value)| {
            let mut candidate = Candidate::idle(EndpointId(n as u32), Slot(n as u16));
            set(&mut candidate, *value);
            candidate
        })
        .collect()
}

fn with_health(health: &[Health]) -> Vec<Candidate> {
    candidates(health, |candidate, health| {
        candidate.health = health;
        candidate.ejected = !health.usable();
    })
}

/// LORA-5.
#[test]
fn an_endpoint_that_cannot_serve_the_adapter_is_dropped_even_if_none_is_left() {
    let fits = [LoraFit::Full, LoraFit::NotServed, LoraFit::Unknown];
    let lora = candidates(&fits, |candidate, fit| candidate.lora = fit);
    assert_eq!(kept(&NotServingFilter, &lora), [true, false, true]);
    assert_eq!(kept(&NotServingFilter, &lora[1..2]), [false]);
}

#[test]
fn an_excluded_endpoint_is_dropped() {
    let all = with_health(&[Health::Healthy; 3]);
    let mut keep = [true; 3];
    let excluded = [EndpointId(1)];
    let request = RequestView { excluded: &excluded, ..RequestView::default() };
    NotServingFilter.filter(&request, &all, &mut keep);
    assert_eq!(keep, [true, false, true]);
}

#[test]
fn a_sleeping_endpoint_is_dropped_even_if_none_is_left() {
    let asleep = candidates(&[true, false], |candidate, asleep| candidate.asleep = asleep);
    assert_eq!(kept(&AsleepFilter, &asleep), [false, true]);
    assert_eq!(kept(&AsleepFilter, &asleep[..1]), [false]);
}

/// STALE-1, STALE-2 and STALE-4.
#[test]
fn stale_endpoints_are_dropped_unless_all_are() {
    let stale = candidates(&[true, false, true], |candidate, stale| candidate.stale = stale);
    assert_eq!(kept(&StaleFilter, &stale), [false, true, false]);
    assert_eq!(kept(&StaleFilter, &stale[..1]), [true], "a pool of one is used");
}

#[test]
fn ejected_endpoints_are_dropped() {
    use Health::{Failing, Healthy, Held, Ramping, Trial, Unreachable};
    let all = with_health(&[Healthy, Failing, Held, Unreachable, Trial, Ramping]);
    let expected = [true, false, false, false, true, true];
    assert_eq!(kept(&EjectedFilter::default(), &all), expected);
}

#[test]
fn at_most_half_of_a_pool_is_dropped_for_failures() {
    use Health::{Failing, Healthy};
    let half = with_health(&[Healthy, Failing, Failing, Healthy]);
    assert_eq!(kept(&EjectedFilter::default(), &half), [true, false, false, true]);
    let most = with_health(&[Healthy, Failing, Failing, Failing]);
    assert_eq!(kept(&EjectedFilter::default(), &most), [true; 4]);
}

#[test]
fn unreachable_endpoints_stay_out_while_any_other_is_left() {
    use Health::{Healthy, Held, Unreachable};
    let most = with_health(&[Healthy, Unreachable, Unreachable, Unreachable]);
    assert_eq!(kept(&EjectedFilter::default(), &most), [true, false, false, false]);
    let held = with_health(&[Held, Unreachable]);
    assert_eq!(kept(&EjectedFilter::default(), &held), [true, false]);
    let all = with_health(&[Unreachable, Unreachable]);
    assert_eq!(kept(&EjectedFilter::default(), &all), [true, true], "fail open");
}
