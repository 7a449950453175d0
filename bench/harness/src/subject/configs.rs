//! Configuration texts of the proxies that are compared with.

use std::fmt::Write;
use std::net::SocketAddr;

/// Workers of nginx and threads of Envoy: one per core of the machine the figures were made on.
pub(super) const PROXY_WORKERS: usize = 2;

/// nginx as a plain keep-alive proxy, tuned as its users tune it for this traffic: connections to
/// endpoints are kept for ever, bodies stay in memory, streams are not buffered, nothing is logged.
pub(super) fn nginx(listen: SocketAddr, endpoints: &[SocketAddr], root: bool) -> String {
    let mut servers = String::new();
    for endpoint in endpoints {
        let _ = writeln!(servers, "    server {endpoint};");
    }
    // Workers of a master that runs as root would otherwise not reach the temporary folder.
    let user = if root { "user root;" } else { "" };
    format!(
        "daemon off;
{user}
worker_processes {PROXY_WORKERS};
worker_rlimit_nofile 16384;
pid nginx.pid;
error_log stderr error;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  client_max_body_size 64m;
  client_body_buffer_size 1m;
  keepalive_requests 1000000000;
  keepalive_timeout 3600s;
  upstream endpoints {{
{servers}    keepalive 1024;
    keepalive_requests 1000000000;
    keepalive_timeout 3600s;
  }}
  server {{
    listen {listen};
    location / {{
      proxy_pass http://endpoints;
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
      proxy_buffering off;
      proxy_read_timeout 3600s;
    }}
  }}
}}
"
    )
}

/// Envoy as a plain proxy.
pub(super) fn envoy(listen: SocketAddr, endpoints: &[SocketAddr]) -> String {
    let address = |address: &SocketAddr| {
        format!("{{socket_address: {{address: {}, port_value: {}}}}}", address.ip(), address.port())
    };
    let mut members = String::new();
    for endpoint in endpoints {
        let _ = writeln!(members, "        - endpoint: {{address: {}}}", address(endpoint));
    }
    format!(
        "static_resources:
  listeners:
  - name: traffic
    address: {}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: traffic
          route_config:
            virtual_hosts:
            - name: all
              domains: [\"*\"]
              routes:
              - match: {{prefix: /}}
                route: {{cluster: endpoints, timeout: 0s}}
          http_filters:
          - name: envoy.filters.http.router
            typed_config:
              \"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
  - name: endpoints
    type: STATIC
    lb_policy: LEAST_REQUEST
    circuit_breakers: {{thresholds: [{{max_connections: 10000, max_pending_requests: 10000, max_requests: 10000}}]}}
    load_assignment:
      cluster_name: endpoints
      endpoints:
      - lb_endpoints:
{members}",
        address(&listen)
    )
}

/// LiteLLM's model list: one group over all endpoints.
pub(super) fn litellm(endpoints: &[SocketAddr]) -> String {
    let mut text = String::from("model_list:\n");
    for endpoint in endpoints {
        let _ = write!(
            text,
            "- model_name: {model}\n  litellm_params:\n    model: openai/{model}\n    api_base: http://{endpoint}/v1\n    api_key: none\n",
            model = crate::prompts::MODEL
        );
    }
    text
}
