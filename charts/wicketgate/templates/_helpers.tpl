{{/* Names. */}}
{{- define "wicketgate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "wicketgate.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "wicketgate.controllerName" -}}
{{ include "wicketgate.fullname" . }}-controller
{{- end }}

{{- define "wicketgate.controllerAccount" -}}
{{ .Values.controller.serviceAccount.name | default (ternary (include "wicketgate.controllerName" .) "default" .Values.controller.serviceAccount.create) }}
{{- end }}

{{- define "wicketgate.gatewayAccount" -}}
{{ .Values.gateway.serviceAccount.name | default (ternary (include "wicketgate.fullname" .) "default" .Values.gateway.serviceAccount.create) }}
{{- end }}

{{- define "wicketgate.modelNamespace" -}}
{{ .Values.gateway.modelNamespace | default .Release.Namespace }}
{{- end }}

{{- define "wicketgate.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{/* Labels by which pods are selected; they never change. Argument: (list . "gateway"). */}}
{{- define "wicketgate.selector" -}}
{{- $top := index . 0 -}}
app.kubernetes.io/name: {{ include "wicketgate.name" $top }}
app.kubernetes.io/instance: {{ $top.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Labels of every object. Argument: (list . "gateway"). */}}
{{- define "wicketgate.labels" -}}
{{- $top := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $top.Chart.Name $top.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "wicketgate.selector" . }}
app.kubernetes.io/version: {{ $top.Values.image.tag | default $top.Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/part-of: wicketgate
{{- with $top.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What a pod of ours may never do. */}}
{{- define "wicketgate.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  {{- if not (kindIs "invalid" .Values.runAsUser) }}
  runAsUser: {{ int64 .Values.runAsUser }}
  runAsGroup: {{ int64 .Values.runAsUser }}
  fsGroup: {{ int64 .Values.runAsUser }}
  {{- end }}
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "wicketgate.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{/* Where a pod may run. Argument: (list . "gateway" .Values.gateway). */}}
{{- define "wicketgate.placement" -}}
{{- $part := index . 2 -}}
topologySpreadConstraints:
{{- if $part.topologySpreadConstraints }}
  {{- toYaml $part.topologySpreadConstraints | nindent 2 }}
{{- else }}
{{- $selector := include "wicketgate.selector" (list (index . 0) (index . 1)) }}
{{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- $selector | nindent 8 }}
{{- end }}
{{- end }}
{{- with $part.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $part.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Who may reach an administration listener. */}}
{{- define "wicketgate.adminFrom" -}}
{{- if .Values.networkPolicy.adminFrom }}
{{- toYaml .Values.networkPolicy.adminFrom }}
{{- else -}}
- podSelector: {}
{{- end }}
{{- end }}

{{/* The gateway's document: what was given, and what the chart has to know itself. */}}
{{- define "wicketgate.document" -}}
{{- $gateway := .Values.gateway -}}
{{- if not (or $gateway.spec $gateway.pools) }}
{{- fail "gateway.spec is empty: write the `spec` of an InferenceGatewayConfig there, for example `schedulers: [{ name: chat, modelName: …, modelSelector: { matchLabels: { app: … } } }]`, or name InferencePools in gateway.pools" }}
{{- end }}
{{- $listener := $gateway.spec.listener | default dict }}
{{- $tls := $listener.tls | default dict }}
{{- $admin := $gateway.spec.admin | default dict }}
{{- if or (hasKey $listener "address") (hasKey $tls "address") (hasKey $tls "certFile") (hasKey $tls "keyFile") (hasKey $admin "address") }}
{{- fail "gateway.spec names an address or a certificate of a listener: these are the chart's, since pods and Services have to fit; use gateway.service and gateway.tls.secretName" }}
{{- end }}
{{- if and $tls (not $gateway.tls.secretName) }}
{{- fail "gateway.spec.listener.tls needs a certificate: name its Secret in gateway.tls.secretName" }}
{{- end }}
{{- if and $gateway.peers.enabled (hasKey $gateway.spec "peers") }}
{{- fail "gateway.peers.enabled writes `peers`; leave gateway.spec.peers out, or set gateway.peers.enabled to false" }}
{{- end }}
{{- $spec := deepCopy $gateway.spec }}
{{- $timeouts := $spec.timeouts | default dict }}
{{- range list "drain" "drainDelay" }}
{{- if hasKey $timeouts . }}
{{- fail (printf "gateway.spec.timeouts.%s must fit the pod's grace period, which the chart writes: set gateway.drain.seconds and gateway.drain.delaySeconds instead" .) }}
{{- end }}
{{- end }}
{{- $drain := dict "drainDelay" (printf "%ds" (int $gateway.drain.delaySeconds)) "drain" (printf "%ds" (int $gateway.drain.seconds)) }}
{{- $_ := set $spec "timeouts" (merge $drain $timeouts) }}
{{- $_ := set $spec "admin" (merge (dict "address" "0.0.0.0:9090") $admin) }}
{{- if $gateway.tls.secretName }}
{{- $files := dict "certFile" "/etc/wicketgate/tls/tls.crt" "keyFile" "/etc/wicketgate/tls/tls.key" }}
{{- $_ := set $spec "listener" (dict "tls" (merge $files $tls)) }}
{{- end }}
{{- if $gateway.peers.enabled }}
{{- $name := include "wicketgate.fullname" . }}
{{- $peers := dict "seeds" (list (printf "%s-peers.%s.svc:9004" $name .Release.Namespace)) "clusterId" (printf "%s/%s" .Release.Namespace $name) }}
{{- if $gateway.peers.keySecretName }}
{{- $_ := set $peers "keyFile" "/etc/wicketgate/peers/key" }}
{{- end }}
{{- $_ := set $spec "peers" $peers }}
{{- end }}
{{- $metadata := dict "name" (include "wicketgate.fullname" .) }}
{{- with $gateway.modelNamespace }}
{{- $_ := set $metadata "namespace" . }}
{{- end }}
{{- toYaml (dict "apiVersion" "gateway.wicketgate.dev/v1alpha1" "kind" "InferenceGatewayConfig" "metadata" $metadata "spec" $spec) }}
{{- end }}
