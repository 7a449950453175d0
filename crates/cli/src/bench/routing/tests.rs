//! The command as it is asked for.

use clap::Parser;

use super::{Args, run};

#[derive(Parser)]
struct Asked {
    #[command(flatten)]
    args: Args,
}

fn asked(words: &str) -> Result<Args, clap::Error> {
    let words = ["routing"].into_iter().chain(words.split_whitespace());
    Asked::try_parse_from(words).map(|asked| asked.args)
}

#[test]
fn a_report_is_a_page_and_a_line_for_each_run() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("new/report");
    let mut args = asked(
        "--scenario uniform --load 0.2,0.3 --policy wicketgate,random --seeds 2 --duration 2s \
         --jitter 0.1 --network 1ms",
    )
    .unwrap();
    args.report = Some(dir.clone());
    run(&args).unwrap();
    let lines = std::fs::read_to_string(dir.join("results.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 2 * 2 * 2);
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&line["jitter"], &line["network_ms"]), (&0.1.into(), &1.0.into()));
    }
    let page = std::fs::read_to_string(dir.join("index.html")).unwrap();
    assert!(page.contains(
        "wicketgate bench routing --scenario uniform --load 0.2,0.3 --policy wicketgate,random \
         --seeds 2 --duration 2s --network 1ms --jitter 0.1<"
    ));
}

#[test]
fn a_directory_that_cannot_be_is_refused_before_anything_runs() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut args = asked("--scenario all --seeds 1000").unwrap();
    args.report = Some(file.path().join("below"));
    let error = run(&args).unwrap_err();
    assert!(error.to_string().contains("cannot write"), "{error}");
}

#[test]
fn settings_out_of_range_are_refused() {
    for words in
        ["--jitter 1.5", "--a10g-factor 0", "--network 2s", "--scrape-interval 0s", "--gateways 0"]
    {
        assert!(asked(words).is_err(), "{words}");
    }
    assert!(asked("--jitter 0.3 --a10g-factor 1.4 --scrape-interval 200ms --gateways 4 --share-interval 50ms").is_ok());
}
