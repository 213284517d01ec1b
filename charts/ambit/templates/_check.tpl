{{- /* What the schema cannot say, and what --skip-schema-validation must not let through: without a file, Helm would install
       nothing and call it a success. */ -}}
{{- define "ambit.check" -}}
{{- if not (.Files.Get (printf "files/%s.yaml" .Values.profile)) -}}
{{- fail (printf "profile is %q; give cluster, delegated or namespaced" .Values.profile) -}}
{{- end -}}
{{- if and (eq .Values.profile "namespaced") .Values.defaultServiceAccount -}}
{{- fail "defaultServiceAccount cannot be given with profile=namespaced: Ambit writes as nobody but itself there" -}}
{{- end -}}
{{- with .Values.namespacedInstalls -}}
{{- if and .enabled (not $.Values.operatorGroups.enabled) -}}
{{- fail "namespacedInstalls.enabled serves OLM's kinds, and operatorGroups.enabled=false leaves them to OLM; choose one" -}}
{{- end -}}
{{- if and .enabled (not .serviceAccounts) -}}
{{- fail "namespacedInstalls.serviceAccounts is empty, so nothing could be installed; name the accounts that install" -}}
{{- end -}}
{{- end -}}
{{- $scheme := include "ambit.metricsScheme" . -}}
{{- $loopback := and .Values.metrics.secure (eq .Values.profile "namespaced") -}}
{{- with .Values.metrics -}}
{{- if and $loopback (or .service.enabled .podMonitor.enabled .serviceMonitor.enabled) -}}
{{- fail "metrics in profile=namespaced can be scraped with metrics.secure=false alone: Ambit may not ask there who may read them" -}}
{{- end -}}
{{- if and .certificate.secretName (ne $scheme "https") -}}
{{- fail "metrics.certificate is for metrics over TLS, which are off with metrics.secure=false and profile=namespaced" -}}
{{- end -}}
{{- if and .podMonitor.enabled (eq $scheme "https") (not .token.secretName) -}}
{{- fail "metrics.podMonitor needs metrics.token.secretName: unlike a ServiceMonitor, it cannot use Prometheus' own token" -}}
{{- end -}}
{{- if and .serviceMonitor.enabled (not .service.enabled) -}}
{{- fail "metrics.serviceMonitor needs metrics.service.enabled=true: it finds the pods by the Service" -}}
{{- end -}}
{{- if and .serviceMonitor.enabled .podMonitor.enabled -}}
{{- fail "metrics.podMonitor and metrics.serviceMonitor would scrape everything twice; enable one" -}}
{{- end -}}
{{- end -}}
{{- end -}}
