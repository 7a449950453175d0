//! Property: whatever valid JSON a client sends, in whatever pieces, arrives byte for byte.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::json;

use crate::bodies::{chunked, sha256};
use crate::gateway::Gateway;
use crate::http::{CHAT, Client, request};
use crate::http2::Http2;
use crate::sims::{asked, fast, fleet};

/// Any JSON text: odd spaces, escapes, long numbers, equal keys within nested objects.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?[1-9][0-9]{0,25}",
        "-?0\\.[0-9]{1,20}([eE][-+]?[1-9])?",
        text(),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let item = (space(), inner, space())
            .prop_map(|(before, value, after)| before + &value + &after)
            .boxed();
        prop_oneof![
            proptest::collection::vec(item.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(","))),
            proptest::collection::vec(
                (prop_oneof![Just("\"same\"".to_owned()), text()], item),
                0..4
            )
            .prop_map(|fields| {
                let fields: Vec<String> =
                    fields.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
                format!("{{{}}}", fields.join(" ,"))
            }),
        ]
    })
}

fn space() -> impl Strategy<Value = String> {
    "[ \t\r\n]{0,3}"
}

/// A JSON string in one of its many spellings.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z0-9 .,:{}\\[\\]]{1,8}",
        Just("\\u0041\\u00e9".to_owned()),
        Just("\\ud83d\\ude00".to_owned()),
        Just("\\\"\\\\\\/\\b\\f\\n\\r\\t".to_owned()),
        Just("héllo 😀 \u{7f}\u{2028}".to_owned()),
        Just("\\u0000".to_owned()),
    ];
    proptest::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

/// A body with one `model`, anywhere among fields that mean nothing to the gateway.
fn body() -> impl Strategy<Value = String> {
    let fields = proptest::collection::vec((0..1000_u32, value()), 0..6);
    (fields, any::<prop::sample::Index>(), space(), space()).prop_map(
        |(fields, place, before, after)| {
            let mut fields: Vec<String> = fields
                .iter()
                .enumerate()
                .map(|(at, (key, value))| format!("\"x{at}_{key}\":{value}"))
                .collect();
            let place = place.index(fields.len() + 1);
            fields.insert(place, "\"\\u006dodel\" : \"llama-3.1-8b\"".to_owned());
            format!("{before}{{{before}{}{after}}}{after}", fields.join(","))
        },
    )
}

#[test]
fn any_body_in_any_pieces_arrives_byte_for_byte() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (fleet, gateway) = runtime.block_on(async {
        let fleet = fleet(1, fast()).await;
        let gateway = Gateway::over(&fleet.urls(), json!({})).await;
        (fleet, gateway)
    });
    let sizes = proptest::collection::vec(prop_oneof![1_usize..8, 8_usize..600], 0..8);
    let mut runner =
        TestRunner::new(Config { cases: 96, failure_persistence: None, ..Config::default() });
    let result = runner.run(&(body(), sizes, 0..3_u8), |(body, sizes, way)| {
        let bytes = body.as_bytes();
        let arrived = runtime.block_on(async {
            let answer = if way == 2 {
                let mut rest = bytes;
                let mut pieces = Vec::new();
                for size in &sizes {
                    let (piece, after) = rest.split_at((*size).min(rest.len()));
                    pieces.push(piece);
                    rest = after;
                }
                pieces.push(rest);
                Http2::connect(gateway.traffic).await.post(CHAT, &[], &pieces).await
            } else {
                let mut client = Client::connect(gateway.traffic).await;
                let whole = match way {
                    0 => request("POST", CHAT, &[], bytes),
                    _ => request(
                        "POST",
                        CHAT,
                        &[("Transfer-Encoding", "chunked")],
                        &chunked(bytes, &sizes),
                    ),
                };
                let mut rest = whole.as_slice();
                for size in &sizes {
                    let (piece, after) = rest.split_at((*size).min(rest.len()));
                    client.send(piece).await;
                    rest = after;
                }
                client.send(rest).await;
                client.answer().await
            };
            if answer.header("x-wicketgate-component") == Some("edge") {
                return Err(TestCaseError::fail(format!("refused: {}", answer.text())));
            }
            Ok(asked(fleet.server(0)).await.last().map(|request| request.body_sha256.clone()))
        })?;
        prop_assert_eq!(arrived, Some(sha256(bytes)));
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}
