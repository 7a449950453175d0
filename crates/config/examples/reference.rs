//! Prints the reference page of the configuration document.

fn main() -> std::io::Result<()> {
    use std::io::Write as _;
    std::io::stdout().write_all(wicketgate_config::reference_markdown().as_bytes())
}
