//! Writes a generation's answer, streamed or whole.

use super::answer::Choice;
use super::generation::{Generation, Progress};
use super::manner::Stop;
use super::sink::{Answer, Ended};
use crate::dialect::{ApiError, Ask, Dialect, Piece, Usage};
use crate::wire::{After, Framing};

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
