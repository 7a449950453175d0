//! Forms.

use super::*;

const TYPE: &str = "multipart/form-data; boundary=XyZ";

fn form(body: &str) -> Result<Body, BodyError> {
    scan_multipart(TYPE, &crlf(body), &Limits::default())
}

fn crlf(text: &str) -> Vec<u8> {
    text.replace('\n', "\r\n").into_bytes()
}

fn field(name: &str, value: &str) -> String {
    format!("--XyZ\nContent-Disposition: form-data; name=\"{name}\"\n\n{value}\n")
}

fn kind(body: &str) -> BodyErrorKind {
    form(body).err().unwrap_or_else(|| panic!("{body} was accepted")).kind
}

#[test]
fn the_model_of_a_form_is_found_beside_a_file() {
    let file = "--XyZ\nContent-Disposition: form-data; name=\"file\"; filename=\"a;\\\"b\\\".wav\"\n\
        Content-Type: audio/wav\n\nRIFF--XyZ\n--Xy\n\0\n";
    let text = format!(
        "{file}{}{}{}{}--XyZ--\n",
        field("model", "whisper-1"),
        field("stream", "True"),
        field("prompt", "names: A, B"),
        field("user", "me"),
    );
    let bytes = crlf(&text);
    let body = form(&text).unwrap();
    let model = body.model.unwrap();
    assert_eq!((model.name.as_str(), &bytes[model.literal]), ("whisper-1", &b"whisper-1"[..]));
    assert!(body.stream);
    assert_eq!(body.prompt.pieces(&bytes).collect::<Vec<_>>(), [b"names: A, B"]);
    assert_eq!(&bytes[body.user.unwrap()], b"me");
}

#[test]
fn a_file_of_many_megabytes_is_skipped_as_bytes() {
    let mut body = crlf("--XyZ\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\n\n");
    body.extend((0..8_000_000_u32).map(|i| (i % 251) as u8));
    body.extend(crlf(&format!("\n{}--XyZ--", field("model", "whisper-1"))));
    let read = scan_multipart(TYPE, &body, &Limits::default()).unwrap();
    assert_eq!(read.model.unwrap().name, "whisper-1");
}

#[test]
fn a_form_without_a_model_names_none() {
    assert_eq!(form(&format!("{}--XyZ--\n", field("language", ""))), Ok(Body::default()));
}

#[test]
fn a_boundary_may_be_quoted_and_stand_among_other_parameters() {
    let body = crlf(&format!("{}--XyZ--", field("model", "m")));
    for content_type in [
        "multipart/form-data;boundary=XyZ",
        "Multipart/Form-Data ; Charset=utf-8; BOUNDARY=\"XyZ\"",
        "multipart/form-data; boundary=\"X\\yZ\" ;",
    ] {
        assert!(scan_multipart(content_type, &body, &Limits::default()).is_ok(), "{content_type}");
    }
}

#[test]
fn a_content_type_without_exactly_one_valid_boundary_is_refused() {
    let body = crlf(&format!("{}--XyZ--", field("model", "m")));
    let long = format!("multipart/form-data; boundary={}", "x".repeat(71));
    for content_type in [
        "",
        "multipart/form-data",
        "multipart/form-data; boundary",
        "multipart/form-data; boundary=",
        "multipart/mixed; boundary=XyZ",
        "application/json",
        "multipart/form-data; boundary=XyZ; boundary=XyZ",
        "multipart/form-data; boundary=\"XyZ",
        "multipart/form-data; boundary=X@yZ",
        "multipart/form-data; boundary=\"XyZ \"",
        "multipart/form-data; boundary=XyZ x=1",
        &long,
    ] {
        let error = scan_multipart(content_type, &body, &Limits::default()).unwrap_err();
        assert_eq!(error.kind, BodyErrorKind::InvalidMultipart, "{content_type}");
    }
}

