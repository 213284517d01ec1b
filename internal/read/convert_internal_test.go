package read

import (
	"reflect"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// fromYAML fills an object from YAML.
func fromYAML[O any](t *testing.T, text string, obj O) O {
	t.Helper()

	if err := yaml.Unmarshal([]byte(text), obj); err != nil {
		t.Fatalf("%s: %v", text, err)
	}

	return obj
}

// TestWhatIsNoSource: what Ambit or IBM's operator projected, an authorization, and what is meant for its own namespace go
// nowhere else.
func TestWhatIsNoSource(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		meta          string
		role, binding bool
	}{
		"anything":                 {`{name: a}`, true, true},
		"of another manager":       {`{name: a, labels: {app.kubernetes.io/managed-by: Helm}}`, true, true},
		"a copy by its label":      {`{name: a, labels: {ambit.dev/scope: x}}`, false, false},
		"a copy by its annotation": {`{name: a, annotations: {ambit.dev/owner: x}}`, false, false},
		"of a scope beside it": {
			`{namespace: ops, labels: {ambit.dev/scope: x}, annotations: {ambit.dev/owner: NamespaceScope/ops/s}}`, false, false,
		},
		"installed beside its ClusterServiceVersion": {
			`{namespace: ops, labels: {ambit.dev/scope: x}, annotations: {ambit.dev/owner: ClusterServiceVersion/ops/op.v1}}`, true, true,
		},
		"for one of another namespace": {
			`{namespace: a, labels: {ambit.dev/scope: x}, annotations: {ambit.dev/owner: ClusterServiceVersion/ops/op.v1}}`, false, false,
		},
		"an authorization": {`{name: a, labels: {app.kubernetes.io/managed-by: ambit-authorize}}`, false, false},
		"of IBM's operator": {
			`{labels: {` + ibmMark + `: x, app.kubernetes.io/managed-by: ` + ibmManager + `}}`, false, false,
		},
		"with one of its marks":      {`{labels: {namespace-scope-configmap: x}}`, true, true},
		"with the other":             {`{labels: {app.kubernetes.io/managed-by: ibm-namespace-scope-operator}}`, true, true},
		"for its own namespace":      {`{annotations: {ambit.dev/project: disabled}}`, true, false},
		"for others, and it says so": {`{annotations: {ambit.dev/project: enabled}}`, true, true},
	} {
		meta := fromYAML(t, tc.meta, &metav1.ObjectMeta{})
		rules := []rbacv1.PolicyRule{{Verbs: []string{"get"}}}

		if got, is := convertRole(&rbacv1.Role{ObjectMeta: *meta, Rules: rules}); is != tc.role || is && len(got) != 1 {
			t.Errorf("%s: a Role is a source: %t", reason, is)
		}

		b := &rbacv1.RoleBinding{ObjectMeta: *meta, RoleRef: rbacv1.RoleRef{Name: "r"}, Subjects: []rbacv1.Subject{{Name: "s"}}}
		if got, is := convertBinding(b); is != tc.binding || is && (got.RoleRef.Name != "r" || len(got.Subjects) != 1) {
			t.Errorf("%s: a RoleBinding is a source: %t", reason, is)
		}
	}

	if _, is := convertRole(&rbacv1.ClusterRole{}); is {
		t.Error("a ClusterRole is no Role")
	}

	if _, is := convertBinding(&rbacv1.ClusterRoleBinding{}); is {
		t.Error("a ClusterRoleBinding is no RoleBinding")
	}
}

