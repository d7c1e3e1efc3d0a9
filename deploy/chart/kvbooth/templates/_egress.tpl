{{/*
What the load generator may call: names, the Kubernetes API where it switches modes, and every URL of
its configuration. A Service is allowed by its namespace, since a policy sees the ports of pods, which
a Service may number otherwise; an address elsewhere by its port.
*/}}
{{- define "kvbooth.loadgen.egress" -}}
{{- $config := include "kvbooth.loadgen.config" . | fromYaml -}}
{{- $urls := list (dig "target" "url" "" $config) (dig "twin" "target" "url" "" $config) (dig "prometheus" "url" "" $config) (dig "followup" "url" "" $config) (dig "corpus" "s3" "endpoint" "" $config) -}}
{{- range concat (dig "mode" "endpoints" list $config) (dig "twin" "mode" "endpoints" list $config) -}}
{{- $urls = append $urls (regexReplaceAll "^[^=]*=" . "") -}}
{{- end -}}
{{- $urls = concat $urls (dig "cluster" "metrics_urls" list $config) (dig "twin" "cluster" "metrics_urls" list $config) -}}
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
{{- $namespaces = append $namespaces $.Release.Namespace -}}
{{- else if $service -}}
{{- $namespaces = append $namespaces (index $parts 1) -}}
{{- else -}}
{{- $ports = append $ports $port -}}
{{- if eq (len $parts) 2 -}}{{/* a Service with its namespace, or a domain */}}
{{- $namespaces = append $namespaces (index $parts 1) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if include "kvbooth.loadgen.graphs" . | fromJson -}}
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
{{- with .Values.networkPolicy.extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end -}}
