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
{{- if and .enabled (has "ambit" .serviceAccounts) -}}
{{- fail "namespacedInstalls.serviceAccounts has ambit, Ambit's own account, which no OperatorGroup may name; take another" -}}
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
{{- $ofKubernetes := list "catch-all" "exempt" "global-default" "leader-election" "node-high" "system" "workload-high"
    "workload-low" -}}
{{- with .Values.flowSchema.priorityLevel -}}
{{- if and $.Values.flowSchema.enabled .create (has .name $ofKubernetes) -}}
{{- fail (printf "flowSchema.priorityLevel.name=%s is a level of Kubernetes' own, which is there; name another one" .name) -}}
{{- end -}}
{{- end -}}
{{- include "ambit.checkArguments" . -}}
{{- include "ambit.checkDefinition" . -}}
{{- include "ambit.checkUnguarded" . -}}
{{- end -}}

{{- /* What names no account is not served in delegated, and no policy asks who wrote it; cluster serves it with Ambit's own rights.
       Once the policy is there, whoever looks sees all of it. */ -}}
{{- define "ambit.checkUnguarded" -}}
{{- if and .Release.IsUpgrade (eq .Values.profile "cluster") .Values.guard.enabled
    (not (lookup "admissionregistration.k8s.io/v1" "ValidatingAdmissionPolicy" "" "ambit-own-identity")) -}}
{{- $kinds := dict -}}
{{- if not .Values.defaultServiceAccount -}}
{{- $kinds = dict "operator.ibm.com/v1" "NamespaceScope" "namespacescope.ibm.com/v1alpha1" "NamespaceScope" -}}
{{- end -}}
{{- if .Values.operatorGroups.enabled -}}
{{- $_ := set $kinds "operators.coreos.com/v1" "OperatorGroup" -}}
{{- end -}}
{{- range $version, $kind := $kinds -}}
{{- if $.Capabilities.APIVersions.Has (printf "%s/%s" $version $kind) -}}
{{- range dig "items" (list) (lookup $version $kind "" "") -}}
{{- if not (or (dig "spec" "serviceAccountName" "" .) (dig "spec" "manualManagement" false .)) -}}
{{- fail (printf "%s %s/%s names no account, so that profile=cluster would serve it with Ambit's own rights, whoever wrote it; install the guard of cluster first, and review what there is: docs/install.md, Another profile" $kind .metadata.namespace .metadata.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Helm leaves a CustomResourceDefinition as it is that is there already. Under that of IBM's operator, a scope has neither a
       condition nor an account that anybody looked at. Whoever has one namespace alone may not read definitions. */ -}}
{{- define "ambit.checkDefinition" -}}
{{- if and .Release.IsInstall (ne .Values.profile "namespaced") -}}
{{- $name := "namespacescopes.operator.ibm.com" -}}
{{- range dig "spec" "versions" (list) (lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name) -}}
{{- if not (hasKey (dig "schema" "openAPIV3Schema" "properties" "spec" "properties" (dict) .) "serviceAccountName") -}}
{{- fail (printf "CustomResourceDefinition %s is not Ambit's, and Helm leaves it as it is; apply Ambit's first: kubectl apply --server-side --force-conflicts -f crds.yaml" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Of a flag that is given twice, the manager takes the later one, and extraArgs come last: they would have the manager do what the
       guard, the rights and the ports, which go by values, know nothing of. */ -}}
{{- define "ambit.checkArguments" -}}
{{- $byValue := dict
    "default-service-account" "set defaultServiceAccount, by which the guard goes, too"
    "require-service-account" "set profile=delegated, which gives it"
    "namespaces" "set profile=namespaced, which gives it and takes further ones"
    "operator-groups" "set operatorGroups.enabled, or namespacedInstalls.enabled with profile=namespaced"
    "olm-namespaces" "set operatorGroups.olmNamespaces"
    "metrics-bind-address" "set metrics.secure, by which the ports go, too"
    "metrics-secure" "set metrics.secure"
    "metrics-cert-dir" "set metrics.certificate.secretName"
    "health-probe-bind-address" "leave it out: the probes of the Deployment go by the chart's"
    "leader-elect" "leave it out: the chart always gives it, since there are two managers during a rollout" -}}
{{- /* What is left, with the values that each takes. A manager that refuses its arguments would only be seen not to start. */ -}}
{{- $duration := "^([0-9]{1,6}([.][0-9]+)?h|[0-9]{1,8}([.][0-9]+)?(ns|us|ms|s|m))+$|^0$" -}}
{{- $name := "([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?|[$][(]OPERATOR_NAMESPACE[)])" -}}
{{- $takes := dict
    "restart-interval" $duration
    "follow-grace" $duration
    "finish-grace" $duration
    "concurrent-writes" "^([1-9][0-9]{0,2}|1000)$"
    "default-scope" "^(true|false)$"
    "kubeconfig" "" -}}
{{- if eq .Values.profile "namespaced" -}}
{{- $_ := set $takes "namespaces" (printf "^%s(,%s)*$" $name $name) -}}
{{- else if .Values.operatorGroups.enabled -}}
{{- $_ := set $takes "operator-groups" "^enabled$" -}}
{{- end -}}
{{- $waiting := "" -}}
{{- range .Values.extraArgs -}}
{{- $argument := toString . -}}
{{- $flag := $argument | splitList "=" | first | trimPrefix "--" -}}
{{- $value := $argument | trimPrefix (printf "--%s=" $flag) -}}
{{- if $waiting -}}
{{- $flag = $waiting -}}
{{- $value = $argument -}}
{{- $waiting = "" -}}
{{- else if not (hasPrefix "--" $argument) -}}
{{- fail (printf "extraArgs has %s, which is no flag of the manager; give --FLAG=VALUE" $argument) -}}
{{- else if and (hasKey $byValue $flag) (not (and (hasKey $takes $flag) (contains "=" $argument))) -}}
{{- fail (printf "extraArgs has --%s; %s" $flag (get $byValue $flag)) -}}
{{- else if not (hasKey $takes $flag) -}}
{{- fail (printf "extraArgs has --%s, which is no flag of the manager; ambit manager --help names them" $flag) -}}
{{- else if contains "=" $argument -}}
{{- else if eq $flag "default-scope" -}}
{{- $value = "true" -}}
{{- else -}}
{{- $waiting = $flag -}}
{{- end -}}
{{- if and (not $waiting) (not (regexMatch (get $takes $flag) $value)) -}}
{{- fail (printf "extraArgs has --%s=%s; %s" $flag $value (get $byValue $flag | default "the manager takes no such value")) -}}
{{- end -}}
{{- end -}}
{{- if $waiting -}}
{{- fail (printf "extraArgs has --%s without a value" $waiting) -}}
{{- end -}}
{{- end -}}
