{{/* Where pods of the booth run, and what they may do as a pod. */}}
{{- define "kvbooth.placement" -}}
{{- with .Values.placement.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.placement.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.placement.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.placement.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with include "kvbooth.pullSecrets" . }}
{{ . }}
{{- end }}
{{- end -}}

{{/* Labels of a pod: those that select it, and the one by which the parts of the booth know each other. None that changes with a version, which would restart it. */}}
{{- define "kvbooth.podLabels" -}}
{{ include "kvbooth.selectorLabels" . }}
app.kubernetes.io/part-of: kvbooth
{{- end -}}

{{/* Names of Services. */}}
{{- define "kvbooth.loadgen.name" -}}{{ include "kvbooth.fullname" . }}-loadgen{{- end -}}
{{- define "kvbooth.grafana.name" -}}{{ include "kvbooth.fullname" . }}-grafana{{- end -}}
{{- define "kvbooth.prometheus.name" -}}{{ include "kvbooth.fullname" . }}-prometheus{{- end -}}

{{/* URL of the load generator, "" where none is known. */}}
{{- define "kvbooth.loadgen.url" -}}
{{- if .Values.grafana.loadgenUrl -}}
{{- .Values.grafana.loadgenUrl -}}
{{- else if .Values.loadgen.enabled -}}
http://{{ include "kvbooth.loadgen.name" . }}.{{ .Release.Namespace }}.svc:8088
{{- end -}}
{{- end -}}

{{/* The Secret with the load generator's token. */}}
{{- define "kvbooth.token.secret" -}}
{{- default (printf "%s-token" (include "kvbooth.loadgen.name" .)) .Values.loadgen.token.existingSecret -}}
{{- end -}}

{{/* The Secret with the name and the password of Grafana's administrator. */}}
{{- define "kvbooth.admin.secret" -}}
{{- default (printf "%s-admin" (include "kvbooth.grafana.name" .)) .Values.grafana.admin.existingSecret -}}
{{- end -}}

{{/* URL of the Prometheus with the cluster's metrics, "" where none is known. */}}
{{- define "kvbooth.prometheus.url" -}}
{{- if .Values.prometheus.create -}}
http://{{ include "kvbooth.prometheus.name" . }}.{{ .Release.Namespace }}.svc:9090
{{- else -}}
{{- .Values.prometheus.url -}}
{{- end -}}
{{- end -}}

{{/* Where a browser finds the booth, "" where no gateway is. */}}
{{- define "kvbooth.public.url" -}}
{{- if and .Values.gateway.enabled .Values.gateway.host -}}
{{ if or .Values.gateway.tls.certificateRefs .Values.gateway.parentRef.name }}https{{ else }}http{{ end }}://{{ .Values.gateway.host }}
{{- end -}}
{{- end -}}

