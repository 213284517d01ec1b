// Package charts tests the Helm chart with Helm itself and with Prometheus' own rule tester. That the chart renders what
// kustomize builds is checked by hack/chart.sh.
package charts

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/report"
)

// tool is a program that make tools and make test build.
func tool(t *testing.T, name string) string {
	t.Helper()

	path, err := filepath.Abs(filepath.Join("..", "bin", "tools", name))
	if err != nil {
		t.Fatal(err)
	}

	if _, err := os.Stat(path); err != nil {
		t.Fatalf("make bin/tools/%s builds what this test needs: %v", name, err)
	}

	return path
}

// render is what Helm says to values.
func render(t *testing.T, values ...string) (string, error) {
	t.Helper()

	args := []string{"template", "ambit", "ambit", "--namespace", "elsewhere", "--kube-version", "1.36"}
	for _, v := range values {
		args = append(args, "--set-json", v)
	}

	return run(t, "helm", args...)
}

// run is what a version of Helm says.
func run(t *testing.T, helm string, args ...string) (string, error) {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), tool(t, helm), args...)
	home := t.TempDir() // What a user has set up for Helm must not matter here.

	cmd.Env = append(os.Environ(), "HELM_CONFIG_HOME="+home, "HELM_CACHE_HOME="+home, "HELM_DATA_HOME="+home)

	out, err := cmd.CombinedOutput()

	return string(out), err
}

// object is the one object of a kind, and what Helm rendered if there is not one.
func object(t *testing.T, rendered, kind, name string) map[string]any {
	t.Helper()

	var found []map[string]any

	for document := range strings.SplitSeq(rendered, "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatalf("Helm renders what is no YAML: %v\n%s", err, document)
		}

		if metadata, _ := o["metadata"].(map[string]any); o["kind"] == kind && metadata["name"] == name {
			found = append(found, o)
		}
	}

	if len(found) != 1 {
		t.Fatalf("Helm renders %d objects %s %s, want one", len(found), kind, name)
	}

	return found[0]
}

// at follows fields and, as "0", items.
func at(value any, path string) any {
	for field := range strings.SplitSeq(path, "/") {
		switch v := value.(type) {
		case map[string]any:
			value = v[field]
		case []any:
			if len(v) == 0 {
				return nil
			}

			value = v[int(field[0]-'0')]
		default:
			return nil
		}
	}

	return value
}