// TestConfigMapsAreRead: annotations may hold anything, and what cannot be read counts as missing.
func TestConfigMapsAreRead(t *testing.T) {
	t.Parallel()

	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	of := func(change func(*facts.ConfigMap)) facts.ConfigMap {
		var c facts.ConfigMap

		change(&c)

		return c
	}

	for text, want := range map[string]facts.ConfigMap{
		`{metadata: {resourceVersion: "7"}}`: of(func(c *facts.ConfigMap) { c.Version = 7 }),
		`{data: {namespaces: "a,b"}}`:        of(func(c *facts.ConfigMap) { c.List, c.HasList = "a,b", true }),
		`{data: {namespaces: ""}}`:           of(func(c *facts.ConfigMap) { c.HasList = true }),
		`{data: {other: x}}`:                 of(func(c *facts.ConfigMap) { c.OtherKeys = true }),
		`{data: {namespaces: a, other: x}}`:  of(func(c *facts.ConfigMap) { c.List, c.HasList, c.OtherKeys = "a", true, true }),
		`{data: {namespaces: a}, binaryData: {other: eA==}}`: of(func(c *facts.ConfigMap) {
			c.List, c.HasList, c.OtherKeys = "a", true, true
		}),
		`{immutable: true}`:  of(func(c *facts.ConfigMap) { c.Immutable = true }),
		`{immutable: false}`: {},
		`{metadata: {finalizers: [x], deletionTimestamp: "2026-01-02T03:04:05Z"}}`: of(func(c *facts.ConfigMap) {
			c.Held, c.Terminating = true, true
		}),
		`{metadata: {annotations: {ambit.dev/created: "true", ambit.dev/namespaces-hash: h, ambit.dev/namespaces-generation: "3",
		  ambit.dev/namespaces-since: "2026-01-02T03:04:05Z", ambit.dev/namespaces-before: "2026-01-02T03:04:05Z"}}}`: of(
			func(c *facts.ConfigMap) {
				c.Created, c.ListHash, c.Generation, c.Since, c.Before = true, "h", 3, at, at
			}),
		`{metadata: {annotations: {ambit.dev/created: "yes", ambit.dev/namespaces-generation: "3x",
		  ambit.dev/namespaces-since: yesterday, ambit.dev/namespaces-before: "2026-01-02"}}}`: {},
		`{metadata: {managedFields: [
		  {manager: ambit, time: "2026-01-02T03:04:05Z"}, {manager: ambit, time: "2026-01-01T00:00:00Z"}, {manager: ambit},
		  {manager: kubectl, time: "2026-02-02T00:00:00Z"}]}}`: of(func(c *facts.ConfigMap) { c.Applied = at }),
		`{metadata: {managedFields: [{manager: kubectl, time: "2026-01-02T03:04:05Z", fieldsV1: {"f:data": {"f:namespaces": {}}}},
		  {manager: helm, time: "2026-02-02T00:00:00Z", fieldsV1: {"f:data": {"f:other": {}}}}]}}`: of(
			func(c *facts.ConfigMap) { c.Written = at }),
	} {
		got, is := convertConfigMap(fromYAML(t, text, &corev1.ConfigMap{}))
		if !is || !got.Applied.Equal(want.Applied) || !got.Written.Equal(want.Written) {
			t.Errorf("%s was applied at %s and written at %s", text, got.Applied, got.Written)
		}

		got.Applied, got.Written, want.Applied, want.Written = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		if got != want {
			t.Errorf("%s is read as %+v, want %+v", text, got, want)
		}
	}

	if _, is := convertConfigMap(&corev1.Secret{}); is {
		t.Error("a Secret is no ConfigMap")
	}

	for text, want := range map[string]time.Duration{"1m0s": time.Minute, "": 0, "60": 0, "soon": 0} {
		if got := parseDuration(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// TestNamespacesAreRead: a namespace goes from the request for its deletion on, and also where only its phase says so.
func TestNamespacesAreRead(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]struct {
		terminating bool
		deleted     int
	}{
		`{metadata: {labels: {a: b}}}`: {false, 0},
		`{metadata: {labels: {a: b}, deletionTimestamp: "2026-01-02T03:04:05Z"}, status: {phase: Active}}`: {true, 2026},
		`{metadata: {labels: {a: b}}, status: {phase: Terminating}}`:                                       {true, 0},
	} {
		got, is := convertNamespace(fromYAML(t, text, &corev1.Namespace{}))
		if !is || got.Terminating != want.terminating || got.Deleted.IsZero() != (want.deleted == 0) || got.Labels["a"] != "b" {
			t.Errorf("%s is read as %+v", text, got)
		}
	}
}

// TestWorkOfIBMsOperator: of what bears its mark is kept what tells it from the work of others.
func TestWorkOfIBMsOperator(t *testing.T) {
	t.Parallel()

	const labels = `labels: {namespace-scope-configmap: list-ops, app.kubernetes.io/name: list, ` +
		`app.kubernetes.io/instance: namespace-scope, app.kubernetes.io/managed-by: ibm-namespace-scope-operator}`

	bound := facts.Legacy{Mark: "list-ops", Labelled: true, List: "list", Account: "op", AccountNamespace: "ops"}
	nobody := facts.Legacy{Mark: "list-ops", Labelled: true, List: "list"}
	other := bound
	other.Labelled = false

	binding := func(edits ...string) string {
		text := `{metadata: {name: n, ` + labels + `}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: n},
			subjects: [{kind: ServiceAccount, name: op, namespace: ops}]}`

		return strings.NewReplacer(edits...).Replace(text)
	}

	for text, want := range map[string]*facts.Legacy{
		binding(): &bound,
		binding("subjects: [", "subjects: [{kind: ServiceAccount, name: a}, "): &nobody, binding("subjects: ", "other: "): &nobody,
		binding("metadata: {name: n", "metadata: {name: m"): &nobody, binding("kind: Role", "kind: ClusterRole"): &nobody,
		binding("kind: ServiceAccount", "kind: User"): &nobody, binding("name: op", "apiGroup: x, name: op"): &nobody,
		binding("name: op", "name: "+strings.Repeat("x", maxName+1)): &nobody,
		binding("instance: namespace-scope", "instance: x"):          &other,
		binding("managed-by: ibm", "managed-by: x"):                  &other,
		binding("namespace-scope-configmap", "x"):                    nil,
	} {
		if got := convertLegacy(fromYAML(t, text, &rbacv1.RoleBinding{})); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as %+v, want %+v", text, got, want)
		}
	}

	meta := fromYAML(t, `{name: n, `+labels+`}`, &metav1.ObjectMeta{})
	if got := convertLegacy(&rbacv1.Role{ObjectMeta: *meta}); !reflect.DeepEqual(got, &nobody) {
		t.Errorf("a Role is read as %+v", got)
	}

	if got := convertLegacy(&rbacv1.ClusterRole{ObjectMeta: *meta}); got != nil {
		t.Errorf("a ClusterRole is none that it made: %+v", got)
	}
}

// TestRecordsOfCopies: a record holds what a plan compares; what is too large to be kept is not known.
func TestRecordsOfCopies(t *testing.T) {
	t.Parallel()

	rules := func(n int) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: []string{strings.Repeat("x", n)}}}
	}

	for reason, tc := range map[string]struct {
		object  projected.Object
		rules   string
		empty   bool
		guarded bool
	}{
		"a Role":                {projected.Object{Kind: projected.Role, Rules: rules(1)}, `[{"verbs":["x"]}]`, false, false},
		"one without rules":     {projected.Object{Kind: projected.Role}, "[]", true, false},
		"one that is too large": {projected.Object{Kind: projected.Role, Rules: rules(maxRules)}, "", false, false},
		"an aggregated one":     {projected.Object{Kind: projected.ClusterRole, Aggregates: []string{"a"}}, "", false, false},
		"one that somebody aggregated": {
			projected.Object{Kind: projected.ClusterRole, Rules: rules(1), Aggregated: true}, "", false, false,
		},
		"a guarded one": {
			projected.Object{Kind: projected.ClusterRole, Rules: []rbacv1.PolicyRule{scope.GuardRule()}},
			`[{"verbs":["hold"],"apiGroups":["ambit.dev"],"resources":["guard"]}]`, false, true,
		},
		"a binding": {
			projected.Object{Kind: projected.RoleBinding, Subjects: []rbacv1.Subject{{Name: "a"}}}, "", false, false,
		},
		"one without subjects": {projected.Object{Kind: projected.RoleBinding}, "", true, false},
	} {
		got := RecordOf(&tc.object, tc.object.In(""), true)
		if got.Rules != tc.rules || got.Empty != tc.empty || got.Guarded != tc.guarded || !got.Named {
			t.Errorf("%s: %+v", reason, got.Content)
		}
	}

	old := RecordOf(&projected.Object{Kind: projected.Role, Name: "n"}, &rbacv1.Role{}, false)
	if old.Slot != "n" || old.Named || old.Held || old.Terminating {
		t.Errorf("once, the name of a copy was its slot: %+v", old)
	}

	gone := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"x"}, DeletionTimestamp: new(metav1.Now())}}
	if got := RecordOf(&projected.Object{Kind: projected.Role, Slot: "s"}, gone, true); got.Slot != "s" || !got.Held ||
		!got.Terminating {
		t.Errorf("it is about to go, and held: %+v", got)
	}
}

