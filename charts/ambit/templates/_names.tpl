{{- /* Last what selects the pods, so that no value takes its place. */ -}}
{{- define "ambit.labels" -}}
{{- $ours := dict "app.kubernetes.io/name" "ambit" "app.kubernetes.io/part-of" "ambit" -}}
{{- toYaml (merge $ours (.Values.extraLabels | default dict)) -}}
{{- end -}}

{{- /* What every optional object has. Called with the root, a name, and further labels, which are for this one object, and so count
       for more than those of all. */ -}}
{{- define "ambit.metadata" -}}
{{- $root := index . 0 -}}
{{- $ours := pick (fromYaml (include "ambit.labels" $root)) "app.kubernetes.io/name" "app.kubernetes.io/part-of" -}}
name: {{ index . 1 }}
namespace: {{ quote $root.Release.Namespace }}
labels: {{ merge $ours (index . 2 | default dict) ($root.Values.extraLabels | default dict) | toYaml | nindent 2 }}
{{- end -}}

{{- define "ambit.image" -}}
{{- $pin := "" -}}
{{- if and .Values.image.digest (not .Values.image.tag) -}}
{{- $pin = printf "@%s" .Values.image.digest -}}
{{- end -}}
{{- printf "%s:%s%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) $pin -}}
{{- end -}}

{{- /* How metrics are served. In the profile namespaced Ambit may not ask who may read them, so that without secure=false they are
       for those alone who may forward a port of the pod. */ -}}
{{- define "ambit.metricsScheme" -}}
{{- if and .Values.metrics.secure (ne .Values.profile "namespaced") }}https{{ else }}http{{ end -}}
{{- end -}}

{{- define "ambit.metricsPort" -}}
{{- if eq (include "ambit.metricsScheme" .) "https" }}8443{{ else }}8080{{ end -}}
{{- end -}}

{{- define "ambit.metricsAddress" -}}
{{- if and .Values.metrics.secure (eq .Values.profile "namespaced") }}127.0.0.1{{ end }}:{{ include "ambit.metricsPort" . }}
{{- end -}}

{{- /* How Prometheus knows that it is Ambit, and by what Ambit knows Prometheus. Called with the root and the monitor's values. */ -}}
{{- define "ambit.scrapes" -}}
{{- $root := index . 0 -}}
{{- $monitor := index . 1 -}}
interval: {{ $monitor.interval }}
# The label namespace is the scope's, and not the one that Ambit runs in.
honorLabels: true
scheme: {{ include "ambit.metricsScheme" $root }}
path: /metrics
{{- if eq (include "ambit.metricsScheme" $root) "https" }}
{{- with $root.Values.metrics.certificate.secretName }}
tlsConfig:
  serverName: ambit-metrics.{{ $root.Release.Namespace }}.svc
  ca:
    secret:
      name: {{ . }}
      key: ca.crt
{{- else }}
tlsConfig:
  # Ambit signs its certificate itself when it starts.
  insecureSkipVerify: true
{{- end }}
{{- with $root.Values.metrics.token }}
{{- if .secretName }}
authorization:
  credentials:
    name: {{ .secretName }}
    key: {{ .key }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