func TestValuesReachWhatTheyAreFor(t *testing.T) {
	for _, row := range []struct{ values, kind, name, path, want string }{
		{`nodeSelector={"disk":"ssd"}`, "Deployment", "ambit", "spec/template/spec/nodeSelector/disk", `"ssd"`},
		{`tolerations=[{"operator":"Exists"}]`, "Deployment", "ambit", "spec/template/spec/tolerations", `[{"operator":"Exists"}]`},
		{`affinity={"nodeAffinity":{"x":1}}`, "Deployment", "ambit", "spec/template/spec/affinity", `{"nodeAffinity":{"x":1}}`},
		{`topologySpreadConstraints=[{"maxSkew":1}]`, "Deployment", "ambit",
			"spec/template/spec/topologySpreadConstraints", `[{"maxSkew":1}]`},
		{`priorityClassName="system-cluster-critical"`, "Deployment", "ambit",
			"spec/template/spec/priorityClassName", `"system-cluster-critical"`},
		{`extraLabels={"team":"rbac"}`, "Deployment", "ambit", "metadata/labels/team", `"rbac"`},
		{`extraLabels={"team":"rbac"}`, "Deployment", "ambit", "spec/template/metadata/labels/team", `"rbac"`},
		{`extraLabels={"team":"rbac"}`, "Deployment", "ambit", "spec/selector/matchLabels", `{"app.kubernetes.io/name":"ambit"}`},
		{`nodeSelector={"disk":"ssd"}`, "Pod", "ambit-test", "spec/nodeSelector/disk", `"ssd"`},
		{`tolerations=[{"operator":"Exists"}]`, "Pod", "ambit-test", "spec/tolerations", `[{"operator":"Exists"}]`},
		{`affinity={"nodeAffinity":{"x":1}}`, "Pod", "ambit-test", "spec/affinity", `{"nodeAffinity":{"x":1}}`},
		{`priorityClassName="system-cluster-critical"`, "Pod", "ambit-test", "spec/priorityClassName", `"system-cluster-critical"`},
		{`image.pullPolicy="Never"`, "Pod", "ambit-test", "spec/containers/0/imagePullPolicy", `"Never"`},
		{`image={"repository":"[fd00::1]:5000/a/b","tag":"v1@sha256:` + strings.Repeat("0", 64) + `"}`, "Pod", "ambit-test",
			"spec/containers/0/image", `"[fd00::1]:5000/a/b:v1@sha256:` + strings.Repeat("0", 64) + `"`},
		{
			`image={"repository":"ambit","tag":"_1.0-A"}`,
			"Deployment", "ambit", "spec/template/spec/containers/0/image", `"ambit:_1.0-A"`,
		},
		{`resources=null`, "Deployment", "ambit", "spec/template/spec/containers/0/resources", `null`},
		{`resources={"requests":{"cpu":0.5,"memory":"1e3"},"limits":{"memory":null,"example.com/gpu":1}}`, "Deployment", "ambit",
			"spec/template/spec/containers/0/resources",
			`{"limits":{"example.com/gpu":1},"requests":{"cpu":0.5,"memory":"1e3"}}`},
		{`resources={"limits":{"cpu":"1"}}`, "Pod", "ambit-test", "spec/containers/0/resources/limits/cpu", `"1"`},
		{`extraLabels={"release":"all"},metrics.rules={"enabled":true,"labels":{"release":"p"}}`, "PrometheusRule", "ambit",
			"metadata/labels/release", `"p"`},
		{`metrics.rules={"enabled":true,"labels":{"app.kubernetes.io/name":"p"}}`, "PrometheusRule", "ambit",
			"metadata/labels", `{"app.kubernetes.io/name":"ambit","app.kubernetes.io/part-of":"ambit"}`},
		{`podAnnotations={"sidecar":"off"}`, "Deployment", "ambit", "spec/template/metadata/annotations/sidecar", `"off"`},
		{`metrics.service.enabled=true`, "Service", "ambit-metrics", "spec/ports/0/targetPort", `"metrics"`},
		{`metrics={"token":{"secretName":"t"},"podMonitor":{"enabled":true,"labels":{"release":"p"}}}`, "PodMonitor", "ambit",
			"metadata/labels/release", `"p"`},
		{`metrics={"secure":false,"podMonitor":{"enabled":true}}`, "PodMonitor", "ambit",
			"spec/podMetricsEndpoints/0/honorLabels", `true`},
		{`metrics={"secure":false,"podMonitor":{"enabled":true}}`, "PodMonitor", "ambit",
			"spec/podMetricsEndpoints/0/scheme", `"http"`},
		{`metrics={"token":{"secretName":"t"},"podMonitor":{"enabled":true}}`, "PodMonitor", "ambit",
			"spec/podMetricsEndpoints/0/authorization/credentials", `{"key":"token","name":"t"}`},
		{`metrics={"service":{"enabled":true},"serviceMonitor":{"enabled":true}}`, "ServiceMonitor", "ambit",
			"spec/endpoints/0/tlsConfig", `{"insecureSkipVerify":true}`},
		{`metrics={"service":{"enabled":true},"serviceMonitor":{"enabled":true},"certificate":{"secretName":"c"}}`, "ServiceMonitor",
			"ambit", "spec/endpoints/0/tlsConfig",
			`{"ca":{"secret":{"key":"ca.crt","name":"c"}},"serverName":"ambit-metrics.elsewhere.svc"}`},
		{`metrics={"secure":false,"service":{"enabled":true}}`, "Service", "ambit-metrics", "spec/ports/0/port", `8080`},
		{`metrics.secure=false`, "Deployment", "ambit", "spec/template/spec/containers/0/ports/0/containerPort", `8080`},
		{`metrics.certificate.secretName="c"`, "Deployment", "ambit", "spec/template/spec/volumes/0/secret/secretName", `"c"`},
		{`metrics.rules.enabled=true`, "PrometheusRule", "ambit", "spec/groups/0/name", `"ambit"`},
		{`metrics.dashboard.enabled=true`, "ConfigMap", "ambit-dashboard", "metadata/labels/grafana_dashboard", `"1"`},
		{`networkPolicy.enabled=true`, "NetworkPolicy", "ambit", "spec/egress", `[{"ports":[{"port":443},{"port":6443}]}]`},
		{`networkPolicy={"enabled":true,"metricsFrom":[{"podSelector":{}}]}`, "NetworkPolicy", "ambit",
			"spec/ingress/0/from", `[{"podSelector":{}}]`},
		{`podDisruptionBudget={"enabled":true,"maxUnavailable":"50%"}`, "PodDisruptionBudget", "ambit", "spec/maxUnavailable", `"50%"`},
		{`flowSchema.enabled=true`, "FlowSchema", "ambit-elsewhere", "spec/priorityLevelConfiguration/name", `"workload-high"`},
		{`flowSchema={"enabled":true,"priorityLevel":{"create":true,"name":"ambit"}}`, "PriorityLevelConfiguration", "ambit",
			"spec/limited/nominalConcurrencyShares", `20`},
		{`flowSchema={"enabled":true,"priorityLevel":{"create":true,"name":"ambit"}}`, "PriorityLevelConfiguration", "ambit",
			"spec/limited/borrowingLimitPercent", `null`},
		{`flowSchema={"enabled":true,"priorityLevel":{"create":true,"name":"ambit","borrowingLimitPercent":0}}`,
			"PriorityLevelConfiguration", "ambit", "spec/limited/borrowingLimitPercent", `0`},
		{`replicas=1`, "Pod", "ambit-test", "spec/containers/0/securityContext/readOnlyRootFilesystem", `true`},
	} {
		rendered, err := render(t, row.values)
		if err != nil {
			t.Errorf("%s: %v\n%s", row.values, err, rendered)

			continue
		}

		got, err := json.Marshal(at(object(t, rendered, row.kind, row.name), row.path))
		if err != nil || string(got) != row.want {
			t.Errorf("with %s, %s %s has %s in %s, want %s (%v)", row.values, row.kind, row.name, got, row.path, row.want, err)
		}
	}
}

