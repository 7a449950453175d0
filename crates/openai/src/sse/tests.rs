use super::*;

fn read(stream: &str) -> SseReader {
    let mut reader = SseReader::new();
    reader.push(stream.as_bytes());
    reader.finish();
    reader
}

fn usage(prompt_tokens: u64, completion_tokens: u64, cached_tokens: Option<u64>) -> Option<Usage> {
    Some(Usage { prompt_tokens, completion_tokens, cached_tokens })
}

#[test]
fn a_chat_stream_is_counted_to_its_end() {
    let reader = read(concat!(
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}],\"usage\":null}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0}]}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[],\"content\":null},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3,\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n",
        "data: [DONE]\n\n",
    ));
    assert_eq!((reader.events(), reader.content_events()), (7, 3));
    assert_eq!(reader.first_event(), Some(EventKind::Other));
    assert_eq!(reader.usage(), usage(9, 3, Some(4)));
    assert!(reader.done() && !reader.error() && reader.at_event_boundary());
}

#[test]
fn a_completions_stream_has_its_text_in_the_choice() {
    let reader = read(
        "data: {\"choices\":[{\"text\":\"x\"},{\"text\":\"\"}]}\n\ndata: {\"choices\":[{\"text\":\"\"}]}\n\n",
    );
    assert_eq!((reader.events(), reader.content_events()), (2, 1));
    assert_eq!(reader.first_event(), Some(EventKind::Content));
    assert!(!reader.done());
}

