//! Writes an answer to the connection, well or as a fault wants it.

use tokio::time::{Duration, sleep};

use super::answer::Choice;
use super::generation::{Generation, Progress};
use super::log::{Entry, Outcome};
use crate::dialect::{ApiError, Ask, Dialect, ErrorForm, Piece, Usage, UsageForm};
use crate::fault::FaultKind;
use crate::wire::{After, Connection, Framing};

/// How an answer is written.
#[derive(Clone, Debug)]
pub(super) struct Manner {
    /// What happens after so many chunks.
    stop: Option<(u32, Stop)>,
    terminal: bool,
    usage: UsageForm,
    truncate: Option<usize>,
    first_byte_delay: Duration,
    drip: Duration,
    early_hints: bool,
    trailers: bool,
    content_type: bool,
    until_close: bool,
    comments: bool,
    split_bytes: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Silence,
    Cut(After),
    Error { done: bool },
    End,
}

impl Manner {
    pub(super) fn of(fault: Option<&FaultKind>) -> Self {
        let mut manner = Self {
            stop: None,
            terminal: true,
            usage: UsageForm::Right,
            truncate: None,
            first_byte_delay: Duration::ZERO,
            drip: Duration::ZERO,
            early_hints: false,
            trailers: false,
            content_type: true,
            until_close: false,
            comments: false,
            split_bytes: None,
        };
        match fault {
            Some(FaultKind::Stall { after_chunks: Some(chunks) }) => {
                manner.stop = Some((*chunks, Stop::Silence));
            }
            Some(FaultKind::Cut { after_chunks: Some(chunks), reset }) => {
                let after = if *reset { After::Reset } else { After::Close };
                manner.stop = Some((*chunks, Stop::Cut(after)));
            }
            Some(FaultKind::ErrorEvent { after_chunks, done }) => {
                manner.stop = Some((*after_chunks, Stop::Error { done: *done }));
            }
            Some(FaultKind::EmptyStream) => manner.stop = Some((0, Stop::End)),
            Some(FaultKind::NoDone) => manner.terminal = false,
            Some(FaultKind::OddUsage) => manner.usage = UsageForm::Odd,
            Some(FaultKind::NoUsage) => manner.usage = UsageForm::Absent,
            Some(FaultKind::TruncatedBody { bytes }) => manner.truncate = Some(*bytes),
            Some(FaultKind::SlowFirstByte { delay_ms }) => {
                manner.first_byte_delay = Duration::from_millis(*delay_ms);
            }
            Some(FaultKind::SlowHeaders { drip_ms, .. }) => {
                manner.drip = Duration::from_millis(*drip_ms);
            }
            Some(FaultKind::Odd {
                early_hints,
                trailers,
                no_content_type,
                until_close,
                comments,
                split_bytes,
            }) => {
                manner.early_hints = *early_hints;
                manner.trailers = *trailers;
                manner.content_type = !no_content_type;
                manner.until_close = *until_close;
                manner.comments = *comments;
                manner.split_bytes = split_bytes.filter(|bytes| *bytes > 0);
            }
            _ => {}
        }
        manner
    }
}

/// Where an answer goes. Everything that ends one says how in the log.
pub(super) struct Answer<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) entry: &'a mut Entry,
    pub(super) manner: Manner,
    pub(super) form: ErrorForm,
}

