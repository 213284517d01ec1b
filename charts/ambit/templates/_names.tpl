{{- /* Last what selects the pods, so that no value takes its place. */ -}}
{{- define "ambit.labels" -}}
{{- $ours := dict "app.kubernetes.io/name" "ambit" "app.kubernetes.io/part-of" "ambit" -}}
{{- toYaml (merge $ours .Values.extraLabels) -}}
{{- end -}}

{{- /* What every optional object has. Called with the root, a name, and further labels. */ -}}
{{- define "ambit.metadata" -}}
{{- $root := index . 0 -}}
name: {{ index . 1 }}
namespace: {{ quote $root.Release.Namespace }}
labels: {{ merge (fromYaml (include "ambit.labels" $root)) (index . 2) | toYaml | nindent 2 }}
{{- end -}}

{{- define "ambit.image" -}}
{{- $pin := "" -}}
{{- if and .Values.image.digest (not .Values.image.tag) -}}
{{- $pin = printf "@%s" .Values.image.digest -}}
{{- end -}}
{{- printf "%s:%s%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) $pin -}}
{{- end -}}