#[test]
fn an_anthropic_stream_is_read() {
    let reader = read(concat!(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"content\":[],\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":100,\"output_tokens\":1}}}\n\n",
        "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n",
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":12}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    ));
    assert_eq!((reader.events(), reader.content_events()), (6, 1));
    assert_eq!(reader.first_event(), Some(EventKind::Usage));
    assert_eq!(reader.usage(), usage(105, 12, Some(100)));
    assert!(reader.done());
}

#[test]
fn a_responses_stream_is_read_however_large_its_last_event() {
    let text = "long \\\"usage\\\":{} ".repeat(10_000);
    let reader = read(&format!(
        concat!(
            "event: response.created\ndata: {{\"type\":\"response.created\",\"response\":{{\"error\":null,\"usage\":null}}}}\n\n",
            "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}}\n\n",
            "event: response.output_text.done\ndata: {{\"type\":\"response.output_text.done\",\"text\":\"{0}\"}}\n\n",
            "event: response.completed\ndata: {{\"type\":\"response.completed\",\"response\":{{\"tools\":[{{\"usage\":{{\"input_tokens\":1}}}}],",
            "\"output\":[{{\"text\":\"{0}\"}}],\"usage\":{{\"input_tokens\":7,\"input_tokens_details\":{{\"cached_tokens\":2}},\"output_tokens\":3}}}}}}\n\n",
        ),
        text
    ));
    assert_eq!((reader.events(), reader.content_events()), (4, 1));
    assert_eq!(reader.usage(), usage(7, 3, Some(2)));
    assert!(reader.done() && !reader.error());
}

#[test]
fn a_failed_response_is_an_end_and_an_error() {
    let reader =
        read("event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{}}\n\n");
    assert!(reader.done() && reader.error());
    let incomplete = read("data: {\"type\":\"response.incomplete\",\"response\":{}}\n\n");
    assert!(incomplete.done() && !incomplete.error());
}

#[test]
fn a_tgi_stream_ends_with_its_whole_text() {
    let reader = read(concat!(
        "data:{\"index\":1,\"token\":{\"id\":5,\"text\":\" a\",\"special\":false},\"generated_text\":null,\"details\":null}\n\n",
        "data:{\"index\":2,\"token\":{\"id\":6,\"text\":\" b\"},\"generated_text\":\" a b\",\"details\":{\"finish_reason\":\"length\",\"generated_tokens\":2,\"input_length\":8}}\n\n",
    ));
    assert_eq!((reader.events(), reader.content_events()), (2, 2));
    assert_eq!(reader.usage(), usage(8, 2, None));
    assert!(reader.done());
}

#[test]
fn an_sglang_stream_is_read() {
    let reader = read(concat!(
        "data: {\"text\":\"a\",\"meta_info\":{\"prompt_tokens\":4,\"completion_tokens\":1,\"cached_tokens\":0}}\n\n",
        "data: {\"text\":\"ab\",\"meta_info\":{\"prompt_tokens\":4,\"completion_tokens\":2,\"cached_tokens\":0}}\n\n",
        "data: [DONE]\n\n",
    ));
    assert_eq!(reader.content_events(), 2);
    assert_eq!(reader.usage(), usage(4, 2, Some(0)));
    assert!(reader.done());
}

#[test]
fn an_error_in_a_stream_is_noticed_in_every_dialect() {
    for event in [
        "data: {\"error\":{\"message\":\"x\"}}\n\n",
        "data: {\"error\":\"x\",\"error_type\":\"generation\"}\n\n",
        "data: {\"object\":\"error\",\"message\":\"x\"}\n\n",
        "event: error\ndata: {\"type\":\"error\",\"error\":{}}\n\n",
        "event: error\ndata: whatever\n\n",
        "data: {\"type\":\"error\",\"code\":\"x\"}\n\n",
    ] {
        let reader = read(event);
        assert!(reader.error() && !reader.done(), "{event}");
        assert_eq!(reader.first_event(), Some(EventKind::Error));
    }
    assert!(
        !read("data: {\"error\":null}\n\ndata: {\"error\":false}\n\ndata: {\"error\":\"\"}\n\n")
            .error()
    );
}

#[test]
fn all_line_ends_mean_the_same() {
    let unix = "event: error\n: note\ndata: {\"error\":{}}\n\ndata: [DONE]\n\n";
    for end in ["\r", "\r\n", "\n"] {
        let reader = read(&unix.replace('\n', end));
        assert_eq!(reader.events(), 2, "{end:?}");
        assert!(reader.done() && reader.error() && reader.at_event_boundary());
    }
}

#[test]
fn comments_and_events_without_data_are_no_events() {
    let reader = read(": ping\n\n\n\nevent: ping\n\nid: 1\nretry: 10\n\n:\n\n");
    assert_eq!((reader.events(), reader.first_event()), (0, None));
    assert!(reader.at_event_boundary());
}

#[test]
fn data_over_several_lines_is_one_text() {
    let reader = read(
        "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"x\"}}],\ndata:\ndata: \"usage\":{\"prompt_tokens\":1}}\n\n",
    );
    assert_eq!((reader.events(), reader.content_events()), (1, 1));
    assert_eq!(reader.usage(), usage(1, 0, None));
    assert!(!read("data: [DO\ndata: NE]\n\n").done());
    assert!(!read("data:  [DONE]\n\n").done());
    assert!(read("data:[DONE]\n\n").done());
}

#[test]
fn a_byte_order_mark_counts_at_the_very_start_only() {
    assert!(read("\u{feff}data: [DONE]\n\n").done());
    assert!(!read("\n\u{feff}data: [DONE]\n\n").done());
    assert!(!read("\u{feff}\u{feff}data: [DONE]\n\n").done());
    let mut reader = SseReader::new();
    reader.push(b"\xef\xbb");
    assert!(!reader.at_event_boundary());
    reader.push(b"data: [DONE]\n\n");
    assert!(!reader.done() && reader.at_event_boundary());
}

#[test]
fn an_event_of_ours_fits_only_between_events() {
    let boundary = |stream: &str| {
        let mut reader = SseReader::new();
        reader.push(stream.as_bytes());
        reader.at_event_boundary()
    };
    for stream in [
        "",
        "\n",
        ": ping\n",
        "data: x\n\n",
        "data: x\r\r",
        "data: x\r\n\r\n",
        "data: x\n\n: ping\n\n",
    ] {
        assert!(boundary(stream), "{stream:?}");
    }
    for stream in [
        "d",
        ":",
        ": ping",
        "data:",
        "data: x",
        "data: x\n",
        "data: x\r\n",
        "event: y\n",
        "data: x\n\ni",
    ] {
        assert!(!boundary(stream), "{stream:?}");
    }
}

#[test]
fn a_stream_that_was_cut_is_not_done() {
    let cut = read("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n");
    assert_eq!((cut.events(), cut.done(), cut.at_event_boundary()), (0, false, false));
    assert!(!read("data: [DON").done());
    assert!(read("data: [DONE]").done());
    assert!(read("data: [DONE]\n").done());
}

#[test]
fn an_event_of_many_megabytes_needs_no_more_memory() {
    let mut reader = SseReader::new();
    reader.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"");
    for _ in 0..1000 {
        reader.push(&[b'x'; 8192]);
    }
    reader.push(b"\"}}],\"usage\":{\"prompt_tokens\":2}}\n\n");
    assert_eq!((reader.content_events(), reader.usage()), (1, usage(2, 0, None)));
    assert!(size_of::<SseReader>() <= 640);
}

#[test]
fn what_is_no_json_is_an_event_of_no_meaning() {
    for data in [
        "",
        "x",
        "{",
        "}",
        "]]]]",
        "[[[[",
        "{\"usage\":",
        "\"",
        "{\"a\":\"\\",
        "{\"choices\":[[{",
        "\u{0}",
    ] {
        let reader = read(&format!("data: {data}\n\ndata: [DONE]\n\n"));
        assert_eq!(
            (reader.events(), reader.content_events(), reader.done()),
            (2, 0, true),
            "{data}"
        );
    }
}
