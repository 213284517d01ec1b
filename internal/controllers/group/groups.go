package group

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/controllers/declared"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
)

// maxGroups is how many bytes of memory the OperatorGroups of a namespace may take. The one that is to serve something fits,
// however large it is.
const maxGroups = 6 << 20

// NewGroupQuota bounds what is kept of the OperatorGroups of a namespace. Several groups of one namespace serve nothing, so of
// those that are over the limit only their existence is kept, and which account they name.
func NewGroupQuota() *declared.Quota { return declared.NewQuota(maxGroups, emptyGroup) }

func emptyGroup(obj client.Object) {
	obj.SetFinalizers(nil)

	if g, is := obj.(*operatorsv1.OperatorGroup); is {
		// With neither it would be for all namespaces.
		g.Spec.TargetNamespaces, g.Spec.Selector = []string{g.Namespace}, nil

		// No account can have a name as long. What is kept must neither be the name of another account nor empty, which means Ambit
		// itself.
		if name := g.Spec.ServiceAccountName; len(name) > validation.DNS1123SubdomainMaxLength {
			g.Spec.ServiceAccountName = strings.Clone(name[:validation.DNS1123SubdomainMaxLength]) + "!"
		}
	}
}

// note records what a write to a group returned. One that the cache emptied is not remembered as a whole.
func (r *Reconciler) note(g, before *operatorsv1.OperatorGroup) {
	if declared.IsEmptied(before) {
		r.written.Note(g)
	} else {
		r.written.Remember(g)
	}
}

// fit reads the group of a namespace again that the cache has emptied because there were others beside it. Writing its status
// makes the API server report the whole of it once more.
func (r *Reconciler) fit(ctx context.Context, namespace string, groups []*operatorsv1.OperatorGroup) error {
	if r.Groups == nil {
		return nil
	}

	r.Groups.Keep(namespace, collect.Map(groups, func(g *operatorsv1.OperatorGroup) client.Object { return g }))

	if len(groups) != 1 || !declared.IsEmptied(groups[0]) {
		return nil
	}

	g := groups[0]
	if is, err := declared.Anew(ctx, r.Live, g); err != nil || !is {
		return err
	}

	before := g.DeepCopy()
	g.Status.LastUpdated = new(metav1.NewTime(r.Time()))

	return generic.WriteStatus(ctx, r.Client, g, before)
}
