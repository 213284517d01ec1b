package install

import (
	"cmp"
	"crypto/sha256"
	"hash/fnv"
	"math/big"
	"slices"
	"strconv"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// userRole is what people may be given on an API: OLM's three suffixes, and the verbs that it gives to each
// (ensureProvidedAPIClusterRole in pkg/controller/operators/olm/operatorgroup.go).
type userRole struct {
	suffix string
	verbs  []string
}

func userRoles() []userRole {
	return []userRole{
		{"admin", []string{"*"}},
		{"edit", []string{"create", "update", "patch", "delete"}},
		{"view", []string{"get", "list", "watch"}},
	}
}

const (
	maxName       = 253
	labelToUsers  = "rbac.authorization.k8s.io/aggregate-to-"
	labelToGroups = "olm.opgroup.permissions/aggregate-to-"
)

// APIRoles are the ClusterRoles by which people are let at the APIs that a CSV owns, for each definition that exists: admin, edit
// and view of its resources, and view of the definition itself. They go with the definition.
func (w *World) APIRoles(csv *olm.ClusterServiceVersion) []*rbacv1.ClusterRole {
	var out []*rbacv1.ClusterRole

	for _, d := range csv.Spec.CustomResourceDefinitions.Owned {
		crd, found := w.CRDs[d.Name]
		if !found {
			continue
		}

		plural, group, _ := strings.Cut(d.Name, ".")
		api := d.Kind + "." + d.Version + "." + group

		for _, r := range userRoles() {
			out = append(out, apiRole(d, crd, r.suffix, r.suffix, api, rbacv1.PolicyRule{
				APIGroups: []string{group}, Resources: []string{plural}, Verbs: r.verbs,
			}))
		}

		out = append(out, apiRole(d, crd, "crdview", "view", api, rbacv1.PolicyRule{
			APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"},
			ResourceNames: []string{d.Name}, Verbs: []string{"get"},
		}))
	}

	slices.SortFunc(out, func(a, b *rbacv1.ClusterRole) int { return cmp.Compare(a.Name, b.Name) })

	return out
}

func apiRole(d olm.CRDDescription, crd CRD, suffix, to, api string, rule rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{
			Name: d.Name + "-" + d.Version + "-" + suffix,
			Labels: map[string]string{
				labelToUsers + to:                      "true",
				labelToGroups + hashOf(api) + "-" + to: "true",
				scope.LabelManagedBy:                   scope.ManagedBy,
			},
			OwnerReferences: []metav1.OwnerReference{crd.ownerOf(d.Name)},
		},
		Rules: []rbacv1.PolicyRule{rule},
	}
}

// GroupRoles are the ClusterRoles of a group, which take their rules from those of the APIs that its members provide.
func GroupRoles(g *Group, provided []string) []scope.ClusterRole {
	if len(provided) == 0 {
		return nil
	}

	var out []scope.ClusterRole

	for _, r := range userRoles() {
		role := scope.ClusterRole{Name: groupRoleName(g, r.suffix), Source: GroupOwner(g).String()}
		for _, api := range provided {
			role.Aggregates = append(role.Aggregates, labelToGroups+hashOf(api)+"-"+r.suffix)
		}

		slices.Sort(role.Aggregates)
		out = append(out, role)
	}

	return out
}

// GroupOwner names a group as the owner of what is made for it.
func GroupOwner(g *Group) scope.Owner {
	return scope.Owner{Group: olm.GroupName, Kind: scope.KindGroup, Namespace: g.Namespace, Name: g.Name}
}

// groupRoleName is the name that OLM gives (olm 3035 and 3593): the group's name, shortened, and a hash in base 62.
func groupRoleName(g *Group, suffix string) string {
	sum := sha256.Sum224([]byte(g.Namespace + "/" + g.Name + "/" + suffix))
	tail := "." + suffix + "-" + new(big.Int).SetBytes(sum[:]).Text(62)

	const head = "olm.og."

	return head + g.Name[:min(len(g.Name), maxName-len(head)-len(tail))] + tail
}

// hashOf stands for an API in the key of a label, which has no room for its name.
func hashOf(api string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(api)) // A hash never fails.

	return strconv.FormatUint(h.Sum64(), 16)
}

func (c CRD) ownerOf(name string) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "apiextensions.k8s.io/v1", Kind: kindOfCRD, Name: name, UID: c.UID,
	}
}
