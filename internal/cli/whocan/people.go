package whocan

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/explain"
)

const (
	// bindingsAtOnce is how many bindings are in memory at once: a cluster has one for each account and namespace.
	bindingsAtOnce = 500
	// maxBound is how many bindings are kept; whoever finds more gives more of the name.
	maxBound = 500
)

// People are those whose names contain a text, each with a binding that names them.
type People struct {
	Text  string          `json:"text"`
	Bound []explain.Entry `json:"bound"`
	// More says that there may be more than Bound has.
	More    bool     `json:"more,omitempty"`
	NotRead []string `json:"notRead,omitempty"`
}

// Find reads, with the rights of a client, who in the cluster has a name that contains a text. Where the client may not list the
// bindings of all namespaces, it reads those of one.
func Find(ctx context.Context, c client.Client, text, namespace string) (*People, error) {
	p := &People{Text: text, Bound: []explain.Entry{}}
	everywhere := func() client.ObjectList { return &rbacv1.ClusterRoleBindingList{} }
	bindings := func() client.ObjectList { return &rbacv1.RoleBindingList{} }

	if _, err := p.read(ctx, c, everywhere, "ClusterRoleBindings"); err != nil {
		return nil, err
	}

	all, err := p.read(ctx, c, bindings, "RoleBindings of all namespaces")
	if err == nil && !all && namespace != "" {
		_, err = p.read(ctx, c, bindings, "RoleBindings of namespace "+namespace, client.InNamespace(namespace))
	}

	if err != nil {
		return nil, err
	}

	return p, nil
}

// read finds people in a list, and says whether the client may read it.
func (p *People) read(
	ctx context.Context, c client.Client, empty func() client.ObjectList, what string, options ...client.ListOption,
) (bool, error) {
	for next := ""; !p.More; {
		list := empty()
		err := c.List(ctx, list, append(slices.Clip(options), client.Limit(bindingsAtOnce), client.Continue(next))...)

		switch {
		case apierrors.IsForbidden(err):
			p.NotRead = append(p.NotRead, "you may not list "+what)

			return false, nil
		case err != nil:
			return false, fmt.Errorf("reading %s: %w", what, err)
		}

		p.add(list)

		if next = list.GetContinue(); next == "" {
			break
		}
	}

	return true, nil
}

func (p *People) add(list client.ObjectList) {
	switch l := list.(type) {
	case *rbacv1.RoleBindingList:
		p.Bound = append(p.Bound, explain.Bound(p.Text, l.Items, nil)...)
	case *rbacv1.ClusterRoleBindingList:
		p.Bound = append(p.Bound, explain.Bound(p.Text, nil, l.Items)...)
	}

	if len(p.Bound) > maxBound {
		p.Bound, p.More = p.Bound[:maxBound], true
	}
}
