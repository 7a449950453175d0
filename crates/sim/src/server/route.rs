//! From a request to its answer, through whatever fault strikes it.

use serde_json::Value;
use tokio::time::{Duration, Instant, sleep};
use types::EngineKind;

use super::generation::Generation;
use super::log::{Entry, Outcome};
use super::manner::Manner;
use super::sink::Answer;
use super::{Shared, admin, stream};
use crate::dialect::{self, Api, ApiError, Ask, ErrorForm, Naming, Pooling};
use crate::fault::{Fault, FaultKind, Garbage};
use crate::wire::{After, Connection, Framing, Request};

mod metrics_fault;
mod multipart;
mod plain;

/// What a path asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Generate(Api),
    Pool(Pooling),
    Metrics,
    Health,
    Models,
    Model,
    About,
    Tokenize,
    Detokenize,
    CountTokens,
    LoadAdapter,
    UnloadAdapter,
    Admin,
}

fn find(engine: EngineKind, method: &str, path: &str) -> Result<Target, u16> {
    let (target, expected) = match path {
        "/v1/chat/completions" => (Target::Generate(Api::Chat), "POST"),
        "/v1/completions" => (Target::Generate(Api::Completions), "POST"),
        "/v1/responses" => (Target::Generate(Api::Responses), "POST"),
        "/v1/messages" => (Target::Generate(Api::Messages), "POST"),
        "/v1/audio/transcriptions" => (Target::Generate(Api::Transcription), "POST"),
        "/generate" if engine == EngineKind::Sglang => {
            (Target::Generate(Api::SglangGenerate), "POST")
        }
        "/generate" | "/generate_stream" if engine == EngineKind::Tgi => {
            (Target::Generate(Api::TgiGenerate), "POST")
        }
        "/v1/embeddings" => (Target::Pool(Pooling::Embeddings), "POST"),
        "/rerank" | "/v1/rerank" | "/v2/rerank" => (Target::Pool(Pooling::Rerank), "POST"),
        "/score" | "/v1/score" => (Target::Pool(Pooling::Score), "POST"),
        "/metrics" => (Target::Metrics, "GET"),
        "/prometheus/metrics" if engine == EngineKind::TensorRtLlm => (Target::Metrics, "GET"),
        "/health" | "/ping" | "/health_generate" => (Target::Health, "GET"),
        "/v1/models" => (Target::Models, "GET"),
        "/version" | "/info" | "/get_model_info" | "/get_server_info" => (Target::About, "GET"),
        "/tokenize" => (Target::Tokenize, "POST"),
        "/detokenize" => (Target::Detokenize, "POST"),
        "/v1/messages/count_tokens" => (Target::CountTokens, "POST"),
        "/v1/load_lora_adapter" | "/load_lora_adapter" => (Target::LoadAdapter, "POST"),
        "/v1/unload_lora_adapter" | "/unload_lora_adapter" => (Target::UnloadAdapter, "POST"),
        path if path.starts_with("/v1/models/") => (Target::Model, "GET"),
        path if path.starts_with("/admin/") => return Ok(Target::Admin),
        _ => return Err(404),
    };
    if method == expected { Ok(target) } else { Err(405) }
}

/// Answers one request; says what becomes of the connection.
pub(super) async fn serve(server: &Shared, connection: &mut Connection, request: Request) -> After {
    let path = request.path().to_owned();
    let target = find(server.spec.engine, &request.method, &path);
    match target {
        Ok(Target::Admin) => {
            let reply = admin::handle(server, &path, &request).await;
            return after(admin::write(connection, reply).await);
        }
        Ok(Target::Metrics) => return metrics_fault::serve(server, connection).await,
        _ => {}
    }
    let mut entry = server.log.begin(&request);
    let generates = matches!(target, Ok(Target::Generate(_) | Target::Pool(_)));
    let fault = match asked_fault(&request) {
        Some(fault) => Some(fault),
        None => server.faults().strike(&path, &request.body, generates, Instant::now()),
    };
    let form = ErrorForm::of(server.spec.engine, &path);
    if let Some(fault) = &fault
        && let Some(after) = strike(server, connection, &mut entry, fault, form).await
    {
        return after;
    }
    let manner = Manner::of(fault.as_ref());
    let mut answer = Answer { connection, entry: &mut entry, manner, form };
    let result = match target {
        Err(404) => Err(ApiError::new(404, "Not Found")),
        Err(status) => Err(ApiError::new(status, "Method Not Allowed")),
        Ok(Target::Generate(api)) => generate(server, &mut answer, api, &path, &request).await,
        Ok(Target::Pool(pooling)) => pool(server, &mut answer, pooling, &request).await,
        Ok(target) => match plain::answer(server, target, &path, &request).await {
            Ok(body) => Ok(answer.whole(200, "application/json", body.as_bytes(), None).await),
            Err(error) => Err(error),
        },
    };
    match result {
        Ok(after) => after,
        Err(error) => answer.error(&error).await,
    }
}

