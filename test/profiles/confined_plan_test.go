package profiles_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	cliplan "github.com/ambit-k8s/ambit/internal/cli/plan"
)

// planned is what "ambit plan" says that writing some objects would do, or deleting them.
func (c *confined) planned(code int, verb []string, objects ...client.Object) *cliplan.Data {
	c.Helper()

	var text strings.Builder

	for _, obj := range objects {
		gvk, err := apiutil.GVKForObject(obj, c.Client.Scheme())
		if err != nil {
			c.Fatal(err)
		}

		bare, _ := obj.DeepCopyObject().(client.Object)
		bare.GetObjectKind().SetGroupVersionKind(gvk)
		bare.SetResourceVersion("")

		raw, err := yaml.Marshal(bare)
		if err != nil {
			c.Fatal(err)
		}

		fmt.Fprintf(&text, "---\n%s", raw)
	}

	path := filepath.Join(c.TempDir(), "plan.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		c.Fatal(err)
	}

	out, got := c.Ambit(append([]string{"plan", "-o", "json", "-f", path}, verb...)...)
	if got != code {
		c.Fatalf("plan ended with %d, want %d: %s", got, code, out)
	}

	d := &cliplan.Data{}
	if err := json.NewDecoder(strings.NewReader(out)).Decode(d); err != nil {
		c.Fatalf("%v: %s", err, out)
	}

	return d
}

// becomesAsPlanned waits until the statuses say what a plan said that they would.
func (c *confined) becomesAsPlanned(d *cliplan.Data) {
	c.Helper()

	if len(d.Installs) == 0 {
		c.Fatalf("nothing is planned: %+v", d)
	}

	for i := range d.Installs {
		in := &d.Installs[i]
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(olm.SchemeGroupVersion.WithKind(in.Kind))

		if in.Kind == operatorsv1.OperatorGroupKind {
			obj.SetGroupVersionKind(operatorsv1.GroupVersion.WithKind(in.Kind))
		}

		c.Eventually(in.Kind+" "+in.Name+" becomes what was planned", func() error {
			if err := c.Client.Get(c.Context(), client.ObjectKey{Namespace: in.Namespace, Name: in.Name}, obj); err != nil {
				return err
			}

			is := cliplan.Status(obj)
			if is.Phase != in.Phase || is.Reason != in.Reason || is.Message != in.Message || !slices.Equal(is.Targets, in.Targets) ||
				!slices.Equal(is.Conditions, in.Conditions) {
				return fmt.Errorf("planned %+v, is %+v", *in, is)
			}

			return nil
		})
	}
}

// plansInstalls holds that "ambit plan" says what becomes of an install, and what nobody serves.
func (c *confined) plansInstalls() {
	group, csv := c.operatorGroup(kettles, kettles, stranger), c.csv(kettles, "planned")

	d := c.planned(3, nil, group, csv)
	if len(d.Grants) == 0 {
		c.Errorf("nothing says what is missing: %+v", d)
	}

	c.Make(group, csv)
	c.becomesAsPlanned(d)
	c.becomes(csv, olm.CSVPhaseFailed, "installer may not")

	c.grant(csv, kettles)
	c.becomes(csv, olm.CSVPhaseSucceeded)

	further := c.csv(kettles, "further")
	c.becomesAsPlanned(c.made(further, c.planned(3, nil, further)))
	c.Remove(further)

	if d = c.planned(0, []string{"--delete"}, csv); !deletes(d, "RoleBinding") {
		c.Errorf("what the operator may do stays: %+v", d)
	}

	if d = c.planned(0, []string{"--delete"}, csv, group); !deletes(d, "RoleBinding") {
		c.Errorf("what the operator may do stays without its group: %+v", d)
	}

	for _, obj := range []client.Object{csv, group} {
		c.Remove(obj)
	}

	c.Eventually("what was planned happens", func() error {
		if made := c.in(kettles).made(c.T); len(made) > 0 {
			return fmt.Errorf("there is %q", made)
		}

		return nil
	})

	s := &olm.Subscription{Spec: &olm.SubscriptionSpec{CatalogSource: "c", CatalogSourceNamespace: kettles, Package: "p"}}
	s.Namespace, s.Name = kettles, "s"

	if d = c.planned(3, nil, s); !slices.ContainsFunc(d.Notes, func(n string) bool { return strings.Contains(n, "nobody serves") }) {
		c.Errorf("nothing says that nobody serves it: %+v", d)
	}

	c.planned(3, nil, c.operatorGroup(stranger, stranger))
}

func (c *confined) made(obj client.Object, d *cliplan.Data) *cliplan.Data {
	c.Helper()
	c.Make(obj)

	return d
}

func deletes(d *cliplan.Data, kind string) bool {
	return slices.ContainsFunc(d.Objects, func(o cliplan.Object) bool { return o.Action == "delete" && o.Kind == kind })
}
