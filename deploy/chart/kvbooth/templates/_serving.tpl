{{/*
What the serving cluster's objects are made of. The root context is "root" wherever a helper takes more than that.
*/}}

{{/* Major and minor number of the Dynamo version as one number, such as 1006 for 1.6.1. */}}
{{- define "kvbooth.dynamo.number" -}}
{{- $v := semver .Values.serving.dynamo.version -}}
{{- add (mul $v.Major 1000) $v.Minor -}}
{{- end -}}

{{/* An image of Dynamo: (dict "root" $ "name" "dynamo-frontend" "image" .Values.serving.frontend.image). */}}
{{- define "kvbooth.dynamo.image" -}}
{{- if .image -}}{{ .image }}{{- else -}}
{{ .root.Values.serving.dynamo.registry }}/{{ .name }}:{{ .root.Values.serving.dynamo.version }}
{{- end -}}
{{- end -}}

{{- define "kvbooth.frontend.image" -}}
{{- include "kvbooth.dynamo.image" (dict "root" . "name" "dynamo-frontend" "image" .Values.serving.frontend.image) -}}
{{- end -}}

{{- define "kvbooth.worker.image" -}}
{{- $runtime := get (dict "trtllm" "tensorrtllm-runtime" "vllm" "vllm-runtime" "sglang" "sglang-runtime") .Values.serving.engine -}}
{{- include "kvbooth.dynamo.image" (dict "root" . "name" $runtime "image" .Values.serving.worker.image) -}}
{{- end -}}

{{/* The name that clients ask for. */}}
{{- define "kvbooth.model.servedName" -}}
{{- default .Values.model.repo .Values.model.servedName -}}
{{- end -}}

{{/* Where a repository's files lie, for whoever mounts the volume at /models: (dict "repo" "nvidia/X"). */}}
{{- define "kvbooth.model.dir" -}}
/models/{{ base .repo }}
{{- end -}}

{{- define "kvbooth.model.claim" -}}
{{- default .Values.model.volume.claimName .Values.model.volume.existingClaim -}}
{{- end -}}

{{/* The speculations that some worker may run with, as a JSON list: the first one's, and those that can be switched to. */}}
{{- define "kvbooth.speculations" -}}
{{- $all := list .Values.serving.speculation -}}
{{- if .Values.serving.create -}}{{- $all = concat $all .Values.serving.variants -}}{{- end -}}
{{- $all | uniq | sortAlpha | toJson -}}
{{- end -}}

{{/* The repositories that the volume must have, as a JSON list of {repo, revision, dir}. */}}
{{- define "kvbooth.model.repos" -}}
{{- $all := list (dict "repo" .Values.model.repo "revision" .Values.model.revision "dir" (base .Values.model.repo)) -}}
{{- range include "kvbooth.speculations" . | fromJsonArray -}}
{{- if ne . "off" -}}
{{- $m := get $.Values.model . -}}
{{- $all = append $all (dict "repo" $m.repo "revision" $m.revision "dir" (base $m.repo)) -}}
{{- end -}}
{{- end -}}
{{- $all | toJson -}}
{{- end -}}

{{/*
What the engine is started with: (dict "root" $ "speculation" "off"), as a JSON list. Dynamo's own part of it is
checked against the parsers of Dynamo 1.6.1 by a test. The engines' part is theirs: it is as their documentation says.
*/}}
{{- define "kvbooth.worker.args" -}}
{{- include (printf "kvbooth.worker.args.%s" .root.Values.serving.engine) . -}}
{{- end -}}

