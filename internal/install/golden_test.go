package install

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden holds everything that is planned, written and asked for, for one ClusterServiceVersion of each install mode. A
// change of these files is read in review.
func TestGolden(t *testing.T) {
	t.Parallel()

	for name, targets := range map[string][]string{
		"own": {ownNamespace}, "single": {"a"}, "multi": {"a", "b", ownNamespace}, "all": {""}, "nomodes": {ownNamespace},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			text, err := os.ReadFile(filepath.Join("testdata", name+".csv.yaml"))
			if err != nil {
				t.Fatal(err)
			}

			csv := &olm.ClusterServiceVersion{}
			if err := yaml.UnmarshalStrict(text, csv); err != nil {
				t.Fatal(err)
			}

			got := everything(t, csv, targets)
			file := filepath.Join("testdata", name+".golden.yaml")

			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}

			if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
				t.Errorf("what is made of %s is not what %s holds (%v); look at what changes with -update:\n%s", name, file, err, got)
			}
		})
	}
}

// output is what becomes of a CSV, in the order in which it happens.
type output struct {
	bytes.Buffer

	t *testing.T
}

func (o *output) add(title string, objects ...any) {
	o.t.Helper()

	for _, obj := range objects {
		text, err := yaml.Marshal(obj)
		if err != nil {
			o.t.Fatal(err)
		}

		o.WriteString("---\n# " + title + "\n")
		o.Write(text)
	}
}

func everything(t *testing.T, csv *olm.ClusterServiceVersion, targets []string) []byte {
	t.Helper()

	w := snapshotOf(targets, csv)
	w.CRDs = map[string]CRD{
		"keepers.example.com": {UID: "uid-keepers", Served: []string{"v1"}},
		"hooks.example.com":   {UID: "uid-hooks", Served: []string{"v1"}},
	}
	out := &output{t: t}

	for _, place := range Needs(csv, ownNamespace, targets) {
		out.add("Needed, if an account installs it", place)
	}

	verdict := w.Decide(csv)
	out.add("Verdict", map[string]any{
		"phase": verdict.Phase, "reason": verdict.Reason, "message": verdict.Message, "requirements": verdict.Requirements,
		"holds": verdict.KeepRBAC, "installs": verdict.ApplyObjects,
	})

	if !verdict.ApplyObjects {
		return out.Bytes()
	}

	f := &facts.Facts{
		Key:          scope.Installs.In(ownNamespace),
		Namespaces:   map[string]facts.Namespace{ownNamespace: {}, "a": {}, "b": {}, "c": {}},
		ClusterRoles: map[string]facts.ClusterRole{},
	}
	planned := plan.New([]scope.Scope{
		compile.ClusterServiceVersion(csv, compile.Install{Targets: targets, Account: "scoped"}),
		{
			Owner: GroupOwner(w.Group.Group), Key: scope.Installs.In(ownNamespace), Members: scope.Members{Everywhere: true},
			Defines: GroupRoles(w.Group.Group, Provided(csv)), Delegate: "scoped",
		},
	}, f)

	for i := range planned.Scopes {
		for j := range planned.Scopes[i].Grant {
			c := &planned.Scopes[i].Grant[j]
			out.add(string(c.Action)+" "+string(c.Key.Kind)+" for "+planned.Scopes[i].Scope.Owner.String(), c.Copy.In(c.Namespace))
		}
	}

	for _, account := range w.AccountsToWrite(w.CSVs) {
		out.add("Account", account)
	}

	annotations := Membership(csv, w.Group, every)
	out.add("Annotations", annotations)

	w.Deployments, w.Certificates = map[string]*appsv1.Deployment{}, map[string]string{}
	bundles := map[string][]byte{}

	for _, s := range ServingOf(csv) {
		bundles[s.Deployment], w.Certificates[s.Deployment] = []byte("authorities"), "hash of the authority"

		service, err := w.ServiceToWrite(csv, &s)
		if err != nil {
			t.Fatal(err)
		}

		out.add("Service", service)
	}

	deployments, err := w.DeploymentsToWrite(csv, annotations)
	if err != nil {
		t.Fatal(err)
	}

	for _, d := range deployments {
		out.add("Deployment", d)
	}

	w.running(csv, 1)

	hooks, err := w.WebhooksToWrite(csv, targets, bundles)
	if err != nil {
		t.Fatal(err)
	}

	for _, hook := range hooks.Write {
		out.add("Webhooks, once the Deployment can answer", hook)
	}

	for _, role := range w.APIRoles(csv) {
		out.add("For people", role)
	}

	return out.Bytes()
}
