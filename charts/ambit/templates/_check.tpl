{{- /* What the schema cannot say, and what --skip-schema-validation must not let through: without a file, Helm would install
       nothing and call it a success. */ -}}
{{- define "ambit.check" -}}
{{- if not (.Files.Get (printf "files/%s.yaml" .Values.profile)) -}}
{{- fail (printf "profile is %q; give cluster, delegated or namespaced" .Values.profile) -}}
{{- end -}}
{{- if and (eq .Values.profile "namespaced") .Values.defaultServiceAccount -}}
{{- fail "defaultServiceAccount cannot be given with profile=namespaced: Ambit writes as nobody but itself there" -}}
{{- end -}}
{{- with .Values.metrics -}}
{{- if and .serviceMonitor.enabled (not .service.enabled) -}}
{{- fail "metrics.serviceMonitor needs metrics.service.enabled=true: it finds the pods by the Service" -}}
{{- end -}}
{{- if and .serviceMonitor.enabled .podMonitor.enabled -}}
{{- fail "metrics.podMonitor and metrics.serviceMonitor would scrape everything twice; enable one" -}}
{{- end -}}
{{- end -}}
{{- end -}}
