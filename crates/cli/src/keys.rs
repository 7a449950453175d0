//! `wicketgate keys`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use identity::keys::{Hasher, KeyEntry, KeyFile, PREFIX, generate, is_well_formed};
use telemetry::clock;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Make a key, print it once, and add its hash to the file
    Create(Create),
    /// Show the keys of a file
    List(Place),
    /// Refuse a key from now on; its entry stays
    Revoke(Named),
    /// Say whose key stands on standard input, and whether it would be let in
    Check(Place),
}

/// Where the hashes are.
#[derive(Clone, Debug, clap::Args)]
struct Place {
    /// File of hashes, as `auth.apiKeys.file` names it
    #[arg(short = 'f', long = "file", value_name = "FILE", env = "WICKETGATE_KEYS_FILE")]
    file: PathBuf,

    /// Secret that goes into each hash, as `auth.apiKeys.pepperFile` names it
    #[arg(long, value_name = "FILE", env = "WICKETGATE_KEYS_PEPPER_FILE")]
    pepper_file: Option<PathBuf>,
}

#[derive(Clone, Debug, clap::Args)]
struct Named {
    #[command(flatten)]
    place: Place,

    /// What the key is called
    #[arg(long, value_name = "NAME")]
    name: String,
}

#[derive(Clone, Debug, clap::Args)]
struct Create {
    #[command(flatten)]
    named: Named,

    /// The caller of the document whose key it is
    #[arg(long, value_name = "NAME")]
    caller: Option<String>,

    /// When it ends: a time such as 2027-01-31T00:00:00Z, or how long it lasts, such as 90days
    #[arg(long, value_name = "TIME", value_parser = end)]
    expires: Option<End>,

    /// Take the key from standard input instead of making one: for keys that clients have already
    #[arg(long)]
    import: bool,
}

#[derive(Clone, Copy, Debug)]
enum End {
    At(SystemTime),
    After(Duration),
}

/// Shortest key that may be imported: 128 bits in hexadecimal digits.
const IMPORTED_MIN: usize = 32;

fn end(text: &str) -> Result<End, String> {
    if let Ok(time) = humantime::parse_rfc3339_weak(text) {
        return Ok(End::At(time));
    }
    let lasting = humantime::parse_duration(text);
    lasting.map(End::After).map_err(|_| "write 2027-01-31T00:00:00Z, or 90days".to_owned())
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Command::Create(args) => create(args),
        Command::List(place) => list(place),
        Command::Revoke(args) => revoke(args),
        Command::Check(place) => check(place),
    }
}

impl Place {
    fn hasher(&self) -> anyhow::Result<Hasher> {
        let Some(path) = &self.pepper_file else { return Ok(Hasher::plain()) };
        let pepper = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Hasher::with_pepper(&pepper))
    }

    fn read(&self) -> anyhow::Result<KeyFile> {
        if self.file.is_dir() {
            bail!("{} is a folder: name a file in it", self.file.display());
        }
        Ok(KeyFile::read(&self.file)?)
    }
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command's output")]
fn create(args: &Create) -> anyhow::Result<()> {
    let Named { place, name } = &args.named;
    let hasher = place.hasher()?;
    let mut file = if place.file.exists() { place.read()? } else { KeyFile::default() };
    if file.keys.iter().any(|known| known.name == *name) {
        bail!("there is a key `{name}` already: revoke it, and give the new one another name");
    }
    let key = if args.import { imported()? } else { generate() };
    let now = clock::wall();
    let expires = args.expires.map(|end| match end {
        End::At(time) => time,
        End::After(lasting) => now + lasting,
    });
    file.keys.push(KeyEntry {
        name: name.clone(),
        hash: hasher.show(&key),
        caller: args.caller.clone(),
        created: Some(KeyEntry::show_time(now)),
        expires: expires.map(KeyEntry::show_time),
        disabled: false,
    });
    file.write(&place.file)?;
    if !args.import {
        println!("{key}");
        eprintln!("this is the only time that the key `{name}` is shown");
    }
    Ok(())
}

fn imported() -> anyhow::Result<String> {
    let key = from_standard_input()?;
    if key.len() < IMPORTED_MIN || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!(
            "a key needs at least {IMPORTED_MIN} characters of visible ASCII, and as many random ones"
        );
    }
    Ok(key)
}

#[expect(clippy::print_stdout, reason = "a command's output")]
fn list(place: &Place) -> anyhow::Result<()> {
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_header(["name", "caller", "created", "expires", "state"]);
    for key in place.read()?.keys {
        let state = state(&key, &place.file)?;
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        table.add_row([
            key.name,
            or_dash(key.caller),
            or_dash(key.created),
            or_dash(key.expires),
            state.to_owned(),
        ]);
    }
    println!("{table}");
    Ok(())
}

fn state(key: &KeyEntry, file: &Path) -> anyhow::Result<&'static str> {
    let expires = key.expires_at().map_err(|reason| {
        anyhow::anyhow!("the key `{}` in {}: {reason}", key.name, file.display())
    })?;
    let now = clock::unix_seconds(clock::wall()) as u64;
    Ok(match expires {
        _ if key.disabled => "revoked",
        Some(expires) if expires <= now => "expired",
        _ => "in force",
    })
}

#[expect(clippy::print_stderr, reason = "a command's output")]
fn revoke(args: &Named) -> anyhow::Result<()> {
    let mut file = args.place.read()?;
    let Some(key) = file.keys.iter_mut().find(|key| key.name == args.name) else {
        bail!("there is no key `{}` in {}", args.name, args.place.file.display());
    };
    key.disabled = true;
    file.write(&args.place.file)?;
    eprintln!("the key `{}` is revoked; running gateways follow within two seconds", args.name);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a command's output")]
fn check(place: &Place) -> anyhow::Result<()> {
    let key = from_standard_input()?;
    if key.starts_with(PREFIX) && !is_well_formed(&key) {
        bail!("this is no whole key: a character is wrong, or something is missing");
    }
    let hash = place.hasher()?.show(&key);
    let Some(entry) = place.read()?.keys.into_iter().find(|entry| entry.hash == hash) else {
        bail!("the key is not in {}", place.file.display());
    };
    let state = state(&entry, &place.file)?;
    let caller = entry.caller.map(|caller| format!(", caller `{caller}`")).unwrap_or_default();
    println!("`{}`{caller}: {state}", entry.name);
    if state != "in force" {
        bail!("it is refused");
    }
    Ok(())
}

/// Never an argument: those are seen by everybody on the machine and stay in the shell's history.
fn from_standard_input() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().take(16 * 1024).read_to_string(&mut text).context("standard input")?;
    let text = text.trim();
    if text.is_empty() {
        bail!("give the key on standard input");
    }
    Ok(text.to_owned())
}
