//! `wicketgate autoscale`: an autoscaler's object for a model's deployment, from the gateway's signals.

mod objects;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use anyhow::Context;

/// Prints an object for `kubectl apply`: what scales a model's deployment by the load that the gateway sees.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// The gateway's document
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: PathBuf,

    /// Which of its schedulers
    #[arg(long, value_name = "NAME")]
    scheduler: String,

    /// What is scaled: the pods of that scheduler
    #[arg(long, value_name = "[KIND/]NAME", default_value = "", hide_default_value = true)]
    target: String,

    /// keda: a ScaledObject, which can go to zero; hpa: a HorizontalPodAutoscaler on an external metric
    #[arg(long, value_name = "SCALER", default_value = "keda")]
    scaler: Scaler,

    /// Where KEDA asks for metrics
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://prometheus-operated.monitoring.svc:9090"
    )]
    prometheus: String,

    /// Fewest replicas; 0 needs keda, and `flowControl` in the document, which holds requests meanwhile
    #[arg(long, value_name = "N", default_value_t = 1)]
    min: u32,

    /// Most replicas
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    max: u32,

    /// Load of an endpoint that is aimed at: 1 is full
    #[arg(long, value_name = "SHARE", default_value_t = 0.7)]
    load: f64,

    /// Requests in the gateway's queue that fill one endpoint more
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    requests_per_endpoint: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Scaler {
    Keda,
    Hpa,
}

#[expect(clippy::print_stdout, reason = "a command's output")]
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let document = config::load(&args.file)
        .map_err(|errors| anyhow::anyhow!("{}\n{errors}", args.file.display()))?;
    let wish = wish(args, &document)?;
    let object = match args.scaler {
        Scaler::Keda => objects::scaled_object(&wish, &args.prometheus),
        Scaler::Hpa => objects::horizontal(&wish),
    };
    print!(
        "{}{}",
        objects::preface(&wish, args.scaler == Scaler::Hpa),
        serde_saphyr::to_string(&object)?
    );
    Ok(())
}

fn wish(args: &Args, document: &config::Document) -> anyhow::Result<objects::Wish> {
    let spec = &document.spec;
    let names =
        || spec.schedulers.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
    let scheduler =
        spec.schedulers.iter().find(|one| one.name.as_str() == args.scheduler).with_context(
            || format!("there is no scheduler `{}`; there are: {}", args.scheduler, names()),
        )?;
    anyhow::ensure!(
        args.load > 0.0 && args.load <= 1.0,
        "--load {}: a share of an endpoint, above 0 and at most 1",
        args.load
    );
    anyhow::ensure!(args.min <= args.max, "--min {} is above --max {}", args.min, args.max);
    if args.min == 0 {
        anyhow::ensure!(
            args.scaler == Scaler::Keda,
            "--min 0: a HorizontalPodAutoscaler cannot go to zero; use --scaler keda"
        );
        anyhow::ensure!(
            spec.flow_control.is_some(),
            "--min 0: without `flowControl` a pool without endpoints refuses requests, and nothing would wake it; add `flowControl: {{}}`"
        );
    }
    let (kind, name) = match args.target.split_once('/') {
        Some((kind, name)) => (kind, name),
        None => ("Deployment", args.target.as_str()),
    };
    let name = if name.is_empty() { scheduler.name.as_str() } else { name };
    Ok(objects::Wish {
        pool: scheduler.name.as_str().to_owned(),
        namespace: document.namespace.clone(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        replicas: (args.min, args.max),
        load: args.load,
        requests_per_endpoint: args.requests_per_endpoint,
    })
}
