//! The fields of `listener`, `admin`, `limits` and `timeouts`.

use std::time::Duration;

use super::auth::SECRET;
use super::tables::COUNT;
use super::{Field, Format, Kind, Section};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// A wait that cannot be switched off.
pub(super) const WAIT: Kind =
    Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(24 * 3600) };

pub(crate) static LISTENER: Section = Section {
    fields: &[
        Field::ours(
            "address",
            Kind::Text(Format::SocketAddress),
            "HTTP/1.1 and HTTP/2 without TLS.",
        )
        .default("0.0.0.0:8080"),
        Field::ours("tls", Kind::Section(&LISTENER_TLS), "A second listener, with TLS."),
    ],
};

static LISTENER_TLS: Section = Section {
    fields: &[
        Field::ours(
            "certFile",
            Kind::Text(Format::File),
            "Certificate chain, PEM, leaf first; read again when it changes.",
        )
        .required(),
        Field::ours("keyFile", Kind::Text(Format::File), "Its key, PEM.").required(),
        Field::ours("address", Kind::Text(Format::SocketAddress), "Where it listens.")
            .default("0.0.0.0:8443"),
        Field::ours(
            "clientCaFile",
            Kind::Text(Format::File),
            "PEM: who may have signed a client's certificate; read again when it changes. Absent: clients show none.",
        ),
        Field::ours(
            "clientCertificates",
            Kind::choice(&["optional", "required"]),
            "Whether a client without a certificate gets in. Acts with `clientCaFile` only.",
        )
        .default("required"),
    ],
};

pub(crate) static ADMIN: Section = Section {
    fields: &[
        Field::ours(
            "address",
            Kind::Text(Format::SocketAddress),
            "Keep it from clients: without a `token` it is open to whoever reaches it.",
        )
        .default("127.0.0.1:9090"),
        Field::ours(
            "token",
            Kind::Section(&SECRET),
            "Asked for as `Authorization: Bearer TOKEN`, save by health paths. Absent: nobody is asked.",
        ),
    ],
};

pub(crate) static LIMITS: Section = Section {
    fields: &[
        Field::ours(
            "requestBodyBytesMax",
            Kind::Bytes { min: 1, max: GIB },
            "JSON bodies; 413 beyond.",
        )
        .default("10MiB"),
        Field::ours(
            "multipartBodyBytesMax",
            Kind::Bytes { min: 1, max: 16 * GIB },
            "Multipart bodies (audio, images); 413 beyond. Not below `requestBodyBytesMax`.",
        )
        .default("64MiB"),
        Field::ours(
            "bufferedBodyBytesMax",
            Kind::Bytes { min: MIB, max: TIB },
            "Bodies held at one time over all requests; 503 beyond. Absent: a quarter of the memory \
             that the process may use.",
        ),
        Field::ours(
            "requestBodyBytesPerSecondMin",
            Kind::Bytes { min: 0, max: GIB },
            "A body that is slower, once `timeouts.requestBodyGrace` is over, is given up: 408.",
        )
        .default("1KiB"),
        Field::ours(
            "headerBytesMax",
            Kind::Bytes { min: 1024, max: MIB },
            "HTTP/1.1 request line and header; 431 beyond.",
        )
        .default("64KiB"),
        Field::ours(
            "http2HeaderBytesMax",
            Kind::Bytes { min: 1024, max: MIB },
            "HTTP/2 header list, decoded, 32 bytes more for each field.",
        )
        .default("16KiB"),
        Field::ours(
            "headersMax",
            Kind::Integer { min: 10, max: 256 },
            "Header fields; 431 beyond.",
        )
        .default("100"),
        Field::ours(
            "targetBytesMax",
            Kind::Bytes { min: 64, max: 64 << 10 },
            "Request target; 414 beyond.",
        )
        .default("8KiB"),
        Field::ours(
            "connectionsMax",
            COUNT,
            "Client connections; at most half of the file descriptors less 512.",
        )
        .default("10000"),
        Field::ours(
            "connectionsPerSourceMax",
            Kind::Integer { min: 0, max: i32::MAX as i64 },
            "Connections from one public address; private ones, with a load balancer behind them, have no limit. 0: no limit at all.",
        )
        .default("256"),
        Field::ours("requestsPerConnectionMax", COUNT, "Requests on one HTTP/1.1 connection.")
            .default("1000"),
        Field::ours("http2StreamsMax", COUNT, "Concurrent streams of one HTTP/2 connection.")
            .default("100"),
        Field::ours(
            "http2StreamWindowBytesMax",
            Kind::Bytes { min: 65_535, max: i32::MAX as u64 },
            "Flow-control window of one HTTP/2 stream.",
        )
        .default("256KiB"),
        Field::ours(
            "http2ConnectionWindowBytesMax",
            Kind::Bytes { min: 65_535, max: i32::MAX as u64 },
            "Flow-control window of one HTTP/2 connection.",
        )
        .default("1MiB"),
        Field::ours(
            "http2PendingResetsMax",
            COUNT,
            "Streams that the client resets before they are accepted; the connection ends beyond.",
        )
        .default("20"),
        Field::ours(
            "http2ErrorResetsMax",
            COUNT,
            "Streams reset for the client's errors; the connection ends beyond.",
        )
        .default("64"),
    ],
};