fn asked_fault(request: &Request) -> Option<FaultKind> {
    let fault = serde_json::from_str::<Fault>(request.header("x-sim-fault")?).ok()?;
    Some(fault.kind)
}

/// Faults that leave nothing to answer. `None`: go on.
async fn strike(
    server: &Shared,
    connection: &mut Connection,
    entry: &mut Entry,
    fault: &FaultKind,
    form: ErrorForm,
) -> Option<After> {
    match fault {
        FaultKind::Poison { down_ms, .. } | FaultKind::Restart { down_ms } => {
            server.die(*down_ms);
            Some(After::Close)
        }
        FaultKind::Stall { after_chunks: None } => {
            connection.gone().await;
            entry.ends(Outcome::Cancelled);
            Some(After::Close)
        }
        FaultKind::Cut { after_chunks: None, reset } => {
            Some(if *reset { After::Reset } else { After::Close })
        }
        FaultKind::Error { status, retry_after, body, content_type } => {
            let error = ApiError {
                retry_after: retry_after.clone(),
                ..ApiError::new(*status, "injected fault")
            };
            let body = body.clone().unwrap_or_else(|| error.json(form));
            let kind = content_type.as_deref().unwrap_or("application/json");
            let manner = Manner::of(None);
            let mut answer = Answer { connection, entry, manner, form };
            let retry_after = retry_after.as_deref();
            Some(answer.whole(*status, kind, body.as_bytes(), retry_after).await)
        }
        FaultKind::SlowHeaders { delay_ms, .. } => {
            tokio::select! {
                () = connection.gone() => {
                    entry.ends(Outcome::Cancelled);
                    Some(After::Close)
                }
                () = sleep(Duration::from_millis(*delay_ms)) => None,
            }
        }
        _ => None,
    }
}

async fn generate(
    server: &Shared,
    answer: &mut Answer<'_>,
    api: Api,
    path: &str,
    request: &Request,
) -> Result<After, ApiError> {
    let mut ask = if api == Api::Transcription {
        multipart::transcription(request)?
    } else {
        Ask::parse(api, &json_body(request)?)?
    };
    ask.stream |= path == "/generate_stream";
    let served = server.resolve(ask.model.as_deref())?;
    let (specs, choices) = server.prepare(&ask, &served)?;
    let finishes = choices.iter().map(|choice| choice.finish);
    let specs = specs.into_iter().zip(finishes).collect();
    let generation = Generation::start(server, specs).map_err(|error| server.refusal(error))?;
    let writer = dialect::writer(api, &ask, naming(server, &ask), server.spec.engine);
    Ok(stream::answer(answer, generation, writer, &ask, &choices).await)
}

async fn pool(
    server: &Shared,
    answer: &mut Answer<'_>,
    pooling: Pooling,
    request: &Request,
) -> Result<After, ApiError> {
    let body = json_body(request)?;
    let model = body["model"].as_str().map(str::to_owned);
    let served = server.resolve(model.as_deref())?;
    let prompts = pooling.prompts(&body)?;
    let specs = server.prepare_pooling(&prompts, &served)?;
    let specs = specs.into_iter().map(|spec| (spec, crate::metrics::Finish::Length)).collect();
    let generation = Generation::start(server, specs).map_err(|error| server.refusal(error))?;
    let naming = naming(server, &Ask { model, ..Ask::default() });
    let written = pooling.answer(&body, &prompts, server.spec.seed, &naming);
    Ok(stream::after_generation(answer, generation, &written).await)
}

fn json_body(request: &Request) -> Result<Value, ApiError> {
    let body: Value = serde_json::from_slice(&request.body)
        .map_err(|error| ApiError::bad_request(format!("JSON decode error: {error}")))?;
    if !body.is_object() {
        return Err(ApiError::bad_request("The body is no JSON object."));
    }
    Ok(body)
}

fn naming(server: &Shared, ask: &Ask) -> Naming {
    let number = server.core().next_id;
    let model = ask.model.as_deref().unwrap_or(&server.spec.model);
    let server_id = u64::from(server.address.port()) << 32 | server.spec.seed & 0xFFFF_FFFF;
    Naming {
        id: format!("{server_id:016x}{number:016x}"),
        created: server.clock.wall() as u64,
        model: Value::from(model).to_string(),
    }
}

fn after(written: std::io::Result<()>) -> After {
    if written.is_ok() { After::KeepAlive } else { After::Close }
}
