//! `wicketgate check`.

use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// The document (InferenceGatewayConfig, YAML or JSON)
    #[arg(short = 'f', long = "file", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
}

/// Exit code 0: all documents are valid. 1: one is not, and the output says where and why.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command's output")]
pub(crate) fn run(args: &Args) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for file in &args.files {
        match config::load(file) {
            Ok(document) => {
                for warning in &document.warnings {
                    eprintln!("{warning}");
                }
                let pools = document.spec.schedulers.len();
                println!(
                    "{}: valid ({} `{}`, {pools} schedulers)",
                    file.display(),
                    config::KIND,
                    document.name
                );
            }
            Err(errors) => {
                eprintln!("{errors}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
