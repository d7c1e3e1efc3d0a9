{{/*
The Job that fetches the weights. It has no deadline, since how long that takes is up to the network. What another try
does not mend (a token that is refused, a repository that is not there, a volume that is full or cannot be written) ends
it at once: exit 3.
*/}}
{{- define "kvbooth.model.download" -}}
{{- $d := .Values.model.download -}}
backoffLimit: {{ $d.retries }}
podFailurePolicy:
  rules:
    - action: FailJob
      onExitCodes: {containerName: download, operator: In, values: [3]}
    - action: Ignore
      onPodConditions:
        - {type: DisruptionTarget, status: "True"}
template:
  metadata:
    labels: {{ include "kvbooth.selectorLabels" (dict "root" . "component" "model-download") | nindent 6 }}
  spec:
    restartPolicy: Never
    automountServiceAccountToken: false
    {{- with include "kvbooth.pullSecrets" . }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with $d.nodeSelector }}
    nodeSelector: {{ toYaml . | nindent 6 }}
    {{- end }}
    {{- with $d.tolerations }}
    tolerations: {{ toYaml . | nindent 6 }}
    {{- end }}
    securityContext: {{ include "kvbooth.dynamo.podSecurity" . | nindent 6 }}
    containers:
      - name: download
        image: {{ default (include "kvbooth.frontend.image" .) $d.image }}
        imagePullPolicy: {{ .Values.image.pullPolicy }}
        command: [python3, /script/download.py]
        args:
          - --to=/models
          - --workers={{ $d.workers }}
          {{- range $d.ignore }}
          - --ignore={{ . }}
          {{- end }}
          {{- if $d.verify }}
          - --verify
          {{- end }}
          {{- range include "kvbooth.model.repos" . | fromJsonArray }}
          - {{ .repo }}@{{ .revision }}
          {{- end }}
        env:
          - name: HF_ENDPOINT
            value: {{ $d.endpoint }}
          {{- with $d.token.secret }}
          - name: HF_TOKEN
            valueFrom:
              secretKeyRef:
                name: {{ . }}
                key: {{ $d.token.key }}
          {{- end }}
        resources: {{ toYaml $d.resources | nindent 10 }}
        securityContext: {{ include "kvbooth.containerSecurity" . | nindent 10 }}
        volumeMounts:
          - name: models
            mountPath: /models
          - name: script
            mountPath: /script
            readOnly: true
    volumes:
      - name: models
        persistentVolumeClaim:
          claimName: {{ include "kvbooth.model.claim" . }}
      - name: script
        configMap:
          name: {{ include "kvbooth.fullname" . }}-download
{{- end -}}
