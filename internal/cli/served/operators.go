package served

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// OperatorsOptions are the flags and arguments of "ambit operators".
type OperatorsOptions struct {
	reading.Options
}

// OperatorsCommand returns "ambit operators".
func OperatorsCommand() *cobra.Command {
	o := &OperatorsOptions{}
	c := &cobra.Command{
		Use:   "operators -n NAMESPACE",
		Short: "Show which operators serve a namespace, and whether you may use their APIs",
		Long: `Show which operators serve a namespace, by which scope, the custom resources that each of them
works on there, and whether you may use those: edit, if you may create them; view, if you may
get them; or no. The custom resources are those that the operator's ClusterServiceVersion owns; without
a ClusterServiceVersion, those that the operator may change by its roles there.

The command reads with your rights, and names what you may not read. If you may read too little,
the state is unknown, and NAMESPACE/* stands for operators that you may not read.`,
		Example: `  ambit operators -n cloudpak1

  # As somebody else sees it
  ambit operators -n cloudpak1 --as jane@example.com`,
		Args: command.NoArguments,
		RunE: command.InSteps(o),
	}

	o.Bind(c)

	return c
}

// OperatorsData is what "ambit operators" prints for programs.
type OperatorsData struct {
	Namespace string   `json:"namespace"`
	Operators []Inside `json:"operators"`
	NotRead   []string `json:"notRead,omitempty"`
	Notes     []string `json:"notes,omitempty"`
}

// Inside is an operator from the point of view of a namespace.
type Inside struct {
	overview.Operator

	State   overview.State `json:"state"`
	Reason  string         `json:"reason,omitempty"`
	Message string         `json:"message,omitempty"`
	Scopes  []string       `json:"scopes"`
	APIs    []API          `json:"apis"`
	// ClusterWide is what it holds in all namespaces, whatever its scopes say.
	ClusterWide []overview.ClusterWide `json:"clusterWide,omitempty"`
	// unread says that the rules of some of its roles are not known, and so what it works on.
	unread bool
}

// API is a custom resource that an operator works on.
type API struct {
	// Resource is its name, as resource.group.
	Resource string `json:"resource"`
	// You is what the caller may do with it: edit, view or no.
	You string `json:"you"`
	// Installed says whether the cluster knows it.
	Installed bool `json:"installed"`
}

// Run shows the operators.
func (o *OperatorsOptions) Run(ctx context.Context) error {
	v, d, err := reading.Once(ctx, &o.Options, o.Find)
	if err != nil {
		return err
	}

	if o.Output != output.Table {
		return o.PrintData(d)
	}

	if err := o.table(d); err != nil {
		return err
	}

	return o.PrintNotes(v)
}

// Find finds who serves the namespace.
func (o *OperatorsOptions) Find(ctx context.Context, v *reading.Cluster) (*OperatorsData, error) {
	// The scopes may be anywhere; the namespace is the one that is served.
	everywhere := o.Options
	everywhere.NamespaceGiven = false

	all, err := inNamespace(ctx, v, &everywhere, o.Namespace)
	if err != nil {
		return nil, err
	}

	return o.inside(ctx, v, all)
}

// inside are the operators of an overview that serve the namespace.
func (o *OperatorsOptions) inside(ctx context.Context, v *reading.Cluster, all *overview.Overview) (*OperatorsData, error) {
	all, err := o.withProjected(ctx, v, all)
	if err != nil {
		return nil, err
	}

	if err := o.namespaceExists(ctx, v, all); err != nil {
		return nil, err
	}

	d := &OperatorsData{Namespace: o.Namespace, Operators: []Inside{}}
	owned := all.Owned()
	m := all.Keep(overview.Filter{
		Namespace: func(name string) bool { return name == o.Namespace }, OnlyServing: true,
	}).Matrix()

	for _, operator := range m.Operators {
		inside, rules := insideOf(m, operator)

		apis, says := owned[operator]
		if !says {
			apis = customResources(rules)
		}

		for _, name := range apis {
			// A cluster-scoped resource is not served in a namespace.
			if gr := schema.ParseGroupResource(name); v.IsClusterScoped(gr.Group, gr.Resource) {
				continue
			}

			inside.APIs = append(inside.APIs, API{Resource: name})
		}

		d.Operators = append(d.Operators, inside)
	}

	if err := o.askForAPIs(ctx, v, d); err != nil {
		return nil, err
	}

	d.NotRead, d.Notes = v.NotRead(), v.Notes

	return d, nil
}

// ErrNoNamespace is wrapped by the error of a question about a namespace that is not there.
var ErrNoNamespace = errors.New("does not exist")

// namespaceExists returns an error if the namespace does not exist and no scope waits for it. For a caller who may not read
// namespaces it returns none.
func (o *OperatorsOptions) namespaceExists(ctx context.Context, v *reading.Cluster, all *overview.Overview) error {
	if slices.ContainsFunc(all.Services, func(s overview.Service) bool { return s.Namespace == o.Namespace }) {
		return nil
	}

	err := v.Get(ctx, client.ObjectKey{Name: o.Namespace}, &corev1.Namespace{})

	switch {
	case err == nil, apierrors.IsForbidden(err):
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("namespace %s %w; kubectl get namespaces lists those that do", o.Namespace, ErrNoNamespace)
	default:
		return fmt.Errorf("looking for namespace %s: %w", o.Namespace, err)
	}
}