/// The peer left, or the fault ended the answer.
struct Ended(After);

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

    async fn try_whole(
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

    async fn head(
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

    async fn flush(&mut self) -> Result<(), Ended> {
        self.connection.flush().await.map_err(|_| self.cancelled())
    }

    fn cancelled(&mut self) -> Ended {
        self.entry.ends(Outcome::Cancelled);
        Ended(After::Close)
    }

    /// Writes one event of a stream.
    async fn event(&mut self, bytes: &[u8]) -> Result<(), Ended> {
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
    async fn finish(&mut self) -> Result<After, Ended> {
        let trailers = [("x-sim-trailer", "1")];
        self.connection.end(if self.manner.trailers { &trailers } else { &[] });
        self.flush().await?;
        self.entry.ends(Outcome::Done);
        Ok(if self.manner.until_close { After::Close } else { After::KeepAlive })
    }

    /// The next progress of the generation, unless the peer leaves.
    async fn progress(&mut self, generation: &mut Generation) -> Result<Progress, Ended> {
        tokio::select! {
            progress = generation.changed() => progress.map_err(|_| Ended(After::Close)),
            () = self.connection.gone() => Err(self.cancelled()),
        }
    }
}

/// Waits for a generation's end, then writes `body`.
pub(super) async fn after_generation(
    answer: &mut Answer<'_>,
    mut generation: Generation,
    body: &[u8],
) -> After {
    while !generation.now().finished() {
        if let Err(Ended(after)) = answer.progress(&mut generation).await {
            return after;
        }
    }
    answer.whole(200, "application/json", body, None).await
}

/// Writes a generation's answer, streamed or whole.
pub(super) async fn answer(
    answer: &mut Answer<'_>,
    mut generation: Generation,
    mut writer: Box<dyn Dialect>,
    ask: &Ask,
    choices: &[Choice],
) -> After {
    let usage = Usage {
        prompt_tokens: ask.prompts.iter().map(|prompt| prompt.len()).sum(),
        cached_tokens: 0,
        completion_tokens: 0,
        form: answer.manner.usage,
    };
    let mut stream = Stream {
        sent: vec![0; choices.len()],
        so_far: vec![String::new(); choices.len()],
        event: Vec::new(),
        choices,
        usage,
    };
    let result = if ask.stream {
        stream.run(answer, &mut generation, writer.as_mut()).await
    } else {
        stream.collect(answer, &mut generation, writer.as_ref()).await
    };
    match result {
        Ok(after) | Err(Ended(after)) => after,
    }
}

struct Stream<'a> {
    choices: &'a [Choice],
    /// Tokens written of each choice.
    sent: Vec<u32>,
    so_far: Vec<String>,
    event: Vec<u8>,
    usage: Usage,
}

impl Stream<'_> {
    async fn collect(
        &mut self,
        answer: &mut Answer<'_>,
        generation: &mut Generation,
        writer: &dyn Dialect,
    ) -> Result<After, Ended> {
        let mut progress = generation.now();
        while !progress.finished() {
            progress = answer.progress(generation).await?;
        }
        if let Some((_, Stop::Error { .. })) = answer.manner.stop {
            answer.manner.stop = None;
            return Ok(answer.error(&ApiError::new(500, "injected fault")).await);
        }
        self.count(&progress);
        let texts: Vec<_> = self
            .choices
            .iter()
            .zip(&progress.choices)
            .map(|(choice, progress)| (choice.words.text(0..progress.tokens), choice.finish))
            .collect();
        let body = writer.whole(&texts, &self.usage);
        answer.try_whole(200, "application/json", &body, None).await
    }

    async fn run(
        &mut self,
        answer: &mut Answer<'_>,
        generation: &mut Generation,
        writer: &mut dyn Dialect,
    ) -> Result<After, Ended> {
        let framing = if answer.manner.until_close { Framing::Close } else { Framing::Chunked };
        answer.head(200, "text/event-stream; charset=utf-8", framing, None).await?;
        answer.flush().await?;
        self.stop_if_due(answer).await?;
        let mut begun = false;
        loop {
            let progress = answer.progress(generation).await?;
            self.usage.cached_tokens = progress.cached_tokens;
            if !begun {
                begun = true;
                writer.begin(&mut self.event, &self.usage);
            }
            for choice in 0..self.choices.len() {
                self.write_choice(answer, writer, &progress, choice).await?;
            }
            answer.flush().await?;
            if progress.finished() {
                self.count(&progress);
                writer.end(&mut self.event, &self.usage, answer.manner.terminal);
                self.send(answer).await?;
                return answer.finish().await;
            }
        }
    }

    /// Writes the tokens of one choice that are new.
    async fn write_choice(
        &mut self,
        answer: &mut Answer<'_>,
        writer: &mut dyn Dialect,
        progress: &Progress,
        choice: usize,
    ) -> Result<(), Ended> {
        let to = progress.choices[choice];
        let Choice { words, finish } = self.choices[choice];
        while self.sent[choice] < to.tokens {
            let at = self.sent[choice];
            let word = words.word(at);
            let text = std::str::from_utf8(&word).unwrap_or_default();
            if writer.repeats() {
                self.so_far[choice].push_str(text);
            }
            let last = to.finished && at + 1 == to.tokens;
            let piece = Piece {
                choice: choice as u32,
                at,
                text,
                so_far: &self.so_far[choice],
                finish: last.then_some(finish),
            };
            writer.token(&mut self.event, piece, &self.usage);
            self.sent[choice] += 1;
            self.send(answer).await?;
            answer.entry.chunks_sent += 1;
            self.stop_if_due(answer).await?;
        }
        Ok(())
    }

    async fn send(&mut self, answer: &mut Answer<'_>) -> Result<(), Ended> {
        let result = answer.event(&self.event).await;
        self.event.clear();
        result
    }

    /// Does what the fault wants after so many chunks.
    async fn stop_if_due(&mut self, answer: &mut Answer<'_>) -> Result<(), Ended> {
        let Some((chunks, stop)) = answer.manner.stop else { return Ok(()) };
        if answer.entry.chunks_sent < chunks {
            return Ok(());
        }
        answer.flush().await?;
        match stop {
            Stop::Silence => {
                answer.connection.gone().await;
                Err(answer.cancelled())
            }
            Stop::Cut(after) => Err(Ended(after)),
            Stop::End => Err(Ended(answer.finish().await?)),
            Stop::Error { done } => {
                let error = ApiError::new(500, "injected fault");
                error.event(&mut self.event, answer.form);
                if done {
                    self.event.extend(b"data: [DONE]\n\n");
                }
                self.send(answer).await?;
                Err(Ended(answer.finish().await?))
            }
        }
    }

    fn count(&mut self, progress: &Progress) {
        self.usage.cached_tokens = progress.cached_tokens;
        self.usage.completion_tokens = progress.choices.iter().map(|choice| choice.tokens).sum();
    }
}