{{/* TensorRT-LLM's options that have no flag go into --override-engine-args, so that the arguments alone make a variant. */}}
{{- define "kvbooth.worker.args.trtllm" -}}
{{- $s := .root.Values.serving -}}
{{- $engine := dict
  "enable_chunked_prefill" true
  "disable_overlap_scheduler" false
  "kv_cache_config" (dict "dtype" $s.kvCacheType "enable_block_reuse" true "free_gpu_memory_fraction" $s.memoryFraction "tokens_per_block" $s.blockSize) -}}
{{- if eq .speculation "draft" -}}
{{- /* TensorRT-LLM documents drafts by a model of its own without the overlap scheduler. */ -}}
{{- $_ := set $engine "disable_overlap_scheduler" true -}}
{{- $_ := set $engine "speculative_config" (dict "decoding_type" "Draft_Target" "max_draft_len" .root.Values.model.draft.length "speculative_model" (include "kvbooth.model.dir" .root.Values.model.draft)) -}}
{{- else if eq .speculation "eagle3" -}}
{{- /* Heads inside the engine ("one model") are the default of older versions; 1.3.0rc27 and later know nothing else, and refuse eagle3_one_model. */ -}}
{{- $_ := set $engine "speculative_config" (dict "decoding_type" "Eagle3" "max_draft_len" .root.Values.model.eagle3.length "speculative_model" (include "kvbooth.model.dir" .root.Values.model.eagle3)) -}}
{{- end -}}
{{- $engine = mergeOverwrite $engine (deepCopy $s.engineOptions) -}}
{{- $args := list
  "--model-path" (include "kvbooth.model.dir" .root.Values.model)
  "--served-model-name" (include "kvbooth.model.servedName" .root)
  "--tensor-parallel-size" (int $s.tensorParallel | toString)
  "--max-num-tokens" (int $s.maxTokens | toString)
  "--max-batch-size" (int $s.maxBatch | toString)
  "--kv-block-size" (int $s.blockSize | toString)
  "--override-engine-args" (toJson $engine) -}}
{{- $version := include "kvbooth.dynamo.number" .root | int -}}
{{- if lt $version 1003 -}}
{{- $args = append $args "--publish-events-and-metrics" -}}
{{- else -}}
{{- $args = append $args "--publish-kv-events" -}}
{{- if ge $version 1006 -}}{{- $args = append $args "--publish-metrics" -}}{{- end -}}
{{- end -}}
{{- concat $args $s.extraArgs | toJson -}}
{{- end -}}

{{- define "kvbooth.worker.args.vllm" -}}
{{- $s := .root.Values.serving -}}
{{- $args := list
  "--model" (include "kvbooth.model.dir" .root.Values.model)
  "--served-model-name" (include "kvbooth.model.servedName" .root)
  "--tensor-parallel-size" (int $s.tensorParallel | toString)
  "--max-num-batched-tokens" (int $s.maxTokens | toString)
  "--max-num-seqs" (int $s.maxBatch | toString)
  "--block-size" (int $s.blockSize | toString)
  "--kv-cache-dtype" $s.kvCacheType
  "--gpu-memory-utilization" (toString $s.memoryFraction)
  "--enable-prefix-caching"
  "--enable-chunked-prefill"
  "--kv-events-config" (dict "enable_kv_cache_events" true "endpoint" "tcp://*:20080" "publisher" "zmq" "topic" "kv-events" | toJson) -}}
{{- if ne .speculation "off" -}}
{{- $m := get .root.Values.model .speculation -}}
{{- $method := get (dict "draft" "draft_model" "eagle3" "eagle3") .speculation -}}
{{- $args = concat $args (list "--speculative-config" (dict "method" $method "model" (include "kvbooth.model.dir" $m) "num_speculative_tokens" $m.length | toJson)) -}}
{{- end -}}
{{- concat $args $s.extraArgs | toJson -}}
{{- end -}}

{{- define "kvbooth.worker.args.sglang" -}}
{{- $s := .root.Values.serving -}}
{{- $args := list
  "--model-path" (include "kvbooth.model.dir" .root.Values.model)
  "--served-model-name" (include "kvbooth.model.servedName" .root)
  "--tp-size" (int $s.tensorParallel | toString)
  "--chunked-prefill-size" (int $s.maxTokens | toString)
  "--max-prefill-tokens" (int $s.maxTokens | toString)
  "--max-running-requests" (int $s.maxBatch | toString)
  "--page-size" (int $s.blockSize | toString)
  "--kv-cache-dtype" (ternary "fp8_e4m3" $s.kvCacheType (eq $s.kvCacheType "fp8"))
  "--mem-fraction-static" (toString $s.memoryFraction)
  "--enable-metrics"
  "--kv-events-config" (dict "endpoint" "tcp://*:5557" "publisher" "zmq" "topic" "kv-events" | toJson) -}}
{{- if ne .speculation "off" -}}
{{- $m := get .root.Values.model .speculation -}}
{{- $algorithm := get (dict "draft" "STANDALONE" "eagle3" "EAGLE3") .speculation -}}
{{- /* A chain of n drafts, and not a tree: n steps, one candidate each, and the token that the model itself adds. */ -}}
{{- $args = concat $args (list "--speculative-algorithm" $algorithm "--speculative-draft-model-path" (include "kvbooth.model.dir" $m) "--speculative-num-steps" (int $m.length | toString) "--speculative-eagle-topk" "1" "--speculative-num-draft-tokens" (toString (add $m.length 1))) -}}
{{- end -}}
{{- concat $args $s.extraArgs | toJson -}}
{{- end -}}

