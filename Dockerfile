# The image: one static binary and the certificates of public authorities. No shell, no package, no user's name.
#
#   docker build --tag wicketgate:0.1.0 .
#   docker buildx build --platform linux/amd64,linux/arm64 --tag wicketgate:0.1.0 .
FROM rust:1.95-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates musl-tools \
    && rm -rf /var/lib/apt/lists/* \
    && rustup target add "$(uname -m)-unknown-linux-musl"
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    deploy/image/build-static /wicketgate

FROM scratch
LABEL org.opencontainers.image.title="wicketgate" \
      org.opencontainers.image.description="A GPU-aware gateway for LLM inference" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /source/LICENSE /LICENSE
COPY --from=build /wicketgate /wicketgate
# A number, so that `runAsNonRoot` can be checked; the same as in the chart.
USER 65532:65532
# Traffic, traffic with TLS, ext_proc and its health, administration.
EXPOSE 8080 8443 9002 9003 9090
ENTRYPOINT ["/wicketgate"]
CMD ["--help"]
