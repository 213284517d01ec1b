package convert_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/convert"
	"github.com/ambit-k8s/ambit/internal/scope"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, objects []any, notes []string) {
	t.Helper()

	var got bytes.Buffer

	for _, obj := range objects {
		text, err := yaml.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}

		got.WriteString("---\n")
		got.Write(text)
	}

	got.WriteString("# " + strings.Join(notes, "\n# ") + "\n")

	path := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s: got\n%s", name, got.String())
	}
}

func read(t *testing.T, text string, into any) {
	t.Helper()

	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

func TestLegacy(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		text     string
		accounts []string
	}{
		"older-listed": {`{metadata: {namespace: ops, name: s, labels: {team: a}, annotations: {
			kubectl.kubernetes.io/last-applied-configuration: "{}"}}, spec: {namespaceMembers: [b, a],
			projected-serviceaccounts: [op], configmap-name: list, restartLabels: {intent: x}, manualManagement: true}}`, nil},
		"older-all":     {`{metadata: {namespace: ops, name: s}, spec: {namespaceMembers: [a]}}`, []string{"op", "default"}},
		"older-unknown": {`{metadata: {namespace: ops, name: s}, spec: {namespaceMembers: [a]}}`, nil},
	} {
		nss := &namespacescopev1alpha1.NamespaceScope{}
		read(t, tc.text, nss)

		to, notes := convert.FromNamespaceScopeV1alpha1(nss, tc.accounts)
		golden(t, name, []any{to}, notes)
	}
}

const csv = `
metadata: {namespace: operators, name: etcdoperator.v0.9.4, annotations: {olm.operatorGroup: two}}
spec:
  displayName: etcd
  customresourcedefinitions: {}
  apiservicedefinitions: {}
  version: 0.9.4
  install:
    strategy: deployment
    spec:
      deployments: []
      permissions:
        - serviceAccountName: etcd-operator
          rules:
            - {apiGroups: [etcd.database.coreos.com], resources: [etcdclusters], verbs: ["*"]}
        - serviceAccountName: etcd-operator
          rules:
            - {apiGroups: [""], resources: [pods, services], verbs: [get, list, watch]}
        - serviceAccountName: ""
          rules:
            - {apiGroups: [""], resources: [secrets], verbs: [get]}
      clusterPermissions:
        - serviceAccountName: etcd-operator
          rules:
            - {apiGroups: [""], resources: [nodes], verbs: [get]}
`

func TestClusterServiceVersion(t *testing.T) {
	t.Parallel()

	for name, text := range map[string]string{
		"csv-targets":   `{metadata: {name: g}, spec: {targetNamespaces: [b, a], selector: {matchLabels: {ignored: "yes"}}}}`,
		"csv-selector":  `{metadata: {name: g}, spec: {selector: {matchLabels: {team: a}}, serviceAccountName: limited}}`,
		"csv-shorthand": `{metadata: {name: g}, spec: {selector: {cool.io/prod: "true"}}}`,
		"csv-all":       `{metadata: {name: g}, spec: {}}`,
	} {
		from, group := &olmv1alpha1.ClusterServiceVersion{}, &operatorsv1.OperatorGroup{}
		read(t, csv, from)
		read(t, text, group)

		objects, notes, err := convert.ClusterServiceVersion(from, group)
		if err != nil {
			t.Fatal(err)
		}

		all := make([]any, 0, len(objects))
		for _, obj := range objects {
			all = append(all, obj)
		}

		golden(t, name, all, notes)
	}
}

// TestGroupsThatReachNothing holds that what selects nothing never becomes an instance, which would bind in the whole cluster.
func TestGroupsThatReachNothing(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct{ group, want string }{
		"empty":      {`{selector: {}}`, "spec.selector of OperatorGroup g selects nothing: it is empty, which never means"},
		"no labels":  {`{selector: {matchLabels: {}}}`, "spec.selector of OperatorGroup g selects nothing: it is empty"},
		"mixed":      {`{selector: {a: b, matchLabels: {c: d}}}`, "spec.selector of OperatorGroup g selects nothing: it mixes"},
		"unreadable": {`{selector: {a: {b: c}}}`, "spec.selector of OperatorGroup g selects nothing"},
		"no name":    {`{targetNamespaces: [""]}`, `OperatorGroup g has "" in spec.targetNamespaces`},
	} {
		from, group := &olmv1alpha1.ClusterServiceVersion{}, &operatorsv1.OperatorGroup{}
		read(t, csv, from)
		read(t, "{metadata: {name: g}, spec: "+tc.group+"}", group)

		objects, _, err := convert.ClusterServiceVersion(from, group)
		if err == nil || !strings.Contains(err.Error(), tc.want) || len(objects) > 0 {
			t.Errorf("%s: got %v, %v", name, objects, err)
		}
	}
}

func TestNothingToConvert(t *testing.T) {
	t.Parallel()

	from := &olmv1alpha1.ClusterServiceVersion{}
	if _, _, err := convert.ClusterServiceVersion(from, &operatorsv1.OperatorGroup{}); !errors.Is(err, convert.ErrNoPermissions) {
		t.Errorf("got %v", err)
	}

	read(t, csv, from)

	groups := make([]operatorsv1.OperatorGroup, 2)
	groups[0].Name, groups[1].Name = "one", "two"

	if g, err := convert.GroupOf(from, groups); err != nil || g.Name != "two" {
		t.Errorf("the annotation chooses: %v, %v", g, err)
	}

	if _, err := convert.GroupOf(&olmv1alpha1.ClusterServiceVersion{}, groups); err == nil {
		t.Error("nobody says which of two")
	}

	if _, err := convert.GroupOf(from, nil); err == nil {
		t.Error("there is none")
	}
}

// TestLongNames: what is written for operators with long names can be applied.
func TestLongNames(t *testing.T) {
	t.Parallel()

	from, group := &olmv1alpha1.ClusterServiceVersion{}, &operatorsv1.OperatorGroup{}
	read(t, csv, from)

	seen := map[string]bool{}

	var objects []scope.Object

	for _, name := range []string{
		strings.Repeat("x", 240), strings.Repeat("x", 246), strings.Repeat("x", 253),
		strings.Repeat("x", 233) + "." + strings.Repeat("x", 19),
	} {
		from.Name = name

		all, _, err := convert.ClusterServiceVersion(from, group)
		if err != nil {
			t.Fatal(err)
		}

		objects = append(objects, all...)
	}

	for _, obj := range objects {
		if problems := validation.IsDNS1123Subdomain(obj.GetName()); len(problems) > 0 {
			t.Errorf("%d characters are no name: %s: %v", len(obj.GetName()), obj.GetName(), problems)
		}

		template, is := obj.(*operatorsv1alpha1.ScopeTemplate)
		if !is {
			continue
		}

		if seen[template.Name] {
			t.Errorf("two are called %s", template.Name)
		}

		seen[template.Name] = true

		for _, role := range template.Spec.ClusterRoles {
			if len(role.GenerateName) != 200 || !strings.HasSuffix(role.GenerateName, "x-") {
				t.Errorf("the generateName has %d characters: %s", len(role.GenerateName), role.GenerateName)
			}
		}
	}
}
