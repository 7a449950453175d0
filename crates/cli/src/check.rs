//! `wicketgate check`.

mod migrate;

use std::path::PathBuf;
use std::process::ExitCode;

use config::AnyDocument;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// The document (InferenceGatewayConfig, EndpointPickerConfig or GlobalInferenceGateway, YAML or JSON)
    #[arg(short = 'f', long = "file", value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,

    /// Print a document of AWS's group as one of ours that means the same
    #[arg(long)]
    migrate: bool,
}

/// Exit code 0: all documents are valid. 1: one is not, and the output says where and why.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command's output")]
pub(crate) fn run(args: &Args) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for file in &args.files {
        match config::load_any(file) {
            Ok(AnyDocument::Gateway(document)) if args.migrate => {
                let text = std::fs::read_to_string(file).map_err(anyhow::Error::from);
                match text.and_then(|text| migrate::rewritten(&text, &document)) {
                    Ok(text) => println!("{}", text.trim_end()),
                    Err(error) => {
                        eprintln!("{}: error: {error}", file.display());
                        code = ExitCode::FAILURE;
                    }
                }
            }
            Ok(AnyDocument::Global(_) | AnyDocument::Picker(_)) if args.migrate => {
                eprintln!("{}: error: only an {} can be rewritten", file.display(), config::KIND);
                code = ExitCode::FAILURE;
            }
            Ok(AnyDocument::Gateway(document)) => {
                for warning in &document.warnings {
                    eprintln!("{warning}");
                }
                if document.spec.serves_strangers()
                    && !document.spec.listener.address.ip().is_loopback()
                {
                    let address = document.spec.listener.address;
                    eprintln!(
                        "{}: doubt: anyone who reaches {address} can use the models: {} (docs/authentication.md)",
                        file.display(),
                        open_by(&document.spec),
                    );
                }
                let pools = document.spec.schedulers.len();
                println!(
                    "{}: valid ({} `{}`, {pools} schedulers)",
                    file.display(),
                    config::KIND,
                    document.name
                );
            }
            Ok(AnyDocument::Global(document)) => {
                for warning in &document.gateway.warnings {
                    eprintln!("{warning}");
                }
                let members = document.global.members.len();
                println!(
                    "{}: valid ({} `{}`, {members} members)",
                    file.display(),
                    config::GLOBAL_KIND,
                    document.gateway.name
                );
            }
            Ok(AnyDocument::Picker(picker)) => {
                for warning in &picker.warnings {
                    eprintln!("{warning}");
                }
                let summary = picker.summary();
                println!("{}: valid ({}), {summary}", file.display(), config::PICKER_KIND);
            }
            Err(errors) => {
                eprintln!("{errors}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

/// Why requests without credentials are served.
pub(crate) fn open_by(spec: &config::Spec) -> &'static str {
    match spec.auth {
        None => "the document has no `auth`",
        Some(_) => "`auth.anonymous` is `allow`",
    }
}
