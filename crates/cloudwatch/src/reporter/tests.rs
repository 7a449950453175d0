use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::time::UNIX_EPOCH;

use telemetry::metrics::labels::CloudWatchFailure;

use super::*;
use crate::{Group, Value};

#[derive(Default)]
struct Fixed(CloudWatchMetrics);

impl Source for Fixed {
    fn report(&self) -> Report {
        let value = Value { name: "KvUsage", unit: "Percent", value: 25.0 };
        Report { time: UNIX_EPOCH, groups: vec![Group { dimension: None, values: vec![value] }] }
    }

    fn counters(&self) -> &CloudWatchMetrics {
        &self.0
    }
}

fn settings(mode: CloudWatchMode) -> CloudWatch {
    CloudWatch {
        mode,
        namespace: "Wicketgate".to_owned(),
        dimensions: BTreeMap::from([("Cluster".to_owned(), "test".to_owned())]),
        interval: Duration::from_millis(5),
    }
}

#[test]
fn an_agent_gets_a_whole_line_over_tcp() {
    let agent = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = EmfTarget::Tcp(agent.local_addr().unwrap().to_string());
    let _reporter =
        Reporter::start(settings(CloudWatchMode::Emf(target)), Fixed::default()).unwrap();
    let (stream, _) = agent.accept().unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["KvUsage"], &line["Cluster"]), (&25.0.into(), &"test".into()));
}

#[test]
fn a_report_that_cannot_be_written_is_counted_and_said_once() {
    let source = Fixed::default();
    let mut way = Way::Lines(EmfTarget::File("/no/such/folder/emf".into()));
    let mut complained = None;
    for _ in 0..3 {
        let mode = CloudWatchMode::Emf(EmfTarget::Stdout);
        count(&source.0, way.send(&source.report(), &settings(mode)), &mut complained);
    }
    assert_eq!(source.0.failures.of(CloudWatchFailure::Write).get(), 3);
    assert_eq!((source.0.reports.get(), complained), (0, Some("write")));
}

#[test]
fn lines_in_a_file_stand_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let target = EmfTarget::File(folder.path().join("emf"));
    for _ in 0..2 {
        write(&target, b"{}\n").unwrap();
    }
    let mut text = String::new();
    std::fs::File::open(folder.path().join("emf")).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "{}\n{}\n");
}
