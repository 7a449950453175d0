//! The end of the process.

use tokio::time::timeout;
use tonic::Code;
use wicketgate_extproc::Phase;
use wicketgate_extproc::wire::{HttpHeaders, Request, Response};

use crate::client::{ASKING, Stream, body, chat, connect};
use crate::server::{PATIENCE, Server};

async fn picked(server: &Server) -> Stream {
    let mut stream = Stream::open(connect(server.ext_proc).await).await.unwrap();
    stream.send(chat()).await;
    stream.send(body(ASKING, true)).await;
    stream.next().await.unwrap().unwrap();
    stream.next().await.unwrap().unwrap();
    stream
}

#[tokio::test]
async fn an_open_stream_is_served_on_while_no_connection_is_taken() {
    let mut server = Server::start("", None).await;
    let mut stream = picked(&server).await;
    server.gateway.start_draining();
    server.phase.send_replace(Phase::Draining);
    drop(picked(&server).await);
    server.phase.send_replace(Phase::Closed);
    let address = server.ext_proc;
    server
        .until("the listener is closed", |_| std::net::TcpStream::connect(address).is_err())
        .await;
    let head = HttpHeaders { headers: None, end_of_stream: true };
    stream.send(Request::ResponseHeaders(head)).await;
    let answer = stream.next().await.unwrap().unwrap();
    assert!(matches!(answer.response, Some(Response::ResponseHeaders(_))));
    drop(stream);
    let served = timeout(PATIENCE, &mut server.serving).await.expect("ends with its last stream");
    served.unwrap().unwrap();
}

#[tokio::test]
async fn at_the_end_of_the_drain_time_streams_end_with_an_error() {
    // A clean end would have the proxy go on without us, and lose what is on its way to us.
    let mut server = Server::start("", None).await;
    let mut stream = picked(&server).await;
    server.phase.send_replace(Phase::Over);
    assert_eq!(stream.error().await.code(), Code::Unavailable);
    timeout(PATIENCE, &mut server.serving).await.expect("ends").unwrap().unwrap();
    assert_eq!(server.in_flight(), 0);
}