// TestInjectedIntoIsRead: where something can be injected, and what already was.
func TestInjectedIntoIsRead(t *testing.T) {
	t.Parallel()

	got := PodSpec(fromYAML(t, `{
	  initContainers: [{name: i, args: [x]}],
	  containers: [{name: c, env: [{name: A}], envFrom: [{prefix: P}, {configMapRef: {name: m}}],
	    volumeMounts: [{name: v, mountPath: /v}]}, {name: d}],
	  volumes: [{name: v, configMap: {name: m}}, {name: w, emptyDir: {}}]}`, &corev1.PodSpec{}))
	want := facts.PodSpec{
		Containers: []facts.Container{
			{Name: "i", Init: true, Args: []string{"x"}},
			{Name: "c", Env: []corev1.EnvVar{{Name: "A"}}, EnvFrom: []string{"P", ""}, Mounts: []facts.Mount{{Path: "/v", Volume: "v"}}},
			{Name: "d", Index: 1},
		},
		Volumes: []facts.Volume{{Name: "v", ConfigMap: "m"}, {Name: "w"}},
	}

	if !reflect.DeepEqual(got, want) {
		t.Errorf("pods are read as %+v, want %+v", got, want)
	}

	for text, want := range map[string]facts.Workload{
		`{}`: {}, `{annotations: {x: "y"}}`: {Annotated: true},
		`{annotations: {ambit.dev/injected: h, ambit.dev/injected-for: f, ambit.dev/replaced: r}}`: {
			Annotated: true, Injected: "h", InjectedFor: "f", Replaced: "r",
		},
		`{managedFields: [{manager: ambit-injector, operation: Apply}]}`:                {Applied: true},
		`{managedFields: [{manager: ambit-injector, operation: Update}, {manager: x}]}`: {Patched: true},
		`{managedFields: [{manager: ambit-injector, operation: Update}, {manager: ambit-injector, operation: Apply}]}`: {
			Applied: true, Patched: true,
		},
		`{managedFields: [{manager: ambit, operation: Apply}]}`: {},
	} {
		var w facts.Workload
		if noteInjection(&w, &corev1.Pod{ObjectMeta: *fromYAML(t, text, &metav1.ObjectMeta{})}); !reflect.DeepEqual(w, want) {
			t.Errorf("%s is read as %+v", text, w)
		}
	}
}