pub(crate) static TIMEOUTS: Section = Section {
    fields: &[
        Field::ours("tlsHandshake", WAIT, "TLS handshake.").default("10s"),
        Field::ours("firstRequest", WAIT, "From accept to the first byte of the first request.")
            .default("60s"),
        Field::ours("requestHeader", WAIT, "From a request's first byte to the end of its header.")
            .default("10s"),
        Field::ours("requestBodyIdle", WAIT, "Gap within a request body.").default("30s"),
        Field::ours("requestBody", WAIT, "Whole request body.").default("300s"),
        Field::ours(
            "requestBodyGrace",
            WAIT,
            "How long a body may be slower than `limits.requestBodyBytesPerSecondMin`.",
        )
        .default("10s"),
        Field::ours("keepAliveIdle", WAIT, "HTTP/1.1 connection without a request.").default("75s"),
        Field::ours("http2Idle", WAIT, "HTTP/2 connection without a stream.").default("300s"),
        Field::ours("http2PingInterval", WAIT, "Silence, with streams open, before a PING.")
            .default("20s"),
        Field::ours("http2PingAnswer", WAIT, "Wait for its answer.").default("20s"),
        Field::ours(
            "connectionAge",
            WAIT,
            "Age at which a client connection is closed gracefully, give or take a tenth.",
        )
        .default("1h"),
        Field::ours("response", WAIT, "Whole answer that does not stream.").default("600s"),
        Field::ours(
            "firstByte",
            WAIT,
            "First byte from the endpoint; some models think for minutes.",
        )
        .default("600s"),
        Field::ours("streamIdle", WAIT, "Gap within a stream.").default("300s"),
        Field::ours("streamDuration", WAIT, "Whole stream.").default("3600s"),
        Field::ours("slowReader", WAIT, "The client takes none of the bytes that wait for it.")
            .default("60s"),
        Field::ours("connect", WAIT, "Connecting to an endpoint.").default("1s"),
        Field::ours("endpointIdle", WAIT, "HTTP/1.1 connection to an endpoint without a request.")
            .default("3s"),
        Field::ours(
            "endpointHttp2Idle",
            WAIT,
            "HTTP/2 connection to an endpoint without a stream.",
        )
        .default("300s"),
        Field::ours(
            "drainDelay",
            Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(3600) },
            "From SIGTERM, when `/readyz` turns 503, until no connection is accepted any more.",
        )
        .default("10s"),
        Field::ours("drain", WAIT, "From then until open requests are ended.").default("600s"),
    ],
};
