//! Prints the page of the picker's document.

fn main() -> std::io::Result<()> {
    use std::io::Write as _;
    std::io::stdout().write_all(wicketgate_config::picker_markdown().as_bytes())
}
