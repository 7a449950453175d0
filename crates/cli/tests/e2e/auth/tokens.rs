//! Tokens, against a server of signing keys that speaks HTTPS.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::issuer::{Issuer, Signer};
use super::{bearer, chat};
use crate::gateway::{Gateway, document};
use crate::sims::{fast, fleet};

async fn start(provider: Value) -> (sim::Fleet, Gateway) {
    let fleet = fleet(1, fast()).await;
    let auth = json!({ "auth": { "jwt": { "provider": provider } } });
    let gateway = Gateway::with_document(&document(&fleet.urls(), auth), &[]).await;
    (fleet, gateway)
}

/// AWS's table: 401 missing, expired, malformed, wrong issuer; 403 signature, audience.
async fn tokens_are_judged_as_aws_judges_them() {
    let folder = tempfile::tempdir().unwrap();
    let signer = Signer::new("k1");
    let issuer = Issuer::start(folder.path(), &[signer.jwk()]).await;
    let (_fleet, gateway) = start(issuer.provider(folder.path())).await;
    gateway.scraped(1).await;
    let none = json!({});
    let good = signer.token(600, none.clone());
    assert_eq!(chat(&gateway, &bearer(&good)).await.status, 200);
    assert_eq!(chat(&gateway, &bearer(&good)).await.status, 200);
    assert_eq!(gateway.metric("wicketgate_auth_accepted_total", &["\"token\""]).await, 1.0);
    assert_eq!(gateway.metric("wicketgate_auth_accepted_total", &["known_token"]).await, 1.0);
    for (token, status, code) in [
        (signer.token(-600, none.clone()), 401, "token_expired"),
        (signer.token(600, json!({ "iss": "https://evil.test" })), 401, "invalid_token"),
        ("eyJx.y.z".to_owned(), 401, "invalid_credentials"),
        ("no-token".to_owned(), 401, "invalid_credentials"),
        (Signer::new("k1").token(600, none.clone()), 403, "invalid_signature"),
        (signer.token(600, json!({ "aud": "other" })), 403, "wrong_audience"),
    ] {
        let answer = chat(&gateway, &bearer(&token)).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code));
        assert_eq!(answer.header("www-authenticate").is_some(), status == 401, "{code}");
    }
}

async fn a_new_signing_key_is_fetched_when_the_first_token_comes() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (Signer::new("old"), Signer::new("new"));
    let issuer = Issuer::start(folder.path(), &[old.jwk()]).await;
    let mut provider = issuer.provider(folder.path());
    provider["jwks"]["cache"] = json!("24h");
    let (_fleet, gateway) = start(provider).await;
    gateway.scraped(1).await;
    issuer.publish(&[new.jwk()]);
    let token = bearer(&new.token(600, json!({})));
    gateway
        .until("the new key is there", async || {
            let status = chat(&gateway, &token).await.status;
            assert!([200, 403, 503].contains(&status), "{status}");
            status == 200
        })
        .await;
    assert_eq!(issuer.asked.load(Ordering::Relaxed), 2, "one fetch at the start, one for the key");
    assert_eq!(chat(&gateway, &bearer(&old.token(600, json!({})))).await.status, 403);
}

/// AWS: a gateway whose issuer cannot be reached does not become Ready.
async fn it_is_not_ready_until_signing_keys_were_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let signer = Signer::new("k1");
    let issuer = Issuer::start(folder.path(), &[]).await;
    for page in [
        "HTTP/1.1 302 Found\r\nlocation: https://localhost/keys\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
    ] {
        issuer.answer(page);
        let (_fleet, gateway) = start(issuer.provider(folder.path())).await;
        gateway.said("signing keys cannot be fetched").await;
        let ready = gateway.admin("/readyz").await;
        assert_eq!(ready.status, 503);
        let token = bearer(&signer.token(600, json!({})));
        let answer = chat(&gateway, &token).await;
        assert_eq!((answer.status, answer.code()), (503, "signing_keys_unavailable".to_owned()));
        assert_eq!(answer.header("retry-after"), Some("1"));
        gateway
            .until("the reason is given", async || {
                gateway.admin("/readyz").await.text().contains("signing keys of `idp`")
            })
            .await;
        issuer.publish(&[signer.jwk()]);
        gateway.scraped(1).await;
        assert_eq!(chat(&gateway, &token).await.status, 200);
        // The issuer goes away again: what is held stays valid.
        issuer.answer(page);
        assert_eq!(gateway.metric("wicketgate_auth_jwks_fetches_total", &["\"ok\""]).await, 1.0);
        assert_eq!(chat(&gateway, &token).await.status, 200);
    }
}

async fn signing_keys_are_not_taken_from_a_server_that_nobody_vouches_for() {
    let folder = tempfile::tempdir().unwrap();
    let issuer = Issuer::start(folder.path(), &[Signer::new("k1").jwk()]).await;
    let mut provider = issuer.provider(folder.path());
    provider["jwks"] = json!({});
    let (_fleet, gateway) = start(provider).await;
    gateway.said("signing keys cannot be fetched").await;
    assert!(gateway.metric("wicketgate_auth_jwks_fetches_total", &["tls"]).await >= 1.0);
    assert_eq!(gateway.metric("wicketgate_auth_jwks_failing", &[]).await, 1.0);
}

async fn signing_keys_from_a_file_need_nobody_and_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (Signer::new("old"), Signer::new("new"));
    let file = folder.path().join("keys.json");
    std::fs::write(&file, json!({ "keys": [old.jwk()] }).to_string()).unwrap();
    let provider = json!({
        "name": "idp", "issuer": super::issuer::ISSUER, "audiences": ["gateway"], "jwks": { "file": file },
    });
    let (_fleet, gateway) = start(provider).await;
    gateway.scraped(1).await;
    assert_eq!(chat(&gateway, &bearer(&old.token(600, json!({})))).await.status, 200);
    std::fs::write(&file, json!({ "keys": [new.jwk()] }).to_string()).unwrap();
    let token = bearer(&new.token(600, json!({})));
    gateway.until("the file is read", async || chat(&gateway, &token).await.status == 200).await;
}

crate::front::on_both_paths!(
    tokens_are_judged_as_aws_judges_them,
    a_new_signing_key_is_fetched_when_the_first_token_comes,
    it_is_not_ready_until_signing_keys_were_fetched,
    signing_keys_are_not_taken_from_a_server_that_nobody_vouches_for,
    signing_keys_from_a_file_need_nobody_and_are_read_again,
);
