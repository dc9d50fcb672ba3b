{{- define "crema.name" -}}
{{- if contains "crema" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-crema{{ end }}
{{- end }}

{{- define "crema.labels" -}}
app.kubernetes.io/name: crema
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "crema.image" -}}
{{ required "image.repository: name an image that has crema's programs" .Values.image.repository }}:{{ .Values.image.tag }}
{{- end }}

{{- define "crema.endpoint" -}}
tcp://{{ include "crema.name" . }}-coordinator-0.{{ include "crema.name" . }}-coordinator:{{ .Values.coordinator.port }}
{{- end }}

{{- define "crema.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  {{- toYaml .Values.securityContext | nindent 2 }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "crema.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
{{- end }}

{{/* Takes a list: the root, and coordinator or worker. */}}
{{- define "crema.keysContainer" -}}
{{- $root := index . 0 -}}
- name: keys
  image: {{ include "crema.image" $root | quote }}
  imagePullPolicy: {{ $root.Values.image.pullPolicy }}
  command: [bash, /scripts/keys.sh, {{ index . 1 }}]
  securityContext:
    {{- include "crema.containerSecurity" $root | nindent 4 }}
  volumeMounts:
    - {name: keys, mountPath: /keys}
    - {name: secret, mountPath: /secret, readOnly: true}
    - {name: scripts, mountPath: /scripts, readOnly: true}
{{- end }}

{{- define "crema.volumes" -}}
{{- $root := index . 0 -}}
{{- $existing := ternary $root.Values.keys.existingCoordinator $root.Values.keys.existingWorker (eq (index . 1) "coordinator") -}}
- name: secret
  secret:
    secretName: {{ $existing | default (printf "%s-%s-keys" (include "crema.name" $root) (index . 1)) }}
    defaultMode: 0400
- name: keys
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
- name: scripts
  configMap:
    name: {{ include "crema.name" $root }}-scripts
- name: job
  configMap:
    name: {{ include "crema.name" $root }}-job
- name: tmp
  emptyDir: {}
{{- with $root.Values.data.volume }}
- name: data
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "crema.mounts" -}}
- {name: keys, mountPath: /keys}
- {name: scripts, mountPath: /scripts, readOnly: true}
- {name: job, mountPath: /job, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- if .Values.data.volume }}
- {name: data, mountPath: {{ .Values.data.mountPath | quote }}, readOnly: true}
{{- end }}
{{- end }}

{{- define "crema.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
