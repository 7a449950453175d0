//! TGI's page (3.x): no KV gauge, no adapters, integers as Rust writes them.

use std::fmt::Write;

use super::histogram::Histogram;
use super::{Books, Identity};

pub(super) fn page(identity: &Identity<'_>, books: &Books) -> String {
    let stats = &books.stats;
    let mut out = String::new();
    let used = u64::from(stats.blocks_used) * u64::from(identity.spec.block_size);
    for (name, value) in [
        ("tgi_queue_size", u64::from(stats.waiting())),
        ("tgi_batch_current_size", u64::from(stats.running)),
        ("tgi_batch_current_max_tokens", used),
    ] {
        let _ = write!(out, "# TYPE {name} gauge\n{name} {value}\n\n");
    }
    let finished = books.finished_stop + books.finished_length;
    for (name, value) in [
        ("tgi_request_count", finished + books.aborted + u64::from(stats.running)),
        ("tgi_request_success", finished),
    ] {
        let _ = write!(out, "# TYPE {name} counter\n{name} {value}\n\n");
    }
    let failed = books.rejected;
    let _ = write!(
        out,
        "# TYPE tgi_request_failure counter\ntgi_request_failure{{err=\"overloaded\"}} {failed}\n\n"
    );
    for (name, value) in
        [("tgi_batch_inference_count", stats.steps), ("tgi_batch_inference_success", stats.steps)]
    {
        let _ = write!(out, "# TYPE {name} counter\n{name}{{method=\"decode\"}} {value}\n\n");
    }
    for (name, histogram) in [
        ("tgi_request_duration", &books.end_to_end),
        ("tgi_request_inference_duration", &books.inference),
        ("tgi_request_queue_duration", &books.queue),
        ("tgi_request_mean_time_per_token_duration", &books.per_output_token),
        ("tgi_request_input_length", &books.prompt_tokens),
        ("tgi_request_generated_tokens", &books.generation_tokens),
    ] {
        write_histogram(&mut out, name, histogram);
    }
    out
}

fn write_histogram(out: &mut String, name: &str, histogram: &Histogram) {
    let _ = writeln!(out, "# TYPE {name} histogram");
    for (bound, count) in histogram.cumulative() {
        let bound = if bound.is_infinite() { "+Inf".to_owned() } else { bound.to_string() };
        let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {count}");
    }
    let (sum, count) = (histogram.sum(), histogram.count());
    let _ = write!(out, "{name}_sum {sum}\n{name}_count {count}\n\n");
}
