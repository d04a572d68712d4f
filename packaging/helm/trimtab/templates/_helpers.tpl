{{- define "trimtab.labels" -}}
app.kubernetes.io/name: trimtab
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "trimtab.selector" -}}
app.kubernetes.io/name: trimtab
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
