package served

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// edited is a ClusterServiceVersion that can be read no more, and whose operator keeps what it has.
const edited = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion",
	"metadata":{"namespace":"ops","name":"kettle.v1"},"spec":{"version":"the first"},
	"status":{"phase":"Succeeded","reason":"InstallSucceeded"}}`

// listing is a cluster of which every list has one object.
type listing struct{ client.Client }

func (listing) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	all, is := list.(*unstructured.UnstructuredList)
	if !is {
		return nil
	}

	one := unstructured.Unstructured{}
	all.Items = append(all.Items, one)

	return json.Unmarshal([]byte(edited), &all.Items[0].Object)
}

// TestVersionsThatCannotBeRead: an operator whose ClusterServiceVersion can be read no more keeps what it has, so it is not left
// out without a word: it is among what declares where operators work, with what is wrong, and a note says that nobody
// knows whom it serves.
func TestVersionsThatCannotBeRead(t *testing.T) {
	t.Parallel()

	v := &reading.Cluster{Reader: snapshot.New(listing{}), Snapshot: &snapshot.Snapshot{}}

	scopes, services, err := installedAt(t.Context(), v, []string{"ops"}, nil)
	if err != nil || len(services) > 0 || len(scopes) != 1 {
		t.Fatalf("%+v, %+v, %v", scopes, services, err)
	}

	if s := &scopes[0]; s.Name != "ClusterServiceVersion ops/kettle.v1" || s.Ready != "False" || s.Reason != "InvalidSpec" ||
		!strings.Contains(s.Message, "cannot be read") || s.Group != "operators.coreos.com" {
		t.Errorf("it is told as %+v", s)
	}

	want := []string{"whom these serve is unknown, because they cannot be read: ClusterServiceVersion ops/kettle.v1"}
	if !slices.Equal(v.Notes, want) {
		t.Errorf("the notes are %q, want %q", v.Notes, want)
	}
}

// TestWhatIsNotReadIsNotNone holds that an operator whose roles may not be read is not said to work on nothing.
func TestWhatIsNotReadIsNotNone(t *testing.T) {
	t.Parallel()

	for want, tc := range map[string]struct {
		rules   []rbacv1.PolicyRule
		notRead []string
	}{
		"none":     {[]rbacv1.PolicyRule{}, []string{"you may not list pods"}},
		"not read": {nil, []string{"you may not list roles"}},
	} {
		var out bytes.Buffer

		m := overview.New(nil, []overview.Service{{
			Operator: overview.Operator{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op"}, Namespace: "m",
			Scope: "NamespaceScope ops/s", State: overview.Served, Roles: []overview.Role{{Name: "Role ops/op", Rules: tc.rules}},
		}}, nil).Matrix()
		inside, _ := insideOf(m, m.Operators[0])

		o := &OperatorsOptions{}
		o.Out = terminal.NewWriter(&out)

		err := o.table(&OperatorsData{Namespace: "m", Operators: []Inside{inside}, NotRead: tc.notRead})
		if err != nil || !strings.Contains(out.String(), "served   "+want) {
			t.Errorf("%v, not %q: %s", err, want, out.String())
		}
	}
}

// TestScopesThatNobodyServes: Ambit says nothing about a scope in a namespace that it does not serve, however long it runs.
func TestScopesThatNobodyServes(t *testing.T) {
	t.Parallel()

	for namespace, want := range map[string]string{
		"ops":   "Ambit has not said anything about it yet; is it running?",
		"other": "nobody serves it: this Ambit serves scopes in the namespaces ops only",
	} {
		v := &reading.Cluster{
			Reader: snapshot.New(listing{}), Snapshot: &snapshot.Snapshot{}, Settings: predict.Manager{Namespaces: []string{"ops"}},
		}
		s := &plan.ScopePlan{Scope: &scope.Scope{Key: scope.NamespaceScopes.In(namespace)}}

		out := summary(v, &predict.Scope{}, s, &scopeStatus{}, Seen(v, &reading.OperatorNamespace{Facts: &facts.Facts{}}, nil))
		if out.Ready != "Unknown" || out.Reason != "NoStatus" || out.Message != want {
			t.Errorf("one in %s is told as %+v", namespace, out)
		}
	}
}
