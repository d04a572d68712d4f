{{- define "engine.labels" -}}
{{ include "engine.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "engine.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* The whole of engine.toml. */}}
{{- define "engine.config" -}}
{{ .Values.config | trimSuffix "\n" }}
{{- if .Values.tls.secretName }}

[tls]
certificate = "/etc/trimtab-tls/tls.crt"
key = "/etc/trimtab-tls/tls.key"
{{- if .Values.tls.clients }}
clients = "/etc/trimtab-tls/ca.crt"
{{- end }}
{{- end }}
{{- end }}
