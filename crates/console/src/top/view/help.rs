//! What the keys do and what the columns mean.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Text};
use ratatui::widgets::Paragraph;

use crate::top::theme::{Theme, Tone};

const HELP: &str = "\
# Keys
1 … 6, Tab, ← →    Fleet, Pools, Endpoints, Decisions, Queues, Tenants
↑ ↓, j k, PgUp …   choose a line; Home and End, g and G go to the ends
Enter              details of an endpoint or a decision; of a pool, its endpoints
/                  show only lines with a text in them; Esc shows all again
s, r               sort by the next column; the other way round
p, Space           pause and go on
?, h               this page
q, Ctrl-C          quit

# Pools
ready     endpoints that may get requests, and all
req/s     requests ended, over the last 10 s like every rate here
TTFT      request received to first token sent: half were faster; p95: 95 % were
tok/s     tokens generated
429/s     requests refused because the pool was full or a limit was reached
full      mean share of the endpoints' capacity in use
hits      prompt tokens that endpoints had in their prefix cache, by their own word

# Endpoints
KV        share of KV-cache blocks that running requests hold
wait, run requests waiting and running, as the engine said last
flying    requests that gateways have there now
LoRA      adapters believed to be on the GPU, and how many fit
age       since the last good scrape
prefill/s learned over the last minute: prompt tokens that it computes in a second
step      learned: one step of a batch of one
full      share of capacity in use; at 100 % it is full

# Tenants
GPU time  what their requests took since the gateway started, by learned speeds
saved     what prompts did not take because their beginning was cached
cost      by observability.prices of the document; price: a GPU-hour × GPUs of an endpoint

–         not known: the engine does not say, or nothing is learned yet
";

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, scroll: u16, theme: Theme) {
    let lines = HELP.lines().map(|line| match line.strip_prefix("# ") {
        Some(title) => Line::styled(title, theme.style(Tone::Title)),
        None => Line::raw(line),
    });
    let text = Text::from(lines.collect::<Vec<_>>());
    let most = (text.lines.len() as u16).saturating_sub(area.height);
    frame.render_widget(Paragraph::new(text).scroll((scroll.min(most), 0)), area);
}