{{/* The Secret with a token of the load generator's metrics, as JSON {secret, key}; {} where they are open. */}}
{{- define "kvbooth.metrics.token" -}}
{{- $found := dict -}}
{{- range include "kvbooth.loadgen.secretEnv" . | fromJsonArray -}}
{{- if eq .name "LOADGEN_METRICS_TOKEN" -}}{{- $found = pick . "secret" "key" -}}{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* The load generator's variables from Secrets, as a JSON list of {name, secret, key}. */}}
{{- define "kvbooth.loadgen.secretEnv" -}}
{{- $all := .Values.loadgen.secretEnv -}}
{{- with .Values.loadgen.secrets.followup -}}
{{- $all = append $all (dict "name" "LOADGEN_FOLLOWUP_API_KEY" "secret" . "key" "key") -}}
{{- end -}}
{{- with .Values.loadgen.secrets.corpus -}}
{{- $all = append $all (dict "name" "LOADGEN_CORPUS_S3_ACCESS_KEY" "secret" . "key" "access-key") -}}
{{- $all = append $all (dict "name" "LOADGEN_CORPUS_S3_SECRET_KEY" "secret" . "key" "secret-key") -}}
{{- end -}}
{{- toJson $all -}}
{{- end -}}

{{/* Variables from Secrets: (list {name, secret, key}). */}}
{{- define "kvbooth.secretEnv" -}}
{{- range . }}
- name: {{ .name }}
  valueFrom: {secretKeyRef: {name: {{ .secret }}, key: {{ .key | quote }}}}
{{- end }}
{{- end -}}

{{/*
A value that is made once and then kept: (dict "root" $ "secret" NAME "key" KEY "length" N), in
base64. `helm template` without --dry-run=server, which cannot look, makes another one each time.
*/}}
{{- define "kvbooth.kept" -}}
{{- $there := lookup "v1" "Secret" .root.Release.Namespace .secret -}}
{{- with index ($there.data | default dict) .key -}}
{{- . -}}
{{- else -}}
{{- randAlphaNum (int .length) | b64enc -}}
{{- end -}}
{{- end -}}

{{/* The namespace that dashboards begin with, "" for all. */}}
{{- define "kvbooth.dashboards.namespace" -}}
{{- if .Values.grafana.namespace -}}
{{- .Values.grafana.namespace -}}
{{- else if and (include "kvbooth.serving.name" .) (include "kvbooth.prometheus.url" .) -}}
{{- include "kvbooth.serving.namespace" . -}}
{{- end -}}
{{- end -}}

{{/* A dashboard that begins with that namespace: (dict "root" $ "content" JSON). */}}
{{- define "kvbooth.dashboard" -}}
{{- $dashboard := toString .content | fromJson -}}
{{- $ns := include "kvbooth.dashboards.namespace" .root -}}
{{- if $ns -}}
{{- range $dashboard.templating.list -}}
{{- if eq (toString .name) "namespace" -}}{{- $_ := set . "current" (dict "text" $ns "value" $ns) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $dashboard -}}
{{- end -}}

{{/* What the chart's own Dynamo is, as the screens name it and comparisons hold it against recorded results. */}}
{{- define "kvbooth.loadgen.deployment" -}}
kind: real
engine: {{ get (dict "trtllm" "TensorRT-LLM" "vllm" "vLLM" "sglang" "SGLang") .Values.serving.engine }}
model: {{ .Values.model.repo | quote }}
workers: {{ .Values.serving.workers }}
tensor_parallel: {{ .Values.serving.tensorParallel }}
dynamo: {{ .Values.serving.dynamo.version | quote }}
kubernetes: {{ trimPrefix "v" .Capabilities.KubeVersion.Version | quote }}
worker_image: {{ include "kvbooth.worker.image" . | quote }}
serving: aggregated
block_size: {{ .Values.serving.blockSize }}
max_batch_size: {{ .Values.serving.maxBatch }}
max_num_tokens: {{ .Values.serving.maxTokens }}
{{- if ne .Values.serving.kvCacheType "auto" }}
kv_cache_dtype: {{ .Values.serving.kvCacheType | quote }}
{{- end }}
free_gpu_memory_fraction: {{ .Values.serving.memoryFraction }}
{{- if eq .Values.serving.engine "trtllm" }}
chunked_prefill: true
overlap_scheduler: {{ ne .Values.serving.speculation "draft" }}
{{- end }}
{{- end -}}

{{/*
loadgen.yaml: what the values say, and what the chart knows where they say nothing. The token is
always asked for: the program listens on more than loopback only with one, and its file is the
Secret's.
*/}}
{{- define "kvbooth.loadgen.config" -}}
{{- $config := deepCopy .Values.loadgen.config -}}
{{- range $field := list "listen" "token_file" "data_dir" "tls_cert_file" "tls_key_file" "members" -}}
{{- if hasKey $config $field -}}
{{- fail (printf "loadgen.config.%s is the chart's: leave it out. The token comes from the Secret of loadgen.token, data go to the volume of loadgen.persistence, TLS ends at the gateway (gateway.tls), and members are those of the values below members" $field) -}}
{{- end -}}
{{- end -}}
{{- $known := dict -}}
{{- $graph := include "kvbooth.serving.name" . -}}
{{- $namespace := include "kvbooth.serving.namespace" . -}}
{{- if $graph -}}
{{- $_ := set $known "target" (dict "url" (include "kvbooth.serving.url" .)) -}}
{{- $_ := set $known "mode" (dict "driver" "kubernetes" "kubernetes" (dict "name" $graph "namespace" $namespace)) -}}
{{- end -}}
{{- if .Values.serving.create -}}
{{- $_ := set $known "deployment" (include "kvbooth.loadgen.deployment" . | fromYaml) -}}
{{- $_ := set $known.mode "speculation" .Values.serving.speculation -}}
{{- if include "kvbooth.variants.name" . -}}
{{- $_ := set $known.mode.kubernetes "variants_file" "/etc/kvbooth-variants/variants.yaml" -}}
{{- $offers := list -}}
{{- range $speculation := .Values.serving.variants | uniq -}}
{{- $offers = concat $offers (list (printf "kv/%s" $speculation) (printf "round_robin/%s" $speculation)) -}}
{{- end -}}
{{- $_ := set $known.mode "offers" $offers -}}
{{- end -}}
{{- end -}}
{{- $twin := include "kvbooth.twin.name" . -}}
{{- if $twin -}}
{{- $_ := set $known "twin" (dict "target" (dict "url" (include "kvbooth.twin.url" .)) "mode" (dict "kubernetes" (dict "name" $twin "namespace" $namespace))) -}}
{{- end -}}
{{- if include "kvbooth.prometheus.url" . -}}
{{- $prometheus := dict "url" (include "kvbooth.prometheus.url" .) -}}
{{- if $graph -}}{{- $_ := set $prometheus "namespace" $namespace -}}{{- end -}}
{{- $_ := set $known "prometheus" $prometheus -}}
{{- if $twin -}}{{- $_ := set $known.twin "prometheus" (dict "namespace" $namespace) -}}{{- end -}}
{{- end -}}
{{- with include "kvbooth.members.config" . -}}{{- $_ := set $known "members" (fromYaml .) -}}{{- end -}}
{{- $service := include "kvbooth.loadgen.name" . -}}
{{- $hosts := list $service (printf "%s.%s" $service .Release.Namespace) (printf "%s.%s.svc" $service .Release.Namespace) (printf "%s.%s.svc.cluster.local" $service .Release.Namespace) -}}
{{- if and .Values.gateway.enabled .Values.gateway.host -}}{{- $hosts = append $hosts .Values.gateway.host -}}{{- end -}}
{{- $config = mustMergeOverwrite $known $config -}}
{{- $_ := set $config "hosts" (concat $hosts (default list $config.hosts) | uniq) -}}
{{- $_ := set $config "listen" "0.0.0.0:8088" -}}
{{- $_ := set $config "token_file" "/run/secrets/kvbooth/token" -}}
{{- $_ := set $config "data_dir" "/data" -}}
{{- if not (or (dig "target" "url" "" $config) (dig "mode" "endpoints" list $config)) -}}
{{- fail "no target: set serving.name to a DynamoGraphDeployment that is there (serving.namespace says where), or serving.create to true for a new one, or loadgen.config.target.url to the URL of an OpenAI-compatible server" -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/*
What the load generator may do to DynamoGraphDeployments, as JSON: namespace to {names, list}. Empty
where no lane's driver is kubernetes.
*/}}
{{- define "kvbooth.loadgen.graphs" -}}
{{- $config := include "kvbooth.loadgen.config" . | fromYaml -}}
{{- $main := dig "mode" "driver" "manual" $config -}}
{{- $mode := dig "mode" "kubernetes" dict $config -}}
{{- $rights := dict -}}
{{- $lanes := list (dict "driver" $main "of" $mode "url" (dig "target" "url" "" $config)) -}}
{{- if dig "twin" "target" "url" "" $config -}}
{{- $twin := dig "twin" "mode" "kubernetes" dict $config -}}
{{- $lanes = append $lanes (dict "driver" (dig "twin" "mode" "driver" $main $config) "of" (mergeOverwrite (dict "namespace" $mode.namespace) $twin) "url" (dig "twin" "target" "url" "" $config)) -}}
{{- end -}}
{{- range $lanes -}}
{{- if eq .driver "kubernetes" -}}
{{- $namespace := default $.Release.Namespace .of.namespace -}}
{{- $right := default (dict "names" list "list" false) (get $rights $namespace) -}}
{{- $name := .of.name -}}
{{- if not $name -}}{{- $name = regexFind "^https?://[^./:]+-frontend[./:]" (print .url "/") | trimPrefix "http://" | trimPrefix "https://" | trimSuffix "." | trimSuffix "/" | trimSuffix ":" | trimSuffix "-frontend" -}}{{- end -}}
{{- if .of.selector -}}
{{- $_ := set $right "list" true -}}
{{- else if not $name -}}
{{- fail "loadgen.config.mode.driver is kubernetes, but no DynamoGraphDeployment is named: set serving.name, or loadgen.config.mode.kubernetes.name" -}}
{{- else -}}
{{- $_ := set $right "names" (append $right.names $name | uniq) -}}
{{- end -}}
{{- $_ := set $rights $namespace $right -}}
{{- end -}}
{{- end -}}
{{- toJson $rights -}}
{{- end -}}

{{/*
What must not be: rendering stops with a sentence that says what to set. Called where it matters
whichever parts are on.
*/}}
{{- define "kvbooth.check" -}}
{{- range $name, $value := .Values.grafana.env -}}
{{- if hasPrefix "GF_AUTH_ANONYMOUS_" $name -}}
{{- fail (printf "grafana.env.%s: who is not logged in is a Viewer at most; set grafana.anonymousViewer to true for that" $name) -}}
{{- end -}}
{{- end -}}
{{- if hasKey .Values.loadgen.files "loadgen.yaml" -}}
{{- fail "loadgen.files has loadgen.yaml, which is made of loadgen.config: set its fields there" -}}
{{- end -}}
{{- $config := .Values.loadgen.config -}}
{{- if and .Values.loadgen.secrets.followup (not (dig "followup" "url" "" $config)) -}}
{{- fail "loadgen.secrets.followup is the key of a server that is not named: set loadgen.config.followup.url" -}}
{{- end -}}
{{- if and .Values.loadgen.secrets.corpus (not (dig "corpus" "s3" "bucket" "" $config)) -}}
{{- fail "loadgen.secrets.corpus has the keys of a bucket that is not named: set loadgen.config.corpus.s3.endpoint and loadgen.config.corpus.s3.bucket" -}}
{{- end -}}
{{- if and .Values.prometheus.create .Values.prometheus.url -}}
{{- fail "prometheus.create and prometheus.url are both set: leave out the URL, or use the Prometheus that is there" -}}
{{- end -}}
{{- if and .Values.grafana.enabled .Values.grafana.existing.enabled -}}
{{- fail "grafana.existing.enabled is for a Grafana that is there: set grafana.enabled to false with it" -}}
{{- end -}}
{{- if and (or .Values.grafana.enabled .Values.grafana.existing.enabled) (not (include "kvbooth.loadgen.url" .)) -}}
{{- fail "Grafana has no load generator: set loadgen.enabled to true, or grafana.loadgenUrl and loadgen.token.existingSecret to those of one that is there" -}}
{{- end -}}
{{- if and .Values.grafana.loadgenUrl .Values.grafana.enabled (not .Values.loadgen.token.existingSecret) -}}
{{- fail "grafana.loadgenUrl needs the token of that load generator: set loadgen.token.existingSecret to a Secret that has it" -}}
{{- end -}}
{{- include "kvbooth.members.check" . -}}
{{- if .Values.gateway.enabled -}}
{{- if not .Values.gateway.host -}}
{{- fail "gateway.host is empty: set it to the host name under which the booth is reached, since the load generator answers to no other" -}}
{{- end -}}
{{- if not (or .Values.gateway.className .Values.gateway.parentRef.name) -}}
{{- fail "gateway.className is empty: set it to a GatewayClass (kubectl get gatewayclass), or gateway.parentRef.name to a Gateway that is there" -}}
{{- end -}}
{{- if and .Values.gateway.exposeTarget (not (include "kvbooth.serving.name" .)) -}}
{{- fail "gateway.exposeTarget shows the frontend of a DynamoGraphDeployment: set serving.name or serving.create" -}}
{{- end -}}
{{- end -}}
{{- end -}}
