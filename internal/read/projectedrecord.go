package read

import (
	"encoding/json"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

type projectedRecord struct {
	facts.Projected

	bucket bucket
	// foreign is set for a binding of somebody else's; it is the copy that it refers to.
	foreign *projectedKey
	// authorization or authorizationRole is set for what the owner of a namespace granted.
	authorization     *authorizationRecord
	authorizationRole *authorizationRole
	// legacy is set for what bears the marks of IBM's operator, and none of Ambit's.
	legacy *facts.Legacy
}

// convert reads an object that Ambit made. Its name tells: whoever takes all marks away, or writes others, must not
// thereby hide it or give it to somebody else. The watch is on all Roles and RoleBindings for the same reason. Without a key, as
// the command line has none, the marks are believed.
func (t *projectedTable) convert(obj client.Object) (projectedRecord, bool) {
	o, ok := projected.From(obj)
	if !ok {
		return projectedRecord{}, false
	}

	in := bucket{key: keyOf(o.Owner, o.Source)}
	tag, named := t.tagOf(&o, obj.GetNamespace())

	switch {
	case named && !in.key.IsZero() && t.names.Tag(in.key) == tag:
	case t.isBelieved(&o, obj) && !in.key.IsZero():
		named = t.names == nil
	case named:
		in = bucket{tag: tag}
	default:
		return t.convertOther(obj, &o)
	}

	in.key.Namespace = shared(in.key.Namespace)

	record := RecordOf(&o, obj, named)
	if !named && !t.isOld(obj) {
		// Anybody may write as the field manager that Ambit is. What has a fixed name takes its rules from others.
		record.Rules, record.Subjects = "", ""
	}

	record.Content = t.contents.one(record.Content)

	return projectedRecord{bucket: in, Projected: record}, true
}

// convertOther reads what Ambit did not make, and what it has to know of that.
func (t *projectedTable) convertOther(obj client.Object, o *projected.Object) (projectedRecord, bool) {
	if c := convertAuthorization(obj); c != nil {
		return projectedRecord{authorization: c}, true
	}

	if r := convertAuthorizationRole(obj); r != nil {
		return projectedRecord{authorizationRole: r}, true
	}

	if o.Kind.IsBinding() && t.names != nil {
		role := projectedKey{obj.GetNamespace(), facts.ProjectedKey{Kind: projected.Kind(o.RoleRef.Kind), Name: o.RoleRef.Name}}
		if role.Kind.IsClusterScoped() {
			role.namespace = ""
		}

		if _, named := t.names.TagOf(role.Kind, role.namespace, role.Name); named {
			return projectedRecord{foreign: &projectedKey{shared(role.namespace), facts.ProjectedKey{
				Kind: role.Kind, Name: shared(role.Name),
			}}}, true
		}
	}

	i := convertLegacy(obj)

	return projectedRecord{legacy: i}, i != nil
}

func (t *projectedTable) tagOf(o *projected.Object, namespace string) (tag uint32, named bool) {
	if t.names == nil {
		return 0, false
	}

	return t.names.TagOf(o.Kind, namespace, o.Name)
}

// isBelieved says whether the marks of an object count although its name does not tell. They do for everything that was made
// before Ambit gave such names; nobody can make an object today that was created then. They also do for cluster-scoped objects:
// only somebody with rights in the whole cluster can make these.
func (t *projectedTable) isBelieved(o *projected.Object, obj client.Object) bool {
	return writtenByAmbit(obj.GetManagedFields()) && (o.Kind.IsClusterScoped() || t.isOld(obj))
}

// isOld says whether an object may be from before Ambit gave names that tell.
func (t *projectedTable) isOld(obj client.Object) bool {
	return t.names == nil || obj.GetCreationTimestamp().Time.Before(t.names.Since())
}

// RecordOf is the record of an object that Ambit made; named says that its name tells so.
func RecordOf(o *projected.Object, obj client.Object, named bool) facts.Projected {
	slot := o.Slot
	if slot == "" && !named {
		slot = o.Name // Once, the name of a copy was its slot.
	}

	return facts.Projected{
		Content: &facts.Content{
			ScopeHash: o.ScopeHash, Owner: mark(o.Owner), Source: mark(o.Source), Slot: mark(slot), Named: named,
			Owners: ownersOf(obj), RoleGroup: o.RoleRef.APIGroup, RoleKind: o.RoleRef.Kind,
			Rules: rulesOf(o), Subjects: subjectsOf(o),
			Digest: o.Digest(obj.GetLabels()[scope.LabelManagedBy]), Empty: o.IsEmpty(), Guarded: o.IsGuarded(),
		},
		RoleName: roleName(o.RoleRef.Name),
		Held:     len(obj.GetFinalizers()) > 0, Terminating: obj.GetDeletionTimestamp() != nil,
	}
}

// maxRules bounds the rules that are kept of a Role, and the subjects of a binding. A Role with more is replaced when it changes,
// and never changed in place, unless it is guarded.
const maxRules = 64 << 10

func rulesOf(o *projected.Object) string {
	if o.Kind.IsBinding() || o.Aggregated || len(o.Aggregates) > 0 {
		return ""
	}

	return textOf(o.Rules)
}

func subjectsOf(o *projected.Object) string {
	if !o.Kind.IsBinding() {
		return ""
	}

	return textOf(o.Subjects)
}

func textOf[T any](content []T) string {
	text, err := json.Marshal(content)
	if err != nil || len(text) > maxRules {
		return ""
	}

	if len(content) == 0 {
		return "[]"
	}

	return string(text)
}

func writtenByAmbit(entries []metav1.ManagedFieldsEntry) bool {
	return scope.WrittenByAmbit(entries, "")
}

// shared returns the one copy of a string that all records use.
func shared(s string) string { return unique.Make(s).Value() }