// insideOf sums up the cells of an operator, and returns the rules that it holds there.
func insideOf(m *overview.Matrix, operator overview.Operator) (Inside, []rbacv1.PolicyRule) {
	inside := Inside{Operator: operator, APIs: []API{}}
	inside.ClusterWide = collect.Filter(m.ClusterWide, func(c overview.ClusterWide) bool { return c.Operator == operator })

	var rules []rbacv1.PolicyRule

	for _, namespace := range m.Namespaces {
		cell := m.At(operator, namespace)
		if cell == nil {
			continue
		}

		inside.State = cell.State

		for i := range cell.Services {
			s := &cell.Services[i]
			inside.Scopes = append(inside.Scopes, s.Scope)

			if s.State == cell.State {
				inside.Reason, inside.Message = s.Reason, s.Message
			}

			for r := range s.Roles {
				rules = append(rules, s.Roles[r].Rules...)
				inside.unread = inside.unread || s.Roles[r].Rules == nil
			}
		}
	}

	return inside, rules
}

// withProjected adds what scopes left in the namespace, for a caller who may not see the scopes, or too little of what they are
// made from. What was seen there replaces a state that is unknown.
func (o *OperatorsOptions) withProjected(
	ctx context.Context, v *reading.Cluster, all *overview.Overview,
) (*overview.Overview, error) {
	unknown := func(s overview.Service) bool { return s.Namespace == o.Namespace && s.State == overview.Unknown }

	denied := v.Denied()
	mayMiss := reading.MayMiss(denied, scope.NamespaceScopes) || reading.MayMiss(denied, scope.Templates)

	if !mayMiss && !slices.ContainsFunc(all.Services, unknown) {
		return all, nil
	}

	found, err := v.Projected(ctx, o.Namespace)
	if err != nil {
		return nil, err
	}

	services := slices.DeleteFunc(all.Services, func(s overview.Service) bool {
		return unknown(s) && slices.ContainsFunc(found, func(f overview.Service) bool {
			return f.Scope == s.Scope && (f.Operator == s.Operator || s.Operator.Name == overview.AnyAccount)
		})
	})

	return overview.New(all.Scopes, overview.Add(services, found), all.Namespaces), nil
}

// customResources are the resources that rules allow to change, without those of Kubernetes itself, sorted.
func customResources(rules []rbacv1.PolicyRule) []string {
	found := map[string]struct{}{}

	for i := range rules {
		if !slices.ContainsFunc(rules[i].Verbs, func(v string) bool { return v == "*" || v == "update" || v == "patch" }) {
			continue
		}

		for _, name := range plan.ResourcesOf(&rules[i]) {
			group := schema.ParseGroupResource(name).Group
			if strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") {
				found[name] = struct{}{}
			}
		}
	}

	return slices.Sorted(maps.Keys(found))
}

// askForAPIs asks the API server what the caller may do with each of the resources.
func (o *OperatorsOptions) askForAPIs(ctx context.Context, v *reading.Cluster, d *OperatorsData) error {
	var apis []*API

	for i := range d.Operators {
		for k := range d.Operators[i].APIs {
			apis = append(apis, &d.Operators[i].APIs[k])
		}
	}

	return v.Each(ctx, "asking what you may use", len(apis), func(i int) error {
		gr := schema.ParseGroupResource(apis[i].Resource)

		_, apis[i].Installed = discovered.IsClusterScoped(v.RESTMapper(), gr)
		apis[i].You = "no"

		for _, may := range []struct{ verb, word string }{{"get", "view"}, {"create", "edit"}} {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: o.Namespace, Verb: may.verb, Group: gr.Group, Resource: gr.Resource,
				},
			}}
			if err := v.Create(ctx, review); err != nil {
				return fmt.Errorf("asking what you may do: %w", err)
			}

			if review.Status.Allowed {
				apis[i].You = may.word
			}
		}

		return nil
	})
}

func (o *OperatorsOptions) table(d *OperatorsData) error {
	if len(d.Operators) == 0 {
		return output.Say(o.Out, "%s", nothing(d.NotRead, "No operator serves namespace "+d.Namespace, true))
	}

	paint := terminal.PaintFor(o.Out)
	t := terminal.Table{}
	t.Row(paint.Bold("OPERATOR"), paint.Bold("STATE"), paint.Bold("CUSTOM RESOURCE"), paint.Bold("YOU MAY"), paint.Bold("SCOPE"))

	var wide []overview.ClusterWide

	for i := range d.Operators {
		op := &d.Operators[i]

		state := terminal.Of(op.State)

		switch {
		case op.State == overview.Unknown, op.Reason == overview.Finishing:
			state = paint.Warn(terminal.Textf("%s: %s", op.State, op.Reason))
		case op.Reason != "":
			state = paint.Bad(terminal.Textf("%s: %s", op.State, op.Reason))
		}

		state = terminal.Textf("%s%s", state, wideMark(paint, len(op.ClusterWide) > 0))
		wide = append(wide, op.ClusterWide...)

		scopes := strings.Join(slices.Compact(slices.Clone(op.Scopes)), ", ")
		if len(op.APIs) == 0 {
			none := "none"
			if op.unread && len(d.NotRead) > 0 {
				none = "not read"
			}

			t.Row(op.String(), state, paint.Dim(none), "", scopes)
		}

		for k := range op.APIs {
			api := &op.APIs[k]
			name, you := terminal.Of(api.Resource), paint.Good(api.You)

			if !api.Installed {
				name = terminal.Textf("%s%s", name, paint.Warn(" (not installed)"))
			}

			if api.You == "no" {
				you = paint.Bad(api.You)
			}

			if k == 0 {
				t.Row(op.String(), state, name, you, scopes)
			} else {
				t.Row("", "", name, you, "")
			}
		}
	}

	return output.Print(o.Out, terminal.Textf("%s%s", t.Text(), clusterWide(paint, wide)))
}
