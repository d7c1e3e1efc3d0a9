{{/*
prometheus.yml: pods by their labels and the names of their ports, with the labels namespace, pod and
container that the dashboards read. What an exporter itself calls namespace, pod or container becomes
exported_namespace and so on, since honor_labels is off.
*/}}
{{- define "kvbooth.prometheus.config" -}}
{{- $dcgm := .Values.monitoring.dcgm -}}
{{- $graphs := append .Values.prometheus.namespaces (include "kvbooth.serving.namespace" .) | uniq | sortAlpha -}}
global:
  scrape_interval: {{ .Values.prometheus.interval }}
  scrape_timeout: {{ .Values.prometheus.interval }}
  evaluation_interval: 10s
  scrape_native_histograms: true
  always_scrape_classic_histograms: true
rule_files: [/etc/prometheus/rules.yaml]
scrape_configs:
  - job_name: loadgen
    scrape_interval: 1s
    scrape_timeout: 1s
    {{- if include "kvbooth.metrics.token" . | fromJson }}
    authorization: {credentials_file: /run/secrets/kvbooth/metrics-token}
    {{- end }}
    kubernetes_sd_configs: [{role: pod, namespaces: {names: [{{ .Release.Namespace }}]}}]
    relabel_configs:
      - {action: keep, source_labels: [__meta_kubernetes_pod_label_app_kubernetes_io_part_of, __meta_kubernetes_pod_label_app_kubernetes_io_component, __meta_kubernetes_pod_label_app_kubernetes_io_instance], regex: kvbooth;loadgen;{{ .Release.Name }}}
      {{- include "kvbooth.prometheus.relabel" "http" | nindent 6 }}
  {{- if .Values.members.replicas }}
  - job_name: members
    authorization: {credentials_file: /run/secrets/kvbooth/members-token}
    kubernetes_sd_configs: [{role: pod, namespaces: {names: [{{ .Release.Namespace }}]}}]
    relabel_configs:
      - {action: keep, source_labels: [__meta_kubernetes_pod_label_app_kubernetes_io_part_of, __meta_kubernetes_pod_label_app_kubernetes_io_component, __meta_kubernetes_pod_label_app_kubernetes_io_instance], regex: kvbooth;member;{{ .Release.Name }}}
      {{- include "kvbooth.prometheus.relabel" "http" | nindent 6 }}
  {{- end }}
  - job_name: dynamo-frontend
    kubernetes_sd_configs: [{role: pod, namespaces: {names: {{ toJson $graphs }}}}]
    relabel_configs:
      - {action: keep, source_labels: [__meta_kubernetes_pod_label_nvidia_com_dynamo_component_type], regex: frontend}
      {{- include "kvbooth.prometheus.relabel" "http" | nindent 6 }}
  - job_name: dynamo-worker
    kubernetes_sd_configs: [{role: pod, namespaces: {names: {{ toJson $graphs }}}}]
    relabel_configs:
      - {action: keep, source_labels: [__meta_kubernetes_pod_label_nvidia_com_dynamo_component_type], regex: worker|prefill|decode}
      {{- include "kvbooth.prometheus.relabel" "system" | nindent 6 }}
  {{- if .Values.prometheus.dcgm }}
  - job_name: dcgm-exporter
    kubernetes_sd_configs: [{role: pod, namespaces: {names: [{{ $dcgm.namespace }}]}}]
    relabel_configs:
      {{- range $label, $value := $dcgm.matchLabels }}
      - {action: keep, source_labels: [__meta_kubernetes_pod_label_{{ regexReplaceAll "[^a-zA-Z0-9_]" $label "_" }}], regex: {{ regexReplaceAll "([.+*?()|\\[\\]{}^$\\\\])" $value "\\$1" | toJson }}}
      {{- end }}
      - {action: keep, source_labels: [__meta_kubernetes_pod_container_port_number], regex: "{{ $dcgm.containerPort }}"}
      {{- include "kvbooth.prometheus.relabel" "" | nindent 6 }}
  {{- end }}
  - job_name: prometheus
    static_configs:
      - targets: [localhost:9090]
        labels: {namespace: {{ .Release.Namespace }}, pod: {{ include "kvbooth.prometheus.name" . }}-0, container: prometheus}
{{- end -}}

{{/* What all jobs have: one target for each running container with the port, and its labels. */}}
{{- define "kvbooth.prometheus.relabel" -}}
- {action: drop, source_labels: [__meta_kubernetes_pod_phase], regex: Pending|Succeeded|Failed}
{{- if . }}
- {action: keep, source_labels: [__meta_kubernetes_pod_container_port_name], regex: {{ . }}}
{{- end }}
- {source_labels: [__meta_kubernetes_namespace], target_label: namespace}
- {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
- {source_labels: [__meta_kubernetes_pod_container_name], target_label: container}
{{- end -}}

{{/* The Secrets with the tokens that it shows, as JSON: file to {secret, key}. */}}
{{- define "kvbooth.prometheus.tokens" -}}
{{- $tokens := dict -}}
{{- with include "kvbooth.metrics.token" . | fromJson -}}{{- $_ := set $tokens "metrics-token" . -}}{{- end -}}
{{- if .Values.members.replicas -}}{{- $_ := set $tokens "members-token" (include "kvbooth.members.metrics.token" . | fromJson) -}}{{- end -}}
{{- toJson $tokens -}}
{{- end -}}
