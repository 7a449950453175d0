//! A conversation with the picker.

use std::net::SocketAddr;

use bytes::{Buf, Bytes, BytesMut};
use extproc::wire::{
    BodyResponse, HeaderMap, HeaderMutation, HeaderValue, HttpBody, HttpHeaders, ImmediateResponse,
    Mutation, ProcessingRequest, ProcessingResponse, Request, Response,
};
use h2::{RecvStream, SendStream};
use prost::Message;

use super::Gone;
use super::message::Head;

const METHOD: &str = "/envoy.service.ext_proc.v3.ExternalProcessor/Process";

/// One stream on a connection of its own.
pub(crate) struct Stream {
    send: SendStream<Bytes>,
    answers: Answers,
}

enum Answers {
    Awaited(h2::client::ResponseFuture),
    Open(RecvStream, BytesMut),
}

impl Stream {
    pub(crate) async fn open(picker: SocketAddr) -> Result<Self, Gone> {
        let io = super::connect(picker).await?;
        let (sender, connection) = h2::client::handshake(io).await.map_err(|_| Gone(line!()))?;
        // Ends with the stream, which is the only one; what went wrong shows there.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        let request = http::Request::post(format!("http://{picker}{METHOD}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .map_err(|_| Gone(line!()))?;
        let mut sender = sender.ready().await.map_err(|_| Gone(line!()))?;
        let (answers, send) = sender.send_request(request, false).map_err(|_| Gone(line!()))?;
        Ok(Self { send, answers: Answers::Awaited(answers) })
    }

    fn say(&mut self, request: Request) -> Result<(), Gone> {
        let message = ProcessingRequest { request: Some(request), ..Default::default() };
        let message = message.encode_to_vec();
        let mut frame = vec![0];
        frame.extend_from_slice(
            &u32::try_from(message.len()).map_err(|_| Gone(line!()))?.to_be_bytes(),
        );
        frame.extend_from_slice(&message);
        self.send.send_data(frame.into(), false).map_err(|_| Gone(line!()))
    }

    pub(crate) fn request_head(&mut self, head: &Head, is_all: bool) -> Result<(), Gone> {
        let own = [
            (":method", head.method()),
            (":path", head.second()),
            (":scheme", "http"),
            (":authority", head.get("host").unwrap_or("gateway.test")),
        ];
        let headers = Some(fields(&own, head));
        self.say(Request::RequestHeaders(HttpHeaders { headers, end_of_stream: is_all }))
    }

    /// The whole body.
    pub(crate) fn request_body(&mut self, body: Vec<u8>) -> Result<(), Gone> {
        self.say(Request::RequestBody(HttpBody { body: body.into(), end_of_stream: true }))
    }

    pub(crate) fn answer_head(&mut self, head: &Head) -> Result<(), Gone> {
        let headers = Some(fields(&[(":status", head.second())], head));
        self.say(Request::ResponseHeaders(HttpHeaders { headers, end_of_stream: false }))
    }

    pub(crate) fn answer_body(&mut self, piece: Vec<u8>, is_last: bool) -> Result<(), Gone> {
        self.say(Request::ResponseBody(HttpBody { body: piece.into(), end_of_stream: is_last }))
    }

    /// What the picker makes of the last piece of an answer's body.
    pub(crate) async fn body_piece(&mut self) -> Result<Bytes, Gone> {
        match self.next().await?.response {
            Some(Response::ResponseBody(said)) => Ok(piece(said).0),
            _ => Err(Gone(line!())),
        }
    }

    /// The next message of the picker. Can be dropped while it waits.
    pub(crate) async fn next(&mut self) -> Result<ProcessingResponse, Gone> {
        loop {
            let (stream, buffer) = match &mut self.answers {
                Answers::Open(stream, buffer) => (stream, buffer),
                Answers::Awaited(answer) => {
                    let answer = answer.await.map_err(|_| Gone(line!()))?;
                    self.answers = Answers::Open(answer.into_body(), BytesMut::new());
                    continue;
                }
            };
            if let Some(message) = take_message(buffer) {
                return ProcessingResponse::decode(message).map_err(|_| Gone(line!()));
            }
            let data = stream.data().await.ok_or(Gone(line!()))?.map_err(|_| Gone(line!()))?;
            let _ = stream.flow_control().release_capacity(data.len());
            buffer.extend_from_slice(&data);
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The connection ends by itself once this is out.
        self.send.send_reset(h2::Reason::CANCEL);
    }
}

/// A whole message behind its five bytes of frame.
fn take_message(buffer: &mut BytesMut) -> Option<Bytes> {
    let (_, length) = buffer.first_chunk::<5>().map(|head| (head[0], &head[1..]))?;
    let length = u32::from_be_bytes(length.try_into().ok()?) as usize;
    if buffer.len() < 5 + length {
        return None;
    }
    buffer.advance(5);
    Some(buffer.split_to(length).freeze())
}

fn fields(own: &[(&str, &str)], head: &Head) -> HeaderMap {
    let theirs = head.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let all = own.iter().copied().chain(theirs);
    let headers = all.map(|(name, value)| HeaderValue::new(name, value.to_owned())).collect();
    HeaderMap { headers }
}

/// Changes a head as the picker says.
pub(crate) fn mutate(head: &mut Head, mutation: Option<HeaderMutation>) {
    let Some(mutation) = mutation else { return };
    for name in mutation.remove_headers {
        head.fields.retain(|(known, _)| *known != name);
    }
    for field in mutation.set_headers.into_iter().filter_map(|set| set.header) {
        let value = String::from_utf8_lossy(field.bytes()).into_owned();
        head.fields.retain(|(known, _)| *known != field.key);
        head.fields.push((field.key, value));
    }
}

/// A piece of a body in full duplex, and whether it is the last.
pub(crate) fn piece(said: BodyResponse) -> (Bytes, bool) {
    let mutation = said.response.and_then(|said| said.body_mutation?.mutation);
    match mutation {
        Some(Mutation::Streamed(piece)) => (piece.body, piece.end_of_stream),
        Some(Mutation::Body(body)) => (body, true),
        None => (Bytes::new(), true),
    }
}

/// An answer that the picker gives in an endpoint's place.
pub(crate) struct Immediate(ImmediateResponse);

impl Immediate {
    pub(crate) fn of(said: ImmediateResponse) -> Self {
        Self(said)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let Self(said) = self;
        let status = said.status.map_or(200, |status| status.code);
        let mut head = format!("HTTP/1.1 {status} -\r\n");
        let set = said.headers.iter().flat_map(|fields| &fields.set_headers);
        for field in set.filter_map(|set| set.header.as_ref()) {
            let value = String::from_utf8_lossy(field.bytes());
            head.push_str(&format!("{}: {value}\r\n", field.key));
        }
        head.push_str(&format!("content-length: {}\r\nconnection: close\r\n\r\n", said.body.len()));
        [head.as_bytes(), &said.body].concat()
    }
}