// Nothing that needs the definitions of others, and nothing that could keep people out, is there before somebody asks for it.
func TestOptionalObjectsAreOff(t *testing.T) {
	rendered, err := render(t)
	if err != nil {
		t.Fatal(err, rendered)
	}

	for _, kind := range []string{
		"Service", "PodMonitor", "ServiceMonitor", "PrometheusRule", "ConfigMap", "NetworkPolicy", "PodDisruptionBudget",
		"FlowSchema", "PriorityLevelConfiguration",
	} {
		if regexp.MustCompile(`(?m)^kind: ` + kind + `$`).MatchString(rendered) {
			t.Errorf("without values, the chart has a %s", kind)
		}
	}
}

// TestHelm4RendersTheSame: whoever has Helm 4 gets the same objects as with Helm 3, in each profile, with everything asked for.
func TestHelm4RendersTheSame(t *testing.T) {
	for _, values := range []string{
		"profile=cluster", "profile=delegated", "profile=namespaced", "profile=cluster,operatorGroups.enabled=false",
		"metrics.service.enabled=true,metrics.serviceMonitor.enabled=true,metrics.rules.enabled=true,metrics.dashboard.enabled=true," +
			"networkPolicy.enabled=true,podDisruptionBudget.enabled=true,flowSchema.enabled=true," +
			"flowSchema.priorityLevel.create=true,flowSchema.priorityLevel.name=ambit",
	} {
		rendered := map[string][]string{}

		for _, helm := range []string{"helm", "helm4"} {
			if out, err := run(t, helm, "lint", "--strict", "--kube-version", "1.36", "ambit", "--set", values); err != nil {
				t.Errorf("%s lint: %v\n%s", helm, err, out)
			}

			out, err := run(t, helm, "template", "ambit", "ambit", "--namespace", "elsewhere", "--kube-version", "1.36",
				"--include-crds", "--set", values)
			if err != nil {
				t.Fatalf("%s: %v\n%s", helm, err, out)
			}

			rendered[helm] = objects(t, out)
		}

		if got, want := rendered["helm4"], rendered["helm"]; len(want) < 10 || !slices.Equal(got, want) {
			t.Errorf("%s: Helm 4 renders %d objects, and not the same %d", values, len(got), len(want))
		}
	}
}

// objects are those of a rendered chart, each in the one way to write it, without regard to their order.
func objects(t *testing.T, rendered string) []string {
	t.Helper()

	var found []string

	for _, document := range regexp.MustCompile(`(?m)^---$`).Split(rendered, -1) {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatalf("Helm renders what is no YAML: %v\n%s", err, document)
		}

		if text, err := json.Marshal(o); err != nil {
			t.Fatal(err)
		} else if o != nil {
			found = append(found, string(text))
		}
	}

	slices.Sort(found)

	return found
}

