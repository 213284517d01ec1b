package install

import (
	"cmp"
	"crypto/sha256"
	"hash/fnv"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/rights"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// userRole is what users may be given on an API: OLM's three suffixes, and the verbs that it gives to each
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
	aggregates    = "true"
)

// APIRoles are the ClusterRoles by which users get access to the APIs that a CSV owns, for each definition that exists: admin,
// edit and view of its resources, and view of the definition itself. The definition owns them, so there are none for one that is
// being deleted. Nor are there any for declarations, for which Ambit acts: the roles of Kubernetes only look at these, whatever a
// CSV says that it owns.
func (w *Snapshot) APIRoles(csv *olm.ClusterServiceVersion) []*rbacv1.ClusterRole {
	var out []*rbacv1.ClusterRole

	for _, d := range csv.Spec.CustomResourceDefinitions.Owned {
		crd, found := w.CRDs[d.Name]
		plural, group, _ := strings.Cut(d.Name, ".")

		if !found || len(crd.Served) == 0 || slices.Contains(declaredIn(), group) {
			continue
		}

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
				labelToUsers + to:                      aggregates,
				labelToGroups + hashOf(api) + "-" + to: aggregates,
				scope.LabelManagedBy:                   scope.ManagedBy,
			},
			Annotations: map[string]string{scope.AnnotationAPI: d.Name + "/" + d.Version},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apiextensions.k8s.io/v1", Kind: kindOfCRD, Name: d.Name, UID: crd.UID,
			}},
		},
		Rules: []rbacv1.PolicyRule{rule},
	}
}

// ShrunkError says that a ClusterRole for users lacks rules that it should have.
type ShrunkError struct{ Name string }

// Error says what to do.
func (e *ShrunkError) Error() string {
	return "ClusterRole " + e.Name + " lacks rules, and Ambit gives none to a ClusterRole that is there: somebody may have bound " +
		"it without them; look at its bindings, and delete the ClusterRole: Ambit creates it again"
}

// LeftOutError says that Ambit does not know what a ClusterRole for users says.
type LeftOutError struct{ Name string }

// Error says what to do.
func (e *LeftOutError) Error() string {
	return "ClusterRole " + e.Name + " is not compared with what it should be: it says too much, or all ClusterRoles of the " +
		"cluster do; look at it and its bindings, and delete it: Ambit creates it again"
}

// HasShrunk says whether a live one of APIRoles lacks rules.
func HasShrunk(live, want *rbacv1.ClusterRole) bool { return !rights.Covers(live.Rules, want.Rules) }

// Corrected is a live one of APIRoles as it should be; nil when it is that already. What others added stays, but for what would
// give the rules to more users than they are for. Two ClusterServiceVersions that bring one API both find it as it should be,
// also when they call its kind by two names: each adds its own label.
//
// It never gains rules. Everybody knows its name, so whoever may write ClusterRoles could take the rules from it, bind it,
// which is then allowed to them, and hold the rules once it has them again.
func Corrected(live, want *rbacv1.ClusterRole) *rbacv1.ClusterRole {
	out := live.DeepCopy()
	out.Rules, out.AggregationRule = want.Rules, nil

	if HasShrunk(live, want) {
		out.Rules = rights.Common(live.Rules, want.Rules)
	}

	to := aims(want.Labels)
	maps.DeleteFunc(out.Labels, func(key, value string) bool {
		aim := aimOf(key)

		return key == scope.LabelScope || value == aggregates && aim != "" && !slices.Contains(to, aim)
	})

	out.Labels = merged(out.Labels, want.Labels)
	delete(out.Annotations, scope.AnnotationOwner)
	delete(out.Annotations, scope.AnnotationSource)

	if !isOwnedAlike(live, want) {
		out.OwnerReferences = want.OwnerReferences
	}

	if equality.Semantic.DeepEqual(live, out) {
		return nil
	}

	metav1.SetMetaDataAnnotation(&out.ObjectMeta, scope.AnnotationAPI, want.Annotations[scope.AnnotationAPI])

	return out
}

// aims are the suffixes of the roles that take rules from a ClusterRole with labels.
func aims(labels map[string]string) []string {
	var out []string

	for key := range labels {
		if aim := aimOf(key); aim != "" {
			out = append(out, aim)
		}
	}

	return out
}

// aimOf is the suffix that the key of an aggregating label ends with, for Kubernetes' roles and for those of groups; empty for
// every other label.
func aimOf(key string) string {
	aim, found := strings.CutPrefix(key, labelToUsers)
	if !found && strings.HasPrefix(key, labelToGroups) {
		aim = key[strings.LastIndex(key, "-")+1:]
	}

	if !slices.ContainsFunc(userRoles(), func(r userRole) bool { return r.suffix == aim }) {
		return ""
	}

	return aim
}

// isOwnedAlike says whether two have the same owners. An object is deleted only with the last of its owners, so one more is one
// too many.
func isOwnedAlike(live, want *rbacv1.ClusterRole) bool {
	return slices.EqualFunc(live.OwnerReferences, want.OwnerReferences, func(a, b metav1.OwnerReference) bool {
		return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID
	})
}

// GroupRoles are the ClusterRoles of a group, which take their rules from those of the APIs that its members provide. They are
// there before the first of these, and after the last, without a rule, so that users can be bound to them.
func GroupRoles(g *Group, provided []string) []scope.ClusterRole {
	out := make([]scope.ClusterRole, 0, len(userRoles()))

	for _, r := range userRoles() {
		role := scope.ClusterRole{Name: groupRoleName(g, r.suffix), Source: GroupOwner(g).String(), Fixed: true}
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