// TestCSVsAreRead: a ClusterServiceVersion that is a copy, or goes, is none; one whose deployments cannot be read hides no other.
func TestCSVsAreRead(t *testing.T) {
	t.Parallel()

	const (
		strategy = `install: {strategy: deployment, spec: {deployments: [{name: d, spec: {template: {spec: {}}}}]}}`
		problem  = "its install strategy cannot be read"
	)

	type read struct {
		components, operators, replaced, problem string
		webhooks, annotated                      bool
		deployments                              int
	}

	for text, want := range map[string]*read{
		`{metadata: {name: c}}`: {},
		`{metadata: {name: c, labels: {operators.coreos.com/b.ops: "", operators.coreos.com/a.ops: "", x: "y"}}, spec: {` +
			strategy + `}}`: {components: "a.ops b.ops", deployments: 1},
		`{metadata: {name: c, annotations: {nss.operator.ibm.com/managed-operators: "a,b", ambit.dev/replaced: r}}}`: {
			operators: "a,b", replaced: "r", annotated: true,
		},
		`{metadata: {name: c, annotations: {nss.operator.ibm.com/managed-webhooks: ""}}}`: {webhooks: true, annotated: true},
		`{metadata: {name: c}, spec: {install: 1}}`:                                       {problem: problem},
		`{metadata: {name: c}, spec: {install: {strategy: deployment, spec: {deployments: 1}}}}`: {
			problem: problem,
		},
		`{metadata: {name: c}, spec: {` + strings.Replace(strategy, "y: deployment", "y: other", 1) + `}}`: {},
		`{metadata: {name: c, labels: {olm.copiedFrom: a}}}`:                                               nil,
		`{metadata: {name: c, labels: {olm.copiedFrom: ""}}}`:                                              nil,
		`{metadata: {name: c, deletionTimestamp: "2026-01-02T03:04:05Z"}}`:                                 nil,
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		fromYAML(t, text, &obj.Object)

		c, is := convertCSV(obj)
		if is != (want != nil) {
			t.Errorf("%s is a ClusterServiceVersion: %t", text, is)
		}

		if want == nil {
			continue
		}

		got := read{
			strings.Join(c.Components, " "), c.ManagedOperators, c.Replaced, c.Problem, c.ManagedWebhooks, c.Annotated, len(c.Deployments),
		}
		if got != *want || c.Name != "c" {
			t.Errorf("%s is read as %+v, want %+v", text, got, want)
		}
	}

	if _, is := convertCSV(&corev1.ConfigMap{}); is {
		t.Error("a ConfigMap is no ClusterServiceVersion")
	}
}

