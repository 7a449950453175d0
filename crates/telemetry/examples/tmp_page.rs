use wicketgate_telemetry::*;
use std::time::Duration;
fn main(){ let m=Metrics::new(BuildInfo{version:"0.1.0",revision:"abc"}); let p=types::PoolName::new("llama \"x\"\n"); let e=m.endpoint(&p,"gpu-1:8000"); e.scrape_age.set(0.1); e.kv_usage.set(0.5); m.gateway().set_config_hash("beef"); m.pool(&p).request_ttft.observe(Duration::from_millis(31)); m.pool(&p).request_ttft.observe(Duration::from_secs(310));
 if std::env::args().nth(1).is_some() { print!("{}", names::markdown()) } else { print!("{}", m.encode()) } }
