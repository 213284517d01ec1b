package preflight

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/rights"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// guarded are the policies of config/guard that ask whoever writes an object for a right: delegate for the right to use the
// account that Ambit would write as, and own, where that is Ambit itself or nobody knows who, for the right to escalate
// clusterroles.
type guarded struct {
	delegate, own string
	// byGroup says that the account is that of the OperatorGroup beside the object, and not one that the object names itself.
	byGroup bool
}

//nolint:gochecknoglobals // A struct can be no constant.
var (
	guardedGroups     = olms("operatorgroups")
	guardedConfigMaps = corev1.Resource("configmaps")

	ofScopes    = guarded{delegate: "ambit-delegate-identity", own: "ambit-own-identity"}
	ofTemplates = guarded{own: "ambit-cluster-scoped"}
	ofOperators = guarded{"ambit-delegate-identity-operators", "ambit-own-identity-operators", true}

	policies = map[schema.GroupResource]guarded{
		operatorv1.GroupVersion.WithResource("namespacescopes").GroupResource():             ofScopes,
		namespacescopev1alpha1.GroupVersion.WithResource("namespacescopes").GroupResource(): ofScopes,
		guardedGroups:                  {delegate: "ambit-delegate-identity-groups", own: "ambit-own-identity-groups"},
		olms("scopetemplates"):         ofTemplates,
		olms("scopeinstances"):         ofTemplates,
		olms("clusterserviceversions"): ofOperators,
		olms("subscriptions"):          ofOperators,
		olms("installplans"):           ofOperators,
		olms("catalogsources"):         ofOperators,
		guardedConfigMaps:              {"ambit-delegate-identity-catalogs", "ambit-own-identity-catalogs", true},
	}
)

func olms(resource string) schema.GroupResource {
	return schema.GroupResource{Group: operatorsv1.GroupVersion.Group, Resource: resource}
}

// catalogKey is the key by which the guard knows the ConfigMap of a catalog.
const catalogKey = "clusterServiceVersions"

// Guard are the admission policies of Ambit that a cluster has, with what they go by. They ask for plain rights.
type Guard struct {
	// InForce are the names of the policies, each with the account that it takes for that of scopes which name none.
	InForce map[string]string
	// User is who would write, as the API server calls them; empty where that is not known.
	User string
	// Account is the service account that the OperatorGroups of a namespace name, as the guard reads it; known is false where
	// nobody may say.
	Account func(namespace string) (account string, known bool)
	// Live is an object as it is in the cluster; nil where there is none.
	Live func(o *Object, namespace string) scope.Object
}

// Guards says whether a policy of the guard can be about an object, and whether that goes by the accounts of OperatorGroups.
func Guards(o *Object) (is, byGroups bool) {
	p, is := guardOf(o)

	return is, is && p.byGroup
}

func guardOf(o *Object) (p guarded, is bool) {
	if p, is = policies[o.Resource]; o.Resource == guardedConfigMaps {
		_, is, _ = unstructured.NestedFieldNoCopy(contentOf(o.Object), "data", catalogKey)
	}

	return p, is
}

// Needs says what the policies ask of whoever writes objects, besides what RBAC asks. Objects that name no namespace are written
// into each of the namespaces. They count as new ones: of an object that changes nothing, no policy asks anything.
func (g *Guard) Needs(objects []Object, namespaces []string) []Need {
	n := &guardNeeds{needs{at: map[string]*Need{}, objects: objects}, namespaces}

	for i := range objects {
		for _, place := range objects[i].places(namespaces) {
			g.add(n, &objects[i], place)
		}
	}

	return n.all()
}

// guardNeeds are the needs of objects that are written into some namespaces.
type guardNeeds struct {
	needs

	namespaces []string
}

// groupAccount is the account of the OperatorGroup that the objects would make in a namespace. Once it is there, the guard goes
// by it.
func (n *guardNeeds) groupAccount(namespace string) string {
	for i := range n.objects {
		o := &n.objects[i]
		if o.Resource == guardedGroups && slices.Contains(o.places(n.namespaces), namespace) {
			return accountOf(o.Object, "")
		}
	}

	return ""
}

func (g *Guard) add(n *guardNeeds, o *Object, place string) {
	switch p, is := guardOf(o); {
	case !is:
	case p.byGroup:
		g.addInstalled(n, place, p)
	case p.delegate != "":
		g.addDeclared(n, o, place, p)
	case g.has(p.own):
		n.escalates()
	}
}

func (g *Guard) has(policy string) bool {
	_, has := g.InForce[policy]

	return has
}

// addDeclared is about an object that says itself which account Ambit writes as. One that named none before is Ambit's own to
// change, too.
func (g *Guard) addDeclared(n *guardNeeds, o *Object, place string, p guarded) {
	if account := accountOf(o.Object, g.InForce[p.delegate]); g.has(p.delegate) && account != "" {
		n.uses(place, account)
	}

	if !g.has(p.own) {
		return
	}

	byDefault := g.InForce[p.own]
	if accountOf(o.Object, byDefault) == "" {
		n.escalates()

		return
	}

	if live := g.Live(o, place); live != nil && accountOf(live, byDefault) == "" {
		n.escalates()
	}
}

// addInstalled is about what is installed as the account of the OperatorGroup beside it. That account itself may write it.
func (g *Guard) addInstalled(n *guardNeeds, place string, p guarded) {
	account, known := g.Account(place)
	if !known {
		return
	}

	account = cmp.Or(account, n.groupAccount(place))

	if g.has(p.delegate) && (account == "" || g.User != scope.AccountUser(place, account)) {
		n.uses(place, account)
	}

	if g.has(p.own) && account == "" {
		n.escalates()
	}
}

// accountOf is the account that an object says Ambit writes as.
func accountOf(obj scope.Object, byDefault string) string {
	content := contentOf(obj)
	account, _, _ := unstructured.NestedString(content, "spec", "serviceAccountName")
	manual, _, _ := unstructured.NestedBool(content, "spec", "manualManagement")

	switch {
	case account != "":
		return account
	case manual:
		return scope.ManualDelegate
	default:
		return byDefault
	}
}

func contentOf(obj scope.Object) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil // The API server takes no such object.
	}

	return content
}

// uses adds the right to use an account, which is to impersonate it or to run pods in its namespace. Without a name, it is all
// accounts of the namespace.
func (n *needs) uses(namespace, account string) {
	need := n.in(namespace)
	need.Handed = append(need.Handed, Handed{
		[]rbacv1.PolicyRule{rights.To(corev1.Resource("serviceaccounts"), account, "impersonate")},
		rights.To(corev1.Resource("pods"), "", "create"),
	})
}

// escalates adds the right to have Ambit write with its own rights.
func (n *needs) escalates() {
	need := n.in(Everywhere)
	need.Rules = append(need.Rules, rights.To(rbacv1.Resource("clusterroles"), "", "escalate"))
}
