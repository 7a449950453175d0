//! The metrics page, as it is or spoilt.

use bytes::Bytes;
use tokio::time::{Duration, Instant, sleep};

use super::{After, Connection, FaultKind, Framing, Garbage, Shared, after};

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) async fn serve(server: &Shared, connection: &mut Connection) -> After {
    let fault = server.faults().strike_metrics(Instant::now());
    let (status, page) = match fault {
        None => (200, server.metrics_page()),
        Some((FaultKind::MetricsError { status }, _)) => (status, Bytes::from("injected fault")),
        Some((FaultKind::MetricsSlow { delay_ms }, _)) => {
            tokio::select! {
                () = connection.gone() => return After::Close,
                () = sleep(Duration::from_millis(delay_ms)) => {}
            }
            (200, server.metrics_page())
        }
        Some((FaultKind::MetricsGarbage { what }, _)) => (200, spoil(&server.metrics_page(), what)),
        Some((_, frozen)) => (200, frozen.unwrap_or_default()),
    };
    let date = server.spec.quirks.date(telemetry::clock::unix_seconds(telemetry::clock::wall()));
    let mut headers = vec![("content-type", TEXT)];
    headers.extend(date.as_deref().map(|date| ("date", date)));
    connection.head(status, &headers, Framing::Length(page.len()));
    connection.chunk(&page);
    after(connection.flush().await)
}

fn spoil(page: &[u8], what: Garbage) -> Bytes {
    let value = match what {
        Garbage::Nan => "NaN",
        Garbage::Infinity => "+Inf",
        Garbage::Negative => "-7.0",
        Garbage::Huge => "1e308",
        Garbage::Text => "several",
        Garbage::Duplicate => "123456.0",
        Garbage::Binary => return Bytes::from([&[0xFF, 0xFE, 0x00, 0x80], page].concat()),
        Garbage::Empty => return Bytes::new(),
        Garbage::Giant => {
            let line = b"# padding that no parser should keep in memory............\n";
            return Bytes::from([line.repeat(50_000_000 / line.len()).as_slice(), page].concat());
        }
        Garbage::Truncated => return Bytes::copy_from_slice(&page[..page.len() * 2 / 3]),
    };
    let mut out = Vec::with_capacity(page.len() * 2);
    for line in page.split_inclusive(|byte| *byte == b'\n') {
        let end = line.iter().rposition(|byte| *byte == b' ');
        if what == Garbage::Duplicate || line.starts_with(b"#") {
            out.extend(line);
        }
        if let Some(end) = end
            && !line.starts_with(b"#")
        {
            out.extend(&line[..=end]);
            out.extend(value.as_bytes());
            out.push(b'\n');
        }
    }
    Bytes::from(out)
}
