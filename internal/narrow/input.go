package narrow

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/rights"
)

// Account is a service account.
type Account = explain.Account

// The kinds that are looked into.
const (
	kindClusterRole        = "ClusterRole"
	kindClusterRoleBinding = "ClusterRoleBinding"
	kindRole               = "Role"
	kindRoleBinding        = "RoleBinding"
	kindServiceAccount     = "ServiceAccount"
	kindPod                = "Pod"
	kindScope              = "NamespaceScope"
	kindTemplate           = "ScopeTemplate"
	kindInstance           = "ScopeInstance"
	kindPolicy             = "ValidatingAdmissionPolicy"
	kindPolicyBinding      = "ValidatingAdmissionPolicyBinding"
	kindConfigMap          = "ConfigMap"
	kindDefinition         = "CustomResourceDefinition"
)

// clusterRole, role and binding are objects with their documents.
type (
	clusterRole struct {
		*rbacv1.ClusterRole

		doc *Document
		// takes says of which ClusterRoles it takes the rules, by their labels.
		takes func(labels map[string]string) bool
	}
	role struct {
		*rbacv1.Role

		doc *Document
	}
	// binding is a RoleBinding, or without a namespace a ClusterRoleBinding.
	binding struct {
		metav1.ObjectMeta

		roleRef  rbacv1.RoleRef
		subjects []rbacv1.Subject
		doc      *Document
		// live says that it is not of the input, but of the cluster.
		live bool
	}
)

// input is what a stream holds.
type input struct {
	clusterRoles map[string]*clusterRole
	roles        map[string]*role
	// bound are the documents of bindings, by their identities.
	bound map[string]*Document
	// everywhere are ClusterRoleBindings, bindings are RoleBindings.
	everywhere, bindings []*binding
	// workloads are what runs as each account.
	workloads map[Account][]*workload
	accounts  map[Account]bool
	// identities are the objects that are there, by kind, namespace and name.
	identities map[string]*Document
	namespaces []string
	// names are those of clusterRoles, sorted.
	names []string
	// left are the rules, by names, of ClusterRoles that an older version has and this one leaves out.
	left map[string]*clusterRole
	// taken are the ClusterRoles whose rules others take, by the names of those.
	taken map[string][]string
	given map[string]given
}

// maxAtoms is how many single rights a role may stand for. The largest real ones stand for a few thousand.
const maxAtoms = 200_000

var errTooManyRights = errors.New("its rules stand for more than 200,000 single rights; split it")

// gather reads the objects of a stream. Objects without a namespace are in the given one.
func gather(s *Stream, namespace string, kinds *reach.Kinds) (*input, error) {
	in := &input{
		clusterRoles: map[string]*clusterRole{}, roles: map[string]*role{}, accounts: map[Account]bool{},
		bound: map[string]*Document{}, identities: map[string]*Document{}, taken: map[string][]string{}, given: map[string]given{},
		workloads: map[Account][]*workload{},
	}

	var errs []error

	for d := range s.objects() {
		if err := in.take(d, namespace, kinds); err != nil {
			errs = append(errs, err)
		}
	}

	in.names = slices.Sorted(maps.Keys(in.clusterRoles))

	return in, errors.Join(errs...)
}

