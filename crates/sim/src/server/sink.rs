//! Where an answer goes: the connection and the log, in the manner that a fault wants.

use tokio::time::{Duration, sleep};

use super::generation::{Generation, Progress};
use super::log::{Entry, Outcome};
use super::manner::{Manner, Stop};
use crate::dialect::{ApiError, ErrorForm};
use crate::wire::{After, Connection, Framing};

/// Where an answer goes. Everything that ends one says how in the log.
pub(super) struct Answer<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) entry: &'a mut Entry,
    pub(super) manner: Manner,
    pub(super) form: ErrorForm,
}

/// The peer left, or the fault ended the answer.
pub(super) struct Ended(pub(super) After);

impl Answer<'_> {
    /// Writes a complete answer.
    pub(super) async fn whole(
        &mut self,
        status: u16,
        kind: &str,
        body: &[u8],
        retry_after: Option<&str>,
    ) -> After {
        match self.try_whole(status, kind, body, retry_after).await {
            Ok(after) | Err(Ended(after)) => after,
        }
    }

    pub(super) async fn error(&mut self, error: &ApiError) -> After {
        let body = error.json(self.form);
        let retry_after = error.retry_after.as_deref();
        self.whole(error.status, "application/json", body.as_bytes(), retry_after).await
    }

    pub(super) async fn try_whole(
        &mut self,
        status: u16,
        kind: &str,
        body: &[u8],
        retry_after: Option<&str>,
    ) -> Result<After, Ended> {
        let framing = match () {
            () if self.manner.until_close => Framing::Close,
            () if self.manner.trailers => Framing::Chunked,
            () => Framing::Length(body.len()),
        };
        self.head(status, kind, framing, retry_after).await?;
        // Half of an answer that is not streamed counts as its first chunk.
        let half = self.manner.stop.map(|(chunks, _)| if chunks == 0 { 0 } else { body.len() / 2 });
        let written = self.manner.truncate.or(half).unwrap_or(body.len()).min(body.len());
        self.connection.chunk(&body[..written]);
        self.flush().await?;
        match self.manner.stop {
            Some((_, Stop::Silence)) => {
                self.connection.gone().await;
                return Err(self.cancelled());
            }
            Some((_, Stop::Cut(after))) => return Err(Ended(after)),
            _ if written < body.len() => return Err(Ended(After::Close)),
            _ => {}
        }
        self.finish().await
    }

    pub(super) async fn head(
        &mut self,
        status: u16,
        kind: &str,
        framing: Framing,
        retry_after: Option<&str>,
    ) -> Result<(), Ended> {
        self.entry.status = status;
        if self.manner.early_hints {
            let link = [("link", "</style.css>; rel=preload; as=style")];
            self.connection.head(103, &link, Framing::None);
        }
        let mut headers = vec![("server", "uvicorn")];
        if self.manner.content_type {
            headers.push(("content-type", kind));
        }
        if self.manner.trailers {
            headers.push(("trailer", "x-sim-trailer"));
        }
        if let Some(seconds) = retry_after {
            headers.push(("retry-after", seconds));
        }
        self.connection.head(status, &headers, framing);
        if self.manner.drip > Duration::ZERO {
            let dripped = self.connection.drip(self.manner.drip).await;
            return dripped.map_err(|_| self.cancelled());
        }
        if self.manner.first_byte_delay > Duration::ZERO {
            self.flush().await?;
            tokio::select! {
                () = self.connection.gone() => return Err(self.cancelled()),
                () = sleep(self.manner.first_byte_delay) => {}
            }
        }
        Ok(())
    }

    pub(super) async fn flush(&mut self) -> Result<(), Ended> {
        self.connection.flush().await.map_err(|_| self.cancelled())
    }

    pub(super) fn cancelled(&mut self) -> Ended {
        self.entry.ends(Outcome::Cancelled);
        Ended(After::Close)
    }

    /// Writes one event of a stream.
    pub(super) async fn event(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        if self.manner.comments {
            self.connection.chunk(b": still here\n\n");
        }
        match self.manner.split_bytes {
            None => self.connection.chunk(bytes),
            Some(most) => {
                for piece in bytes.chunks(most) {
                    self.connection.chunk(piece);
                    self.flush().await?;
                }
            }
        }
        Ok(())
    }

    /// Ends the body properly.
    pub(super) async fn finish(&mut self) -> Result<After, Ended> {
        let trailers = [("x-sim-trailer", "1")];
        self.connection.end(if self.manner.trailers { &trailers } else { &[] });
        self.flush().await?;
        self.entry.ends(Outcome::Done);
        Ok(if self.manner.until_close { After::Close } else { After::KeepAlive })
    }

    /// The next progress of the generation, unless the peer leaves.
    pub(super) async fn progress(
        &mut self,
        generation: &mut Generation,
    ) -> Result<Progress, Ended> {
        tokio::select! {
            progress = generation.changed() => progress.map_err(|_| Ended(After::Close)),
            () = self.connection.gone() => Err(self.cancelled()),
        }
    }
}
