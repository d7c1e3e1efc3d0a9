{{/* Names of members and of the chart's own NATS server. */}}
{{- define "kvbooth.members.name" -}}{{ include "kvbooth.fullname" . }}-member{{- end -}}
{{- define "kvbooth.nats.name" -}}{{ include "kvbooth.fullname" . }}-nats{{- end -}}

{{/* "true" where the chart runs a NATS server. */}}
{{- define "kvbooth.nats.own" -}}
{{- if and .Values.members.replicas (not .Values.members.nats.url) -}}true{{- end -}}
{{- end -}}

{{/* The host of the chart's own, for which its certificate is. */}}
{{- define "kvbooth.nats.host" -}}{{ include "kvbooth.nats.name" . }}.{{ .Release.Namespace }}.svc{{- end -}}

{{/* The Secret with the credential. */}}
{{- define "kvbooth.nats.secret" -}}
{{- default (include "kvbooth.nats.name" .) .Values.members.nats.existingSecret -}}
{{- end -}}

{{/*
What members and coordinator have of that Secret, as JSON: file to key. The chart's own server asks
for a token, since Helm cannot make an NKey, and for TLS, without which a token is everybody's who
reads along.
*/}}
{{- define "kvbooth.nats.files" -}}
{{- $nats := .Values.members.nats -}}
{{- $files := dict "token" $nats.tokenKey -}}
{{- if $nats.nkeyKey -}}{{- $files = dict "nkey" $nats.nkeyKey -}}{{- end -}}
{{- if $nats.caKey -}}
{{- $_ := set $files "ca.crt" $nats.caKey -}}
{{- else if include "kvbooth.nats.own" . -}}
{{- $_ := set $files "ca.crt" "ca.crt" -}}
{{- end -}}
{{- toJson $files -}}
{{- end -}}

{{/* The section members of loadgen.yaml, "" where there are none. */}}
{{- define "kvbooth.members.config" -}}
{{- if or .Values.members.replicas .Values.members.nats.url -}}
fleet: {{ default (printf "%s-%s" .Release.Namespace (include "kvbooth.fullname" .) | trunc 32 | trimSuffix "-") .Values.members.fleet }}
nats:
  url: {{ default (printf "tls://%s:4222" (include "kvbooth.nats.host" .)) .Values.members.nats.url }}
{{- range $file, $key := include "kvbooth.nats.files" . | fromJson }}
  {{ get (dict "token" "token_file" "nkey" "nkey_file" "ca.crt" "ca_file") $file }}: /run/secrets/nats/{{ $file }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* The volume with these files. */}}
{{- define "kvbooth.nats.volume" -}}
- name: nats
  secret:
    secretName: {{ include "kvbooth.nats.secret" . }}
    defaultMode: 0440
    items:
      {{- range $file, $key := include "kvbooth.nats.files" . | fromJson }}
      - {key: {{ $key | quote }}, path: {{ $file }}}
      {{- end }}
{{- end -}}

{{/*
The content of the chart's own Secret, made once and then kept, as the token of the load generator is:
a token, and a certificate of an authority whose key nobody has. localhost is for members that come
by a port-forward.
*/}}
{{- define "kvbooth.nats.made" -}}
{{- $there := (lookup "v1" "Secret" .Release.Namespace (include "kvbooth.nats.name" .)).data | default dict -}}
{{- if and (hasKey $there "tls.key") (hasKey $there .Values.members.nats.tokenKey) -}}
{{- toYaml $there -}}
{{- else -}}
{{- $ca := genCA (include "kvbooth.nats.name" .) 3650 -}}
{{- $host := include "kvbooth.nats.host" . -}}
{{- $cert := genSignedCert $host nil (list $host "localhost") 3650 $ca -}}
{{ .Values.members.nats.tokenKey }}: {{ randAlphaNum 40 | b64enc }}
ca.crt: {{ b64enc $ca.Cert }}
tls.crt: {{ b64enc $cert.Cert }}
tls.key: {{ b64enc $cert.Key }}
{{- end -}}
{{- end -}}

{{/* nats.conf of the chart's own server, which stores nothing. A turn is one message, with its whole history. */}}
{{- define "kvbooth.nats.config" -}}
listen: 0.0.0.0:4222
max_payload: 64MB
max_pending: 256MB
tls {
  cert_file: /run/secrets/nats/tls.crt
  key_file: /run/secrets/nats/tls.key
}
authorization { token: $NATS_TOKEN }
{{- end -}}

{{/* The Secret with the token of the members' metrics, as JSON {secret, key}: that of the load generator's where it has one. */}}
{{- define "kvbooth.members.metrics.token" -}}
{{- $token := include "kvbooth.metrics.token" . | fromJson -}}
{{- toJson (default (dict "secret" (include "kvbooth.members.name" .) "key" "metrics-token") $token) -}}
{{- end -}}

{{/* What must not be. */}}
{{- define "kvbooth.members.check" -}}
{{- $nats := .Values.members.nats -}}
{{- if $nats.url -}}
{{- if not $nats.existingSecret -}}
{{- fail "members.nats.url needs a credential: set members.nats.existingSecret to a Secret with the seed of an NKey (members.nats.nkeyKey), or with a token where the URL begins with tls://" -}}
{{- end -}}
{{- if not (or $nats.nkeyKey (hasPrefix "tls://" $nats.url)) -}}
{{- fail "members.nats.url: a token goes through TLS only; begin the URL with tls://, or set members.nats.nkeyKey to the key of an NKey's seed in members.nats.existingSecret" -}}
{{- end -}}
{{- else if .Values.members.replicas -}}
{{- if not .Values.loadgen.enabled -}}
{{- fail "members without a load generator in this release need the NATS server where they meet theirs: set members.nats.url" -}}
{{- end -}}
{{- if $nats.nkeyKey -}}
{{- fail "members.nats.nkeyKey is for a server that is there (members.nats.url): the chart's own asks for a token" -}}
{{- end -}}
{{- end -}}
{{- end -}}
