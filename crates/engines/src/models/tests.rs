use proptest::prelude::*;

use super::*;

fn read(body: &str) -> Vec<(String, Option<String>, Option<u64>)> {
    let models = parse(body.as_bytes()).unwrap();
    models.into_iter().map(|model| (model.id, model.parent, model.max_model_len)).collect()
}

fn base(id: &str, length: Option<u64>) -> (String, Option<String>, Option<u64>) {
    (id.into(), None, length)
}

#[test]
fn vllm_lists_the_base_model_and_its_adapters() {
    let body = r#"{"object":"list","data":[
        {"id":"tiny","object":"model","created":1,"owned_by":"vllm","root":"model/tiny-llama",
         "parent":null,"max_model_len":2048,"permission":[{"id":"modelperm-1"}]},
        {"id":"lora-a","object":"model","created":1,"owned_by":"vllm","root":"model/lora-a",
         "parent":"tiny","max_model_len":null,"permission":[]}]}"#;
    let adapter = ("lora-a".into(), Some("tiny".into()), None);
    assert_eq!(read(body), [base("tiny", Some(2048)), adapter]);
}

#[test]
fn sglang_names_the_root_of_a_base_model_but_no_parent() {
    let body = r#"{"object":"list","data":[{"id":"Qwen/Qwen3-32B","object":"model","created":1,
        "owned_by":"sglang","root":"Qwen/Qwen3-32B","parent":null,"max_model_len":40960}]}"#;
    assert_eq!(read(body), [base("Qwen/Qwen3-32B", Some(40_960))]);
}

#[test]
fn tgi_and_trtllm_serve_give_the_name_alone() {
    for owner in ["google", "tensorrt_llm"] {
        let body = format!(
            r#"{{"object":"list","data":[{{"id":"m","object":"model","created":0,"owned_by":"{owner}"}}]}}"#
        );
        assert_eq!(read(&body), [base("m", None)]);
    }
}

#[test]
fn llama_cpp_lists_models_twice_and_its_context_under_meta() {
    let body = r#"{"models":[{"name":"smol","model":"smol","type":"model"}],"object":"list",
        "data":[{"id":"smol","object":"model","owned_by":"llamacpp",
        "meta":{"vocab_type":2,"n_vocab":49152,"n_ctx_train":2048,"n_ctx":8192}}]}"#;
    assert_eq!(read(body), [base("smol", Some(8192))]);
}

#[test]
fn entries_that_cannot_be_used_are_left_out() {
    let long = "x".repeat(MODEL_NAME_BYTES_MAX + 1);
    let body = format!(
        r#"{{"data":[null,7,{{}},{{"id":3}},{{"id":""}},{{"id":"{long}"}},{{"id":"a","parent":"a"}},
            {{"id":"a","parent":"b"}},{{"id":"c","parent":1,"max_model_len":"4k"}},
            {{"id":"d","max_model_len":0}}]}}"#
    );
    assert_eq!(read(&body), [base("a", None), base("c", None), base("d", None)]);
}

#[test]
fn what_is_no_list_is_an_error() {
    for body in ["", "[]", "{}", "{\"data\":{}}", "<html>", "{\"data\":[", "\u{feff}{}", "null"] {
        assert!(matches!(parse(body.as_bytes()), Err(ModelsError::NotAList(_))), "{body}");
    }
    let many = format!(r#"{{"data":[{}0]}}"#, "0,".repeat(MODELS_MAX));
    assert!(matches!(parse(many.as_bytes()), Err(ModelsError::TooMany(_))));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&body);
    }
}
