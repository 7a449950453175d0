//! `wicketgate demo`, as a person or a script runs it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn demo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wicketgate"))
        .arg("demo")
        .args(arguments)
        .output()
        .expect("the binary was built")
}

#[test]
fn json_is_one_object_a_policy_without_errors_and_nothing_else() {
    // Little load, so that a slow machine keeps up; half a second of the fleet's time is a
    // quarter of a real one.
    let output =
        demo(&["--once", "--json", "--duration", "3s", "--time-scale", "0.5", "--load", "0.1"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let policies: Vec<&str> = rows.iter().map(|row| row["policy"].as_str().unwrap()).collect();
    assert_eq!(policies, ["round-robin", "least-request", "wicketgate"]);
    for row in &rows {
        assert_eq!(row["errors"], 0, "{row}");
        assert_eq!(row["requests"], rows[0]["requests"], "{row}");
        assert!(row["requests"].as_u64().unwrap() > 5, "{row}");
        let ttft = |name: &str| row[name].as_f64().unwrap();
        assert!(ttft("ttft_p50_ms") > 15.0, "{row}");
        assert!(ttft("ttft_p50_ms") <= ttft("ttft_p95_ms"), "{row}");
        assert!(ttft("ttft_p95_ms") <= ttft("ttft_p99_ms"), "{row}");
        assert!(ttft("output_tokens_per_second") > 0.0, "{row}");
        let share: f64 =
            row["share"].as_object().unwrap().values().map(|share| share.as_f64().unwrap()).sum();
        assert!((share - 1.0).abs() < 1e-3, "{row}");
    }
    let to_fast = |row: &Value| row["share"]["llama-3.1-8b/h100"].as_f64().unwrap();
    assert!((to_fast(&rows[0]) - 2.0 / 6.0).abs() < 0.1, "{}", rows[0]);
}

#[test]
fn the_table_comes_with_what_to_know_about_it() {
    let output = demo(&["--once", "--duration", "1s", "--time-scale", "0.5", "--load", "0.1"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "round robin",
        "least request",
        "TTFT P95",
        "errors",
        "× A10G",
        "Load: ",
        "No GPU was used",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

#[test]
fn without_once_it_serves_what_it_invites_to_until_interrupted() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_wicketgate"))
        .args(["demo", "--duration", "500ms", "--load", "0.1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let invitation = lines.find(|line| line.starts_with("curl ")).expect("an invitation");
    let url = invitation.strip_prefix("curl http://").unwrap();
    let (address, path) = url.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("200 OK") && answer.contains("llama-3.1-8b"), "{answer}");

    let last = lines.find(|line| line.contains("Ctrl-C")).expect("how to end it");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(child.wait().unwrap().success(), "{last}");
}

#[test]
fn a_load_that_is_none_is_refused() {
    for load in ["0", "-1", "much", "inf"] {
        assert!(!demo(&[&format!("--load={load}")]).status.success(), "--load {load}");
    }
}
