package compile

import (
	"cmp"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Install is how the group of a ClusterServiceVersion installs it.
type Install struct {
	// Targets are the namespaces that the operator is to serve; the empty name alone stands for all of them.
	Targets []string
	// Account is the service account, of the same namespace, that everything is written as; empty means Ambit itself.
	Account string
	// Listed are the namespaces that the annotation of the operator names now.
	Listed []string
	// Confined says that nothing can be made in the cluster as a whole, and that what is made in targets goes with what their owners
	// granted.
	Confined bool
}

// IsEverywhere says whether targets are all namespaces.
func IsEverywhere(targets []string) bool { return slices.Contains(targets, "") }

// ClusterServiceVersion compiles the permissions of a member of a group: its permissions in its own namespace and in each
// target, or in the whole cluster when those are all namespaces, and its clusterPermissions.
func ClusterServiceVersion(csv *olm.ClusterServiceVersion, in Install) scope.Scope {
	c := csvCompiler{namespace: csv.Namespace, scope: scope.Scope{
		Owner: CSVOwner(csv.Namespace, csv.Name), Key: scope.Installs.In(csv.Namespace),
		Generation: csv.Generation, Created: csv.CreationTimestamp.Time,
		OwnerUID: string(csv.UID), OwnerVersion: olm.SchemeGroupVersion.Version,
		Delegate: in.Account, Listed: in.Listed, Confined: in.Confined,
		Members: scope.Members{Named: distinct(append([]string{csv.Namespace}, in.Targets...))},
	}}
	strategy := &csv.Spec.InstallStrategy.StrategySpec
	everywhere := IsEverywhere(in.Targets)

	for _, g := range byAccount(strategy.Permissions) {
		if everywhere {
			c.inCluster(LiftedSlot(c.scope.Owner, g.account), g, append(g.rules, SeeNamespaces()))
		} else {
			c.inMembers(csv.Name+"-"+g.account, g)
		}
	}

	clusterPermissions := strategy.ClusterPermissions
	if in.Confined {
		clusterPermissions = nil // A requirement of the install, which somebody else meets.
	}

	for _, g := range byAccount(clusterPermissions) {
		c.inCluster(ClusterSlot(c.scope.Owner, g.account), g, g.rules)
	}

	c.scope.Members.Cluster = len(c.scope.Defines) > 0
	if everywhere {
		c.scope.Members = scope.Members{Everywhere: true}
	}

	return c.scope
}

// CSVOwner names a ClusterServiceVersion as the owner of what is made for it.
func CSVOwner(namespace, name string) scope.Owner {
	return scope.Owner{Group: olm.GroupName, Kind: scope.KindCSV, Namespace: namespace, Name: name}
}

// What a role is made for is part of its name's hash: the permissions of an account "x-cluster" are not the clusterPermissions of
// an account "x".
const inEachMember, liftedToCluster, ofCluster = string(projected.Role), string(projected.ClusterRole), "clusterPermissions"

// ClusterSlot is the slot of the clusterPermissions of an account, by the CSV that asks for them.
func ClusterSlot(csv scope.Owner, account string) string {
	return slotOf(csv, ofCluster, csv.Name+"-"+AccountOr(account)+"-cluster")
}

// LiftedSlot is the slot of the permissions of an account, where they are for the whole cluster because the group is for all
// namespaces.
func LiftedSlot(csv scope.Owner, account string) string {
	return slotOf(csv, liftedToCluster, csv.Name+"-"+AccountOr(account))
}

func slotOf(csv scope.Owner, what, stem string) string {
	return projected.Slot(csv.Hash(), projected.Source{Kind: what, Namespace: csv.Namespace, Name: stem})
}

// AccountOr is the account that permissions are for; they need not name one.
func AccountOr(name string) string { return cmp.Or(name, scope.DefaultAccount) }

type csvCompiler struct {
	namespace string
	scope     scope.Scope
}

// grant is what one account of an operator is permitted.
type grant struct {
	account string
	rules   []rbacv1.PolicyRule
}

// byAccount unites the permissions of each account, sorted by its name.
func byAccount(permissions []olm.StrategyDeploymentPermissions) []grant {
	var grants []grant

	for _, p := range permissions {
		account := AccountOr(p.ServiceAccountName)

		i := slices.IndexFunc(grants, func(g grant) bool { return g.account == account })
		if i < 0 {
			i = len(grants)
			grants = append(grants, grant{account: account})
		}

		grants[i].rules = append(grants[i].rules, p.Rules...)
	}

	slices.SortFunc(grants, func(a, b grant) int { return cmp.Compare(a.account, b.account) })

	return grants
}

func (c *csvCompiler) inMembers(stem string, g grant) {
	name := slotOf(c.scope.Owner, inEachMember, stem)
	c.scope.Roles = append(c.scope.Roles, scope.Role{Name: name, Rules: g.rules, Source: c.scope.Owner.String()})
	c.scope.Binds = append(c.scope.Binds, scope.Binding{Role: name, Local: true, Rules: g.rules, Subjects: c.subjects(g)})
}

func (c *csvCompiler) inCluster(name string, g grant, rules []rbacv1.PolicyRule) {
	c.scope.Defines = append(c.scope.Defines, scope.ClusterRole{Name: name, Rules: rules, Source: c.scope.Owner.String()})
	c.scope.Binds = append(c.scope.Binds, scope.Binding{Role: name, Everywhere: true, Rules: rules, Subjects: c.subjects(g)})
}

func (c *csvCompiler) subjects(g grant) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.namespace, Name: g.account}}
}

// SeeNamespaces is what OLM adds to permissions that it lifts to the whole cluster (ensureSingletonRBAC in
// pkg/controller/operators/olm/operator.go).
func SeeNamespaces() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"}}
}