#[test]
fn a_form_with_a_doubtful_frame_is_refused() {
    let model = field("model", "m");
    for body in [
        String::new(),
        "--XyZ".into(),
        model.clone(),
        format!("{model}--XyZ"),
        format!("{model}--XyZ-"),
        format!("{model}--XyZ--\nepilogue"),
        format!("{model}--XyZ--\n\n"),
        format!("preamble\n{model}--XyZ--"),
        format!("\n{model}--XyZ--"),
        format!("{model}--XyZ \n\nx\n--XyZ--"),
        format!("{model}--XyZq\n\nx\n--XyZ--"),
        "--XyZ\nContent-Disposition: form-data; name=\"a\"\n\n--XyZ--".into(),
        "--XyZ\nContent-Disposition: form-data; name=\"a\"\n--XyZ--".into(),
        "--XyZ\n\nx\n--XyZ--".into(),
        "--XyZ\nContent-Type: text/plain\n\nx\n--XyZ--".into(),
        "--XyZ\nContent-Disposition: form-data\n\nx\n--XyZ--".into(),
        "--XyZ\nContent-Disposition: attachment; name=\"a\"\n\nx\n--XyZ--".into(),
        "--XyZ\nContent-Disposition: form-data; name=\"a\"; name=\"model\"\n\nx\n--XyZ--".into(),
        "--XyZ\nContent-Disposition: form-data; name=\"a\\\"b\"\n\nx\n--XyZ--".into(),
        "--XyZ\nContent-Disposition: form-data; name*=utf-8''model\n\nx\n--XyZ--".into(),
        "--XyZ\nContent-Disposition: form-data; name=\"a\"\nContent-Disposition: form-data; name=\"model\"\n\nx\n--XyZ--".into(),
        "--XyZ\nContent-Disposition: form-data;\n name=\"model\"\n\nx\n--XyZ--".into(),
        "--XyZ\nContent-Disposition : form-data; name=\"model\"\n\nx\n--XyZ--".into(),
        "--XyZ\nContent-Disposition: form-data; name=\"model\"\nContent-Transfer-Encoding: base64\n\neA==\n--XyZ--".into(),
        format!("--XyZ\nX-Long: {}\n\nx\n--XyZ--", "x".repeat(9000)),
    ] {
        assert_eq!(kind(&body), BodyErrorKind::InvalidMultipart, "{body}");
    }
}

#[test]
fn line_ends_without_cr_are_refused() {
    let body = format!("{}--XyZ--\n", field("model", "m"));
    assert!(scan_multipart(TYPE, body.as_bytes(), &Limits::default()).is_err());
    let mixed = "--XyZ\r\nContent-Disposition: form-data; name=\"a\"\nX: y\r\n\r\nx\r\n--XyZ--";
    assert!(scan_multipart(TYPE, mixed.as_bytes(), &Limits::default()).is_err());
}

#[test]
fn a_form_names_one_model_as_plain_text() {
    let twice = format!("{}{}--XyZ--", field("model", "a"), field("model", "b"));
    assert_eq!(kind(&twice), BodyErrorKind::DuplicateField);
    assert_eq!(kind(&format!("{}--XyZ--", field("Model", "a"))), BodyErrorKind::MisspeltField);
    for value in ["", " ", "a\nb", "é", &"x".repeat(257)] {
        assert_eq!(
            kind(&format!("{}--XyZ--", field("model", value))),
            BodyErrorKind::InvalidModel,
            "{value}"
        );
    }
    let file =
        "--XyZ\nContent-Disposition: form-data; name=\"model\"; filename=\"f\"\n\na\n--XyZ--";
    assert_eq!(kind(file), BodyErrorKind::InvalidModel);
}

#[test]
fn a_form_has_a_bounded_number_of_parts() {
    let parts: String = (0..257).map(|i| field(&format!("f{i}"), "x")).collect();
    assert_eq!(kind(&format!("{parts}--XyZ--")), BodyErrorKind::TooManyFields);
}