func TestWrongValuesAreRefused(t *testing.T) {
	for value, why := range map[string]string{
		`nodeSelector={"disk":1}`:                                     "nodeSelector",
		`tolerations={}`:                                              "tolerations",
		`priorityClassName="A B"`:                                     "priorityClassName",
		`extraLabels={"app.kubernetes.io/name":"other"}`:              "app.kubernetes.io/name",
		`metrics.servicemonitor.enabled=true`:                         "servicemonitor",
		`metrics.podMonitor.interval="soon"`:                          "interval",
		`metrics.podMonitor.enabled=true`:                             "metrics.token.secretName",
		`metrics.token.secretName="{{ x }}"`:                          "secretName",
		`metrics={"secure":false,"certificate":{"secretName":"c"}}`:   "metrics.certificate",
		`networkPolicy.metricsFrom=[{}]`:                              "metricsFrom",
		`networkPolicy.apiServerPorts=[]`:                             "apiServerPorts",
		`podDisruptionBudget.maxUnavailable=0`:                        "maxUnavailable",
		`flowSchema.priorityLevel.name="{{ .Release.Name }}"`:         "name",
		`flowSchema={"enabled":true,"priorityLevel":{"create":true}}`: "flowSchema.priorityLevel.name",
		`flowSchema.matchingPrecedence=0`:                             "matchingPrecedence",
		`flowSchema.priorityLevel.borrowingLimitPercent=-1`:           "borrowingLimitPercent",
		`image.digest="sha256:short"`:                                 "digest",
		`image.tag="v1 "`:                                             "tag",
		`image.tag="v1@sha256:short"`:                                 "tag",
		`image.tag=":v1"`:                                             "tag",
		`image.repository="registry/ambit:v1"`:                        "repository",
		`image.repository="https://registry/ambit"`:                   "repository",
		`resources.limit={"memory":"1Gi"}`:                            "limit",
		`resources.limits.memmory="1Gi"`:                              "memmory",
		`resources.limits.memory="1GB"`:                               "memory",
		`resources.limits.cpu=-1`:                                     "cpu",
		`resources.requests="100m"`:                                   "requests",
	} {
		rendered, err := render(t, value)
		if err == nil {
			t.Errorf("the value %s was taken", value)
		} else if !strings.Contains(rendered, why) {
			t.Errorf("the value %s was refused without a word of %s: %s", value, why, rendered)
		}
	}
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), tool(t, "promtool"), "test", "rules", "alerts_test.yaml")
	cmd.Dir = "testdata"

	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the alerts: %v\n%s", err, out)
	}
}

// exported are Ambit's metrics, in every form in which Prometheus has them, with their labels.
func exported() map[string][]string {
	pattern := regexp.MustCompile(`fqName: "([a-z_]+)".*variableLabels: \{([a-z_,]*)\}`)
	registry := &recorder{}
	report.NewMetrics(registry)

	all := map[string][]string{}

	for _, description := range registry.descriptions {
		match := pattern.FindStringSubmatch(description)
		for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
			all[match[1]+suffix] = append(strings.Split(match[2], ","), "le")
		}
	}

	return all
}

// recorder is a registry that takes down what is registered.
type recorder struct{ descriptions []string }

func (r *recorder) Register(c prometheus.Collector) error {
	described := make(chan *prometheus.Desc, 1)
	c.Describe(described)
	r.descriptions = append(r.descriptions, (<-described).String())

	return nil
}

func (r *recorder) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		_ = r.Register(c)
	}
}

func (r *recorder) Unregister(prometheus.Collector) bool { return false }

func TestQueriesNameMetricsThatExist(t *testing.T) {
	metrics := exported()
	queries := slices.Concat(alerts(t), panels(t))

	if len(queries) < 15 {
		t.Fatalf("there are only %d queries; the test looks in the wrong place", len(queries))
	}

	noise := regexp.MustCompile(`"[^"]*"|\[[^]]*\]|\{[^}]*\}|by \([^)]*\)|[a-z_]+ *\(`)
	word := regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	grouping := regexp.MustCompile(`by \(([^)]*)\)`)

	for _, query := range queries {
		names := word.FindAllString(noise.ReplaceAllString(query, "("), -1)
		names = slices.DeleteFunc(names, func(name string) bool { return name == "sum" || name == "max" })

		if len(names) != 1 || metrics[names[0]] == nil {
			t.Errorf("Ambit has no metrics %q, of which this asks: %s", names, query)

			continue
		}

		for _, group := range grouping.FindAllStringSubmatch(query, -1) {
			for label := range strings.SplitSeq(group[1], ", ") {
				if !slices.Contains(metrics[names[0]], label) {
					t.Errorf("%s has no label %s, of which this asks: %s", names[0], label, query)
				}
			}
		}
	}
}

func alerts(t *testing.T) []string {
	t.Helper()

	var rules struct {
		Groups []struct{ Rules []struct{ Expr string } }
	}

	content, err := os.ReadFile("ambit/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}

	if err := yaml.Unmarshal(content, &rules); err != nil {
		t.Fatal(err)
	}

	var queries []string

	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			queries = append(queries, r.Expr)
		}
	}

	return queries
}

func panels(t *testing.T) []string {
	t.Helper()

	var dashboard struct {
		Panels []struct {
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}

	content, err := os.ReadFile("ambit/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}

	if err := json.Unmarshal(content, &dashboard); err != nil {
		t.Fatal(err)
	}

	var queries []string

	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			queries = append(queries, target.Expr)
		}
	}

	return queries
}