{{/*
How the workers run with a speculation: (dict "root" $ "speculation" "off"), as the load generator's driver reads it
(mode.kubernetes.variants_file). KVBOOTH_SPECULATION is read by nobody but this chart, which finds in it what the load
generator has switched to.
*/}}
{{- define "kvbooth.worker.variant" -}}
args: {{ include "kvbooth.worker.args" . | fromJsonArray | toYaml | nindent 2 }}
env:
  - name: KVBOOTH_SPECULATION
    value: {{ .speculation | quote }}
{{- end -}}

{{/* The ConfigMap with the variants, in its key variants.yaml; "" where speculation is not switched. */}}
{{- define "kvbooth.variants.name" -}}
{{- if and .Values.serving.create .Values.serving.variants -}}
{{ include "kvbooth.fullname" . }}-variants
{{- end -}}
{{- end -}}

{{/*
What a graph that is there runs with, as a JSON object of framework, mode, rollout and speculation, each where it is
told; empty where there is no graph, and where the chart is rendered without a cluster: (dict "root" $ "name" "booth").
*/}}
{{- define "kvbooth.serving.inForce" -}}
{{- $found := dict -}}
{{- $there := lookup "nvidia.com/v1beta1" "DynamoGraphDeployment" (include "kvbooth.serving.namespace" .root) .name -}}
{{- if $there -}}
{{- $_ := set $found "framework" (dig "spec" "backendFramework" "" $there) -}}
{{- range dig "spec" "env" list $there -}}
{{- if eq .name "DYN_ROUTER_MODE" -}}{{- $_ := set $found "mode" .value -}}{{- end -}}
{{- if eq .name "KVBOOTH_ROLLOUT" -}}{{- $_ := set $found "rollout" .value -}}{{- end -}}
{{- end -}}
{{- range dig "spec" "components" list $there -}}
{{- range dig "podTemplate" "spec" "containers" list . -}}
{{- range .env -}}
{{- if eq .name "KVBOOTH_SPECULATION" -}}{{- $_ := set $found "speculation" .value -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}

{{/* What no schema can say. */}}
{{- define "kvbooth.serving.check" -}}
{{- $s := .Values.serving -}}
{{- if not (regexMatch "^[0-9]+\\.[0-9]+\\.[0-9]+([-+.].+)?$" $s.dynamo.version) -}}
{{- fail (printf "serving.dynamo.version is %q: allowed is a version of Dynamo such as 1.6.1" $s.dynamo.version) -}}
{{- end -}}
{{- if lt (include "kvbooth.dynamo.number" . | int) 1002 -}}
{{- fail (printf "serving.dynamo.version is %s: allowed is 1.2 or later: older operators, such as that of the recorded runs (0.9.0), do not know nvidia.com/v1beta1, which the chart writes. Deploy such a Dynamo with its own files, and use it with serving.create=false: the load generator switches it, too" $s.dynamo.version) -}}
{{- end -}}
{{- if and .Capabilities.APIVersions (not (.Capabilities.APIVersions.Has "nvidia.com/v1beta1/DynamoGraphDeployment")) (.Capabilities.APIVersions.Has "nvidia.com/v1alpha1/DynamoGraphDeployment") -}}
{{- fail "the cluster knows DynamoGraphDeployment as nvidia.com/v1alpha1 only: install Dynamo's platform 1.2 or later, which has v1beta1, or set serving.create=false and use the Dynamo that is there" -}}
{{- end -}}
{{- range include "kvbooth.speculations" . | fromJsonArray -}}
{{- if eq . "eagle3" -}}
{{- if ne $.Values.model.repo $.Values.model.eagle3.target -}}
{{- fail (printf "speculation eagle3: the heads %s are made for %s, and model.repo is %s. Add -f values-eagle3.yaml, or set model.eagle3.repo and model.eagle3.target to heads for that model" $.Values.model.eagle3.repo $.Values.model.eagle3.target $.Values.model.repo) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $s.variants (not (has $s.speculation $s.variants)) -}}
{{- fail (printf "serving.variants is %v without serving.speculation %q: name the one that the workers start with, too, or there is no way back to it" $s.variants $s.speculation) -}}
{{- end -}}
{{- if and $s.engineOptions (ne $s.engine "trtllm") -}}
{{- fail (printf "serving.engineOptions is read with engine trtllm only, and serving.engine is %s: its flags go into serving.extraArgs" $s.engine) -}}
{{- end -}}
{{- range $s.env -}}
{{- if has .name (list "DYN_ROUTER_MODE" "DYN_KV_CACHE_BLOCK_SIZE" "KVBOOTH_SPECULATION" "KVBOOTH_ROLLOUT") -}}
{{- fail (printf "serving.env has %s, which the chart sets itself: use serving.mode, serving.blockSize or serving.speculation" .name) -}}
{{- end -}}
{{- end -}}
{{- if mod (int $s.tensorParallel) (int $s.nodes) -}}
{{- fail (printf "serving.nodes is %d: allowed is a number by which serving.tensorParallel, %d, can be divided" (int $s.nodes) (int $s.tensorParallel)) -}}
{{- end -}}
{{- if and (not $s.grove) (or $s.kaiQueue (gt (int $s.nodes) 1)) -}}
{{- fail "serving.kaiQueue and serving.nodes need Grove: set serving.grove to true, or leave them out" -}}
{{- end -}}
{{- $names := list (include "kvbooth.serving.name" .) (include "kvbooth.twin.name" .) -}}
{{- if eq (index $names 0) (index $names 1) -}}
{{- fail (printf "serving.twin.name is %q, the name of the first graph: allowed is another one, or none" (index $names 1)) -}}
{{- end -}}
{{- if $s.grove -}}
{{- range $names -}}
{{- if gt (add (len .) 8) 45 -}}
{{- fail (printf "the graph's name %s is too long for Grove, which allows 45 characters for it and a component's name together: set serving.name and serving.twin.name to at most 37 characters" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Pod Security "restricted" for Dynamo's images, whose user "dynamo" has the number 1000 and group 0. */}}
{{- define "kvbooth.dynamo.podSecurity" -}}
{{ include "kvbooth.podSecurity" . }}
runAsUser: 1000
runAsGroup: 0
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
{{- end -}}

{{/* The engines write compiled kernels, caches and sockets beside their code: their root file system stays writable. */}}
{{- define "kvbooth.dynamo.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
{{- end -}}

{{/* One graph: (dict "root" $ "name" "booth" "mode" "kv" "workers" 3 "component" "serving"). */}}
{{- define "kvbooth.serving.graph" -}}
{{- $ := .root -}}
{{- $s := $.Values.serving -}}
{{- $there := include "kvbooth.serving.inForce" . | fromJson -}}
{{- with $there.framework -}}
{{- if ne . $s.engine -}}
{{- fail (printf "serving.engine is %s, and the graph that is there runs %s: Dynamo cannot change that. Delete the graph first: helm upgrade with serving.create=false, then with serving.create=true" $s.engine .) -}}
{{- end -}}
{{- end -}}
{{- $mode := .mode -}}
{{- $speculation := $s.speculation -}}
{{- if not $s.resetMode -}}
{{- $mode = default $mode $there.mode -}}
{{- if has (default "" $there.speculation) $s.variants -}}{{- $speculation = $there.speculation -}}{{- end -}}
{{- end -}}
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata:
  name: {{ .name }}
  namespace: {{ include "kvbooth.serving.namespace" $ }}
  labels: {{ include "kvbooth.labels" (dict "root" $ "component" .component) | nindent 4 }}
  annotations:
    nvidia.com/enable-grove: {{ $s.grove | quote }}
    {{- with $s.kaiQueue }}
    nvidia.com/kai-scheduler-queue: {{ . | quote }}
    {{- end }}
spec:
  backendFramework: {{ $s.engine }}
  env:
    - name: DYN_ROUTER_MODE
      value: {{ $mode }}
    {{- with $there.rollout }}
    - name: KVBOOTH_ROLLOUT
      value: {{ . | quote }}
    {{- end }}
    - name: HF_HUB_OFFLINE
      value: "1"
    - name: TRANSFORMERS_OFFLINE
      value: "1"
    {{- with $s.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  components:
    - name: Frontend
      type: frontend
      replicas: {{ $s.frontend.replicas }}
      {{- if $s.frontend.image }}
      runtimeVersionOverride: {{ include "kvbooth.dynamo.release" $ | quote }}
      {{- end }}
      podTemplate:
        metadata:
          labels: {{ include "kvbooth.selectorLabels" (dict "root" $ "component" (printf "%s-frontend" .component)) | nindent 12 }}
        spec:
          {{- include "kvbooth.dynamo.pod" (dict "root" $ "of" $s.frontend "image" (include "kvbooth.frontend.image" $)) | nindent 10 }}
          containers:
            - name: main
              image: {{ include "kvbooth.frontend.image" $ }}
              imagePullPolicy: {{ $.Values.image.pullPolicy }}
              env:
                - name: DYN_KV_CACHE_BLOCK_SIZE
                  value: {{ $s.blockSize | quote }}
              resources: {{ toYaml $s.frontend.resources | nindent 16 }}
              securityContext: {{ include "kvbooth.dynamo.containerSecurity" $ | nindent 16 }}
              volumeMounts:
                - name: models
                  mountPath: /models
                  readOnly: true
    - name: Worker
      type: worker
      replicas: {{ .workers }}
      {{- if gt (int $s.nodes) 1 }}
      multinode: {nodeCount: {{ int $s.nodes }}}
      {{- end }}
      {{- if $s.worker.image }}
      runtimeVersionOverride: {{ include "kvbooth.dynamo.release" $ | quote }}
      {{- end }}
      sharedMemorySize: {{ $s.worker.sharedMemory }}
      podTemplate:
        metadata:
          {{- if $s.exactGPUs }}
          annotations:
            nvidia.com/deployment-rolling-update-max-surge: "0"
            nvidia.com/deployment-rolling-update-max-unavailable: "100%"
          {{- end }}
          labels: {{ include "kvbooth.selectorLabels" (dict "root" $ "component" (printf "%s-worker" .component)) | nindent 12 }}
        spec:
          {{- include "kvbooth.dynamo.pod" (dict "root" $ "of" $s.worker "image" (include "kvbooth.worker.image" $)) | nindent 10 }}
          containers:
            - name: main
              image: {{ include "kvbooth.worker.image" $ }}
              imagePullPolicy: {{ $.Values.image.pullPolicy }}
              command: [python3, -m, dynamo.{{ $s.engine }}]
              {{- include "kvbooth.worker.variant" (dict "root" $ "speculation" $speculation) | nindent 14 }}
              resources:
                {{- $gpu := dict "nvidia.com/gpu" (div (int $s.tensorParallel) (int $s.nodes) | toString) }}
                {{- toYaml (dict "limits" (merge (dict) $gpu $s.worker.resources.limits) "requests" (merge (dict) $gpu $s.worker.resources.requests)) | nindent 16 }}
              securityContext: {{ include "kvbooth.dynamo.containerSecurity" $ | nindent 16 }}
              volumeMounts:
                - name: models
                  mountPath: /models
                  readOnly: true
{{- end -}}

{{/* Major, minor and patch number alone, as the operator wants it beside an image whose tag is no version of Dynamo. */}}
{{- define "kvbooth.dynamo.release" -}}
{{- $v := semver .Values.serving.dynamo.version -}}
{{ $v.Major }}.{{ $v.Minor }}.{{ $v.Patch }}
{{- end -}}

{{/*
What the pods of Dynamo share: (dict "root" $ "of" .Values.serving.worker "image" "…"). Ports, /dev/shm and probes are the
operator's: a worker has two hours to start, and is live and ready by its system port. Where the chart downloads the
weights, the pods wait for them, since an engine without them only fails.
*/}}
{{- define "kvbooth.dynamo.pod" -}}
{{- with include "kvbooth.pullSecrets" .root -}}
{{ . }}
{{ end -}}
{{- with .of.nodeSelector -}}
nodeSelector: {{ toYaml . | nindent 2 }}
{{ end -}}
{{- with .of.tolerations -}}
tolerations: {{ toYaml . | nindent 2 }}
{{ end -}}
{{- if .root.Values.model.create -}}
initContainers:
  - name: weights
    image: {{ .image }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    command: [python3, -c]
    args:
      - |
        import os, sys, time
        missing = sys.argv[1:]
        while missing := [path for path in missing if not os.path.exists(path)]:
            print("waiting for the download of", *map(os.path.dirname, missing), flush=True)
            time.sleep(10)
      {{- range include "kvbooth.model.repos" .root | fromJsonArray }}
      - /models/{{ .dir }}/.kvbooth.json
      {{- end }}
    resources:
      limits: {cpu: 200m, memory: 128Mi, ephemeral-storage: 64Mi}
      requests: {cpu: 10m, memory: 32Mi, ephemeral-storage: 16Mi}
    securityContext: {{ include "kvbooth.containerSecurity" .root | nindent 6 }}
    volumeMounts:
      - name: models
        mountPath: /models
        readOnly: true
{{ end -}}
securityContext: {{ include "kvbooth.dynamo.podSecurity" .root | nindent 2 }}
volumes:
  - name: models
    persistentVolumeClaim:
      claimName: {{ include "kvbooth.model.claim" .root }}
      readOnly: true
{{- end -}}
