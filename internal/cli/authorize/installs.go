package authorize

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// decideInstalls says what is granted to the account of the other namespace's OperatorGroup: the permissions that the operators
// installed there ask for in their targets.
func (o *Options) decideInstalls(ctx context.Context, w *session) ([]grant.Grant, []string, error) {
	var groups operatorsv1.OperatorGroupList

	switch err := w.List(ctx, &groups, client.InNamespace(o.To)); {
	case meta.IsNoMatchError(err):
		return nil, nil, snapshot.OLMNotInstalled("OperatorGroups")
	case err != nil:
		return nil, nil, describeRefusal(err, "listing the OperatorGroups of namespace %s", o.To)
	}

	g := grant.Grant{Namespace: o.Namespace, To: o.To, Account: o.Account, Installs: true}

	if len(groups.Items) == 1 {
		g.Account = cmp.Or(g.Account, groups.Items[0].Spec.ServiceAccountName)
	}

	if g.Account == "" {
		return nil, nil, fmt.Errorf("namespace %s has no OperatorGroup that names a service account, or several; say to whom to "+
			"grant: --service-account NAME", o.To)
	}

	permitted, notes, err := w.permittedByInstalls(ctx, o.To, o.Namespace)
	g.Rules = authority.GrantForInstalls(permitted)

	return []grant.Grant{g}, notes, err
}

// permittedByInstalls are the rules that the operators of a namespace get in a target.
func (w *session) permittedByInstalls(
	ctx context.Context, namespace, target string,
) (permitted []rbacv1.PolicyRule, notes []string, err error) {
	list := scope.NewOLMList(scope.KindCSV)
	if err := w.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, nil, describeRefusal(err, "listing the ClusterServiceVersions of namespace %s", namespace)
	}

	var unreadable []string

	for i := range list.Items {
		if install.IsCopy(&list.Items[i]) {
			continue
		}

		csv, err := install.Read(&list.Items[i])
		if err != nil {
			unreadable = append(unreadable, list.Items[i].GetName())

			continue
		}

		for _, place := range install.NeedsConfined(csv, namespace, []string{target}) {
			if place.Namespace == target {
				permitted = append(permitted, place.Handed...)
			}
		}
	}

	if len(unreadable) > 0 {
		notes = append(notes, "these cannot be read, and nothing is granted for them: "+
			strings.Join(printable.Names(unreadable), ", "))
	}

	if len(permitted) == 0 {
		notes = append(notes, "nothing that is installed there asks for permissions at present; run this again when something does")
	}

	return permitted, notes, nil
}
