//! Both data paths for one test: the built-in proxy, and the picker behind a proxy that speaks ext_proc.
//!
//! The proxy here is as small as one can be: one request on each connection, bodies of a stated length, an
//! endpoint's answer read to the end of its framing. What a real Envoy does with the same messages is tested
//! in `tests/envoy`.

mod ext_proc;
mod message;

use std::any::Any;
use std::net::SocketAddr;

use extproc::wire::Response;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use ext_proc::{Immediate, Stream, mutate};
use message::{Framing, Head};

/// Runs each of these tests on both data paths.
macro_rules! on_both_paths {
    ($($name:ident,)*) => {
        mod built_in {
            $(#[tokio::test]
            async fn $name() {
                super::$name().await;
            })*
        }

        mod behind_a_proxy {
            $(#[tokio::test]
            async fn $name() {
                crate::gateway::stand_behind(crate::front::start);
                super::$name().await;
            })*
        }
    };
}
pub(crate) use on_both_paths;

/// A proxy before a picker; ends when dropped, and its connections with it.
struct Front(JoinHandle<()>);

/// Starts a proxy before the picker at this address.
pub(crate) fn start(picker: SocketAddr) -> (SocketAddr, Box<dyn Any>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    let task = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((client, _)) = listener.accept().await {
            connections.spawn(carry(client, picker));
        }
    });
    (address, Box::new(Front(task)))
}

impl Drop for Front {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why a client gets no answer, or not all of it: somebody went away. With the line that found it.
pub(crate) struct Gone(u32);

/// One connection of a client.
#[expect(clippy::print_stderr, reason = "shown beside the test that fails of it")]
async fn carry(mut client: TcpStream, picker: SocketAddr) {
    let _ = client.set_nodelay(true);
    if let Err(Gone(line)) = exchange(&mut client, picker).await {
        eprintln!("the proxy gave a request up in line {line}");
    }
}

async fn exchange(client: &mut TcpStream, picker: SocketAddr) -> Result<(), Gone> {
    let (mut head, rest) = Head::read(client).await?;
    let length = head.content_length().unwrap_or(0);
    let mut stream = Stream::open(picker).await?;
    stream.request_head(&head, length == 0)?;
    let mut body = rest;
    let placed = place(&mut stream, client, &mut head, &mut body, length).await?;
    let (mut endpoint, body) = match placed {
        Ok(placed) => placed,
        Err(immediate) => return answer_at_once(client, &immediate).await,
    };
    endpoint.write_all(&head.for_endpoint(body.len())).await.map_err(|_| Gone(line!()))?;
    endpoint.write_all(&body).await.map_err(|_| Gone(line!()))?;
    let answered = tokio::select! {
        answered = Head::read(&mut endpoint) => answered?,
        said = stream.next() => match said?.response {
            // It is called back.
            Some(Response::Immediate(said)) => {
                return answer_at_once(client, &Immediate::of(said)).await;
            }
            _ => return Err(Gone(line!())),
        },
        () = left(client) => return Err(Gone(line!())),
    };
    let (mut answer, rest) = answered;
    // Before the picker takes the length away.
    let mut framing = Framing::of(&answer, rest);
    stream.answer_head(&answer)?;
    let said = match stream.next().await?.response {
        Some(Response::ResponseHeaders(said)) => said,
        // It was called back in the moment in which the answer began.
        Some(Response::Immediate(said)) => {
            return answer_at_once(client, &Immediate::of(said)).await;
        }
        _ => return Err(Gone(line!())),
    };
    mutate(&mut answer, said.response.and_then(|said| said.header_mutation));
    client.write_all(&answer.for_client()).await.map_err(|_| Gone(line!()))?;
    loop {
        let piece = tokio::select! {
            piece = framing.next(&mut endpoint) => piece?,
            () = left(client) => return Err(Gone(line!())),
        };
        let is_last = piece.is_none();
        stream.answer_body(piece.unwrap_or_default(), is_last)?;
        let passed = stream.body_piece().await?;
        if !passed.is_empty() {
            let mut chunk = format!("{:x}\r\n", passed.len()).into_bytes();
            chunk.extend_from_slice(&passed);
            chunk.extend_from_slice(b"\r\n");
            client.write_all(&chunk).await.map_err(|_| Gone(line!()))?;
        }
        if is_last {
            return client.write_all(b"0\r\n\r\n").await.map_err(|_| Gone(line!()));
        }
    }
}

type Placed = Result<(TcpStream, Vec<u8>), Immediate>;

/// Hands the request over until the picker says where it goes: the connection there, and the body for it.
async fn place(
    stream: &mut Stream,
    client: &mut TcpStream,
    head: &mut Head,
    body: &mut Vec<u8>,
    length: usize,
) -> Result<Placed, Gone> {
    let mut is_sent = length == 0;
    let mut is_placed = false;
    let mut passed = Vec::new();
    loop {
        if !is_sent && body.len() >= length {
            stream.request_body(std::mem::take(body))?;
            is_sent = true;
        }
        let said = tokio::select! {
            said = stream.next() => said?,
            read = client.read_buf(body) => match read {
                Ok(1..) if !is_sent => continue,
                _ => return Err(Gone(line!())),
            },
        };
        match said.response {
            Some(Response::RequestHeaders(said)) => {
                mutate(head, said.response.and_then(|said| said.header_mutation));
                is_placed = true;
                if length == 0 {
                    break;
                }
            }
            Some(Response::RequestBody(said)) => {
                let (piece, is_last) = ext_proc::piece(said);
                passed.extend_from_slice(&piece);
                if is_last {
                    break;
                }
            }
            Some(Response::Immediate(said)) => return Ok(Err(Immediate::of(said))),
            _ => return Err(Gone(line!())),
        }
    }
    let chosen =
        head.take("x-gateway-destination-endpoint").filter(|_| is_placed).ok_or(Gone(line!()))?;
    for address in chosen.split(',') {
        let Ok(address) = address.trim().parse() else { continue };
        if let Ok(endpoint) = connect(address).await {
            return Ok(Ok((endpoint, passed)));
        }
    }
    Err(Gone(line!()))
}

async fn connect(to: SocketAddr) -> Result<TcpStream, Gone> {
    let io = TcpStream::connect(to).await.map_err(|_| Gone(line!()))?;
    // Else each small message waits for the one before to be acknowledged.
    io.set_nodelay(true).map_err(|_| Gone(line!()))?;
    Ok(io)
}

/// Until the client goes away.
async fn left(client: &mut TcpStream) {
    let mut more = [0; 512];
    while matches!(client.read(&mut more).await, Ok(1..)) {}
}

async fn answer_at_once(client: &mut TcpStream, said: &Immediate) -> Result<(), Gone> {
    client.write_all(&said.bytes()).await.map_err(|_| Gone(line!()))
}
