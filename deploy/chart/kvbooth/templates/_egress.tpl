{{/* What the load generator may call: names, the Kubernetes API where it switches modes, and every URL of its configuration. */}}
{{- define "kvbooth.loadgen.egress" -}}
{{- $config := include "kvbooth.loadgen.config" . | fromYaml -}}
{{- $urls := list (dig "prometheus" "url" "" $config) (dig "corpus" "s3" "endpoint" "" $config) -}}
{{- $urls = concat $urls (without (dig "cluster" "metrics_urls" list $config) "no-target") (without (dig "twin" "cluster" "metrics_urls" list $config) "no-target") -}}
{{- $graphs := include "kvbooth.loadgen.graphs" . | fromJson -}}
{{- include "kvbooth.egress" (dict "root" . "config" $config "urls" $urls "api" (not (empty $graphs))) -}}
{{- end -}}

{{/* What a member may call: of all that, targets, the end user's model, and NATS. */}}
{{- define "kvbooth.members.egress" -}}
{{- include "kvbooth.egress" (dict "root" . "config" (include "kvbooth.loadgen.config" . | fromYaml) "urls" list "api" false) -}}
{{- end -}}

{{/*
Names, what both of them call, and urls: (dict "root" $ "config" LOADGEN.YAML "urls" LIST "api" BOOL).
A Service is allowed by its namespace, since a policy sees the ports of pods, which a Service may
number otherwise; an address elsewhere by its port.
*/}}
{{- define "kvbooth.egress" -}}
{{- $config := .config -}}
{{- $urls := concat .urls (list (dig "target" "url" "" $config) (dig "twin" "target" "url" "" $config) (dig "followup" "url" "" $config) (dig "members" "nats" "url" "" $config)) -}}
{{- range concat (dig "mode" "endpoints" list $config) (dig "twin" "mode" "endpoints" list $config) -}}
{{- $urls = append $urls (regexReplaceAll "^[^=]*=" . "") -}}
{{- end -}}
{{- $namespaces := list -}}
{{- $ports := list -}}
{{- range compact $urls -}}
{{- $url := urlParse . -}}
{{- $host := regexReplaceAll ":[0-9]+$" $url.host "" -}}
{{- $port := regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | default (ternary "443" "80" (eq $url.scheme "https")) -}}
{{- $parts := splitList "." $host -}}
{{- $service := and (gt (len $parts) 2) (eq (index $parts 2) "svc") -}}
{{- if hasPrefix "[" $host -}}
{{- $ports = append $ports $port -}}
{{- else if eq (len $parts) 1 -}}
{{- $namespaces = append $namespaces $.root.Release.Namespace -}}
{{- else if $service -}}
{{- $namespaces = append $namespaces (index $parts 1) -}}
{{- else -}}
{{- $ports = append $ports $port -}}
{{- if eq (len $parts) 2 -}}{{/* a Service with its namespace, or a domain */}}
{{- $namespaces = append $namespaces (index $parts 1) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if .api -}}
{{- $ports = concat $ports (list "443" "6443") -}}
{{- end -}}
- ports: # names
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
{{- with $namespaces | uniq | sortAlpha }}
- to: # Services
    {{- range . }}
    - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ . }}}}
    {{- end }}
{{- end }}
{{- with $ports | uniq | sortAlpha }}
- ports: # the Kubernetes API, and what is outside the cluster
    {{- range . }}
    - {port: {{ . }}}
    {{- end }}
{{- end }}
{{- with .root.Values.networkPolicy.extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Whom a policy lets in to a port with metrics: (dict "root" $ "outside" BOOL) says whether others than this release's need it. */}}
{{- define "kvbooth.ingress.from" -}}
{{- $namespaces := .root.Values.networkPolicy.clientNamespaces -}}
{{- if or $namespaces (not .outside) -}}
from:
  - podSelector: # Grafana, Prometheus and the doctor of this release
      matchLabels:
        app.kubernetes.io/instance: {{ .root.Release.Name }}
        app.kubernetes.io/part-of: kvbooth
  {{- range $namespaces }}
  - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ . }}}}
  {{- end }}
{{- end -}}
{{- end -}}