func identity(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

func (in *input) take(d *Document, namespace string, kinds *reach.Kinds) error {
	if d.APIVersion == "" && isRead(d.Kind) {
		return d.failed(errors.New("it has no apiVersion, so nobody knows what it is, and kubectl would refuse it"))
	}

	if d.Name == "" && isRBAC(d) {
		return d.failed(errors.New("it has no metadata.name, by which it would be applied; give it one instead of a generateName"))
	}

	at := d.placeIn(namespace)

	// An object that names no namespace may be cluster-scoped: not every kind is known.
	in.identities[identity(d.Kind, at, d.Name)] = d
	in.identities[identity(d.Kind, d.Namespace, d.Name)] = d

	switch d.Kind {
	case kindDefinition:
		return addDefinition(d, kinds)
	case kindServiceAccount:
		in.accounts[Account{Namespace: at, Name: d.Name}] = true
	case "Namespace":
		in.namespaces = append(in.namespaces, d.Name)
	case kindClusterRole, kindRole:
		if isRBAC(d) {
			return in.takeRole(d, at)
		}
	case kindClusterRoleBinding, kindRoleBinding:
		if isRBAC(d) {
			return in.takeBinding(d, at)
		}
	default:
		w, err := workloadOf(d, at)
		if w != nil {
			in.workloads[w.account] = append(in.workloads[w.account], w)
		}

		return err
	}

	return nil
}

// placeIn is the namespace of an object, where those that name none are in the given one.
func (d *Document) placeIn(namespace string) string {
	if d.Kind == kindClusterRole || d.Kind == kindClusterRoleBinding {
		return "" // Whatever their documents say.
	}

	return cmp.Or(d.Namespace, namespace)
}

func isRBAC(d *Document) bool { return strings.HasPrefix(d.APIVersion, rbacv1.GroupName+"/") }

func (in *input) takeRole(d *Document, namespace string) error {
	obj := &rbacv1.ClusterRole{} // A Role has the same fields.
	if err := d.into(obj); err != nil {
		return err
	}

	switch {
	case rights.CountRepeated(obj.Rules) > maxAtoms:
		return d.failed(errTooManyRights)
	case d.Kind == kindRole && in.roles[namespace+"/"+obj.Name] != nil:
		return twice(d, in.roles[namespace+"/"+obj.Name].doc)
	case d.Kind == kindRole:
		in.roles[namespace+"/"+obj.Name] = &role{&rbacv1.Role{ObjectMeta: obj.ObjectMeta, Rules: obj.Rules}, d}
	case in.clusterRoles[obj.Name] != nil:
		return twice(d, in.clusterRoles[obj.Name].doc)
	default:
		in.clusterRoles[obj.Name] = &clusterRole{obj, d, explain.Aggregates(obj.AggregationRule)}
	}

	return nil
}

// twice refuses what is there twice: which of them is applied depends on how.
func twice(d, other *Document) error {
	return fmt.Errorf("%s is there twice: in %s, line %d, and in %s, line %d", d, other.Source, other.Line, d.Source, d.Line)
}

func (in *input) takeBinding(d *Document, namespace string) error {
	obj := &rbacv1.RoleBinding{} // A ClusterRoleBinding has the same fields.
	if err := d.into(obj); err != nil {
		return err
	}

	if other := in.bound[identity(d.Kind, namespace, obj.Name)]; other != nil {
		return twice(d, other)
	}

	in.bound[identity(d.Kind, namespace, obj.Name)] = d
	b := &binding{ObjectMeta: obj.ObjectMeta, roleRef: obj.RoleRef, subjects: obj.Subjects, doc: d}
	if d.Kind == kindClusterRoleBinding {
		b.Namespace = ""
		in.everywhere = append(in.everywhere, b)
	} else {
		b.Namespace = namespace
		in.bindings = append(in.bindings, b)
	}

	return nil
}

// addDefinition reads the few fields that matter from the document itself: definitions are most of what charts hold.
func addDefinition(d *Document, kinds *reach.Kinds) error {
	spec := child(d.body, "spec")

	for _, part := range []struct {
		of   *yaml.Node
		keys []string
	}{
		{d.body, []string{"spec"}},
		{spec, []string{"group", "names", "scope", "conversion"}},
		{child(spec, "names"), []string{"plural"}},
		{child(spec, "conversion"), []string{"strategy"}},
	} {
		if part.of == nil || part.of.Kind != yaml.MappingNode {
			continue
		}

		if err := onlyPlain(part.of, part.keys); err != nil {
			return fmt.Errorf("%s of %s: %w", d, d.Source, err)
		}
	}

	group, plural, where := text(d.body, "spec", "group"), text(d.body, "spec", "names", "plural"), text(d.body, "spec", "scope")
	if group == "" || plural == "" || where != "Namespaced" && where != "Cluster" {
		return fmt.Errorf("%s of %s, line %d, is no definition: its spec lacks group, names.plural or scope", d, d.Source, d.Line)
	}

	if of := (reach.Resource{Group: group, Name: plural}); !kinds.AddCustom(of, where == "Namespaced") {
		return fmt.Errorf("%s of %s, line %d, says that the scope of %s is %s, which it is not, and no definition can change that; "+
			"leave the definition out, or delete the one that is there before", d, d.Source, d.Line, printable.Name(of.String()), where)
	}

	return nil
}