// TestWebhooksAreRead: those that OLM or Ambit made for a ClusterServiceVersion, whichever kind they are; the limit that a scope
// adds makes no difference to what Ambit installed.
func TestWebhooksAreRead(t *testing.T) {
	t.Parallel()

	const labels = `olm.owner.namespace: ops, olm.owner: csv, olm.owner.kind: ClusterServiceVersion`

	read := func(text string) [2]webhookRecord {
		var out [2]webhookRecord

		for i, obj := range []client.Object{
			&admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{},
		} {
			fromYAML(t, text, obj)

			r, is := convertWebhooks(obj)
			if is != strings.Contains(text, labels) {
				t.Errorf("%s is somebody's: %t", text, is)
			}

			out[i] = r
		}

		return out
	}

	for _, missing := range []string{"olm.owner.namespace: ops, ", "olm.owner: csv, ", "ClusterServiceVersion"} {
		read(`{metadata: {name: w, labels: {` + strings.Replace(labels, missing, "", 1) + `}}}`)
	}

	limit := `{key: kubernetes.io/metadata.name, operator: In, values: [a, b]}`
	targets := `{key: kubernetes.io/metadata.name, operator: In, values: [a, b, c]}`
	of := func(annotations, requirements string) string {
		return `{metadata: {name: w, uid: u, labels: {` + labels + `, ambit.dev/scope: h}, annotations: {` + annotations +
			`}, managedFields: [{manager: ambit}]}, webhooks: [{name: w, namespaceSelector: {matchExpressions: [` + requirements + `]}}]}`
	}
	plain, limited := read(of("", targets)), read(of(`ambit.dev/replaced: "a,b"`, targets+", "+limit))
	other, twice := read(of("", limit)), read(strings.Replace(of("", targets), "webhooks: [", "webhooks: [{name: v}, ", 1))

	for i, kind := range []string{facts.MutatingWebhooks, facts.ValidatingWebhooks} {
		p, l := plain[i], limited[i]
		if p.Kind != kind || p.operatorNamespace != "ops" || p.CSV != "csv" || !p.Made || p.Annotated || !l.Annotated ||
			l.Replaced != "a,b" || len(l.Webhooks) != 1 || len(l.Webhooks[0].Requirements) != 2 ||
			l.Webhooks[0].Requirements[1].Values != "a,b" {
			t.Errorf("%s is read as %+v and %+v", kind, p, l)
		}

		if p.made.Content != l.made.Content || p.made.Reach != l.made.Reach || l.made.Limit != "a,b" || p.made.Limit != "" ||
			p.made.Namespaces != "a,b,c" || l.made.Namespaces != "a,b,c" || p.made.Owner != "h" || p.made.UID != "u" {
			t.Errorf("a limit makes a difference: %+v and %+v", p.made, l.made)
		}

		if other[i].made.Reach == p.made.Reach || other[i].made.Content == p.made.Content {
			t.Errorf("other targets make none: %+v", other[i].made)
		}

		if twice[i].made.Reach != "" || twice[i].made.Namespaces != "" {
			t.Errorf("what reaches further by another webhook has a reach of Ambit's: %+v", twice[i].made)
		}
	}

	others := read(`{metadata: {name: w, labels: {` + labels + `}}, webhooks: [{name: w}]}`)
	if others[0].made != nil || others[0].Made || others[0].Webhooks[0].Selected {
		t.Errorf("OLM's is none that Ambit made: %+v", others[0])
	}
}
