{{/* Names. Cut at 50 characters, so that what is put behind them fits into a label. */}}
{{- define "kvbooth.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the pods of a component: (dict "root" $ "component" "loadgen"). */}}
{{- define "kvbooth.selectorLabels" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* All labels of an object of a component. */}}
{{- define "kvbooth.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{ include "kvbooth.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: kvbooth
{{- end -}}

{{/* An image of our own: (dict "root" $ "image" .Values.loadgen.image). */}}
{{- define "kvbooth.image" -}}
{{- with .root.Values.image.registry -}}{{ . }}/{{- end -}}
{{ .image.repository }}:{{ default .root.Chart.AppVersion .image.tag }}
{{- end -}}

{{/* What images are pulled with, "" where nothing is needed. */}}
{{- define "kvbooth.pullSecrets" -}}
{{- with .Values.image.pullSecrets -}}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* The DynamoGraphDeployment: its name, "" where none is known, its namespace, and its frontend, whose Service the operator names. */}}
{{- define "kvbooth.serving.name" -}}
{{- if .Values.serving.name -}}{{ .Values.serving.name }}{{- else if .Values.serving.create -}}{{ .Release.Name }}{{- end -}}
{{- end -}}

{{- define "kvbooth.serving.namespace" -}}
{{- default .Release.Namespace .Values.serving.namespace -}}
{{- end -}}

{{- define "kvbooth.serving.url" -}}
{{- with include "kvbooth.serving.name" . -}}
http://{{ . }}-frontend.{{ include "kvbooth.serving.namespace" $ }}.svc:8000
{{- end -}}
{{- end -}}

{{/* The same of the twin, "" where there is none. */}}
{{- define "kvbooth.twin.name" -}}
{{- if and .Values.serving.twin.enabled (include "kvbooth.serving.name" .) -}}
{{- default (printf "%s-twin" (include "kvbooth.serving.name" .)) .Values.serving.twin.name -}}
{{- end -}}
{{- end -}}

{{- define "kvbooth.twin.url" -}}
{{- with include "kvbooth.twin.name" . -}}
http://{{ . }}-frontend.{{ include "kvbooth.serving.namespace" $ }}.svc:8000
{{- end -}}
{{- end -}}

{{/* What Pod Security "restricted" asks of a pod, and of a container. */}}
{{- define "kvbooth.podSecurity" -}}
runAsNonRoot: true
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "kvbooth.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
