//! The live page and what it is made of, as any client of the administration listener sees them.

use serde_json::{Value, json};

use crate::gateway::{Gateway, document};
use crate::http::{Answer, ask, chat};
use crate::sims::{fast, fleet, prompt};

const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");

async fn get(gateway: &Gateway, path: &str, headers: &[(&str, &str)]) -> Answer {
    ask(gateway.admin, "GET", path, headers, b"").await
}

#[tokio::test]
async fn a_browser_gets_the_page_and_may_load_nothing_from_elsewhere() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let page = get(&gateway, "/", &[BROWSER]).await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    for file in page.text().split("\"/page/").skip(1).filter_map(|rest| rest.split('"').next()) {
        let part = get(&gateway, &format!("/page/{file}"), &[]).await;
        assert!(part.status == 200 && part.complete, "{file}");
    }
    let etag = page.header("etag").unwrap();
    let again = get(&gateway, "/", &[BROWSER, ("if-none-match", etag)]).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
}

#[tokio::test]
async fn who_is_no_browser_gets_the_list_of_what_there_is() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let index = get(&gateway, "/", &[("accept", "*/*")]).await;
    assert!(index.text().contains("/debug/live") && !index.text().contains('<'));
    assert_eq!(get(&gateway, "/page/other.js", &[]).await.status, 404);
}

#[tokio::test]
async fn nothing_of_the_page_takes_anything_but_a_question() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    for path in ["/", "/page/main.js", "/debug/live", "/debug/decisions", "/debug/rerate?number=0"]
    {
        for method in ["POST", "PUT", "DELETE", "PATCH"] {
            let answer = ask(gateway.admin, method, path, &[], b"").await;
            assert_eq!(answer.status, 404, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn the_start_says_where_the_page_is() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    gateway.said(&format!("live page: http://{}/", gateway.admin)).await;
    let picker = Gateway::picker(&fleet.urls(), &[]).await;
    picker.said(&format!("live page: http://{}/", picker.admin)).await;
    assert_eq!(get(&picker, "/", &[BROWSER]).await.status, 200);
}

#[tokio::test]
async fn the_live_state_is_told_whole_once_and_then_in_brief() {
    let fleet = fleet(3, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    assert_eq!(chat(gateway.traffic, &prompt("hello", 3)).await.status, 200);
    let mut whole = Value::Null;
    gateway
        .until("the decision is in a beat", async || {
            whole = gateway.admin("/debug/live").await.json();
            whole["decisions"].as_array().is_some_and(|decisions| !decisions.is_empty())
        })
        .await;
    let endpoints = whole["who"]["pools"][0]["endpoints"].as_array().unwrap().clone();
    assert_eq!(endpoints.len(), 3);
    assert!(endpoints.contains(&whole["decisions"][0]["endpoint"]));

    let path = format!("/debug/live?shape={}", whole["shape"].as_str().unwrap());
    let brief = gateway.admin(&path).await;
    assert!(brief.json().get("who").is_none());
    assert_eq!(brief.json()["pools"][0]["rows"]["state"].as_array().unwrap().len(), 3);
    // Within the beat there is nothing new; a beat may end between the two.
    let etag = brief.header("etag").unwrap();
    let again = get(&gateway, &path, &[("if-none-match", etag)]).await;
    assert!(again.status == 304 || again.header("etag") != Some(etag));
}

#[tokio::test]
async fn a_decision_is_found_by_its_number_and_rated_again() {
    let fleet = fleet(3, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    assert_eq!(chat(gateway.traffic, &prompt("hello", 3)).await.status, 200);
    let all = gateway.admin("/debug/decisions").await.json();
    let number = all["decisions"][0]["number"].as_u64().unwrap();
    let one = gateway.admin(&format!("/debug/decisions?number={number}")).await.json();
    assert_eq!(one["decisions"], all["decisions"]);
    let none = gateway.admin(&format!("/debug/decisions?number={}", number + 1)).await.json();
    assert_eq!(none["decisions"], json!([]));

    let rerate =
        |number: u64, policy: &str| format!("/debug/rerate?number={number}&policy={policy}");
    let reference = gateway.admin(&rerate(number, "reference")).await.json();
    assert_eq!(reference["scorers"].as_array().unwrap().len(), 3);
    assert_eq!(reference["candidates"].as_array().unwrap().len(), 3);
    assert_eq!(gateway.admin(&rerate(number + 1, "reference")).await.status, 404);
    let unknown = gateway.admin(&rerate(number, "random")).await;
    assert!(unknown.status == 400 && unknown.text().contains("`reference`"), "{}", unknown.text());
    assert_eq!(gateway.admin("/debug/rerate?number=x").await.status, 400);
}

#[tokio::test]
async fn one_endpoint_can_be_asked_for_by_its_address() {
    let fleet = fleet(3, fast()).await;
    let gateway = Gateway::with_document(&document(&fleet.urls(), json!({})), &[]).await;
    gateway.scraped(3).await;
    let authority = fleet.urls()[1].trim_start_matches("http://").replace(':', "%3A");
    let found = gateway.admin(&format!("/debug/endpoints?endpoint={authority}")).await.json();
    let endpoints = found["endpoints"].as_array().unwrap();
    assert_eq!(endpoints.len(), 1);
    assert_eq!(endpoints[0]["health"], "Healthy");
    assert!(endpoints[0]["saturation"].is_number() && endpoints[0]["adapters"].is_array());
    let nobody = gateway.admin("/debug/endpoints?endpoint=nowhere").await.json();
    assert_eq!(nobody["endpoints"], json!([]));
}
