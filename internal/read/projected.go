package read

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// projectedTable holds the records of projected objects: tens of thousands on a large cluster, so a record is small and
// shares its strings with its siblings in other namespaces.
type projectedTable struct {
	// byKey holds the objects of each operator namespace by the namespace that they are in.
	byKey map[string]map[string]*holding
	// byTag has the keys of byKey by the tag that is in the names of their objects: an object of which only the name is known is
	// under one of these. Of the few whose names do not tell, keyOf knows where they are.
	byTag      map[uint32][]string
	keyOf      map[projectedKey]string
	tombstones tombstones[projectedKey]
	changed    func(keys ...string)
	// names gave the names of copies; nil where the key is not known.
	names *projected.Names
	// foreign are the bindings of others that refer to copies.
	foreign kept[projectedKey, projectedKey]
	// authorizations are what the owners of namespaces granted; lost are copies that somebody else deleted.
	authorizations kept[authorizationRecord, string]
	lost           lostCopies
	// legacy is what bears the marks of IBM's operator instead.
	legacy kept[facts.Legacy, string]
}

// holding is what a namespace holds for one operator namespace. Facts get the map itself, and what facts got never changes
// again: the first change after that goes into a copy. So a pass over forty thousand objects copies those of the few
// namespaces that changed since the last one.
type holding struct {
	objects map[facts.ProjectedKey]*facts.Projected
	lent    bool
}

type projectedKey struct {
	namespace string
	facts.ProjectedKey
}

type projectedRecord struct {
	facts.Projected

	reconcileKey string
	// tag is the tag of the reconcile key that the name was given for; it counts where the marks say nothing, and operator
	// namespace is empty.
	tag uint32
	// foreign is set for a binding of somebody else's; it is the copy that it refers to.
	foreign *projectedKey
	// authorization is set for what the owner of a namespace granted.
	authorization *authorizationRecord
	// legacy is set for what bears the marks of IBM's operator, and none of Ambit's.
	legacy *facts.Legacy
}

func (t *projectedTable) put(key projectedKey, record projectedRecord, a arrival) {
	if t.tombstones.holds(key, a.version) {
		return
	}

	record.Version = a.version
	if record.reconcileKey == "" {
		record.reconcileKey = lost(record.tag)
	}

	before, reconcileKey, known := t.find(key)

	switch {
	case known && a.version != 0 && a.version < before.Version, known && reconcileKey == record.reconcileKey &&
		before == record.Projected:
		return
	case known && reconcileKey != record.reconcileKey:
		t.remove(key, reconcileKey)
		t.changed(reconcileKey)
	}

	t.set(key, record)

	if before.Version = a.version; !known || reconcileKey != record.reconcileKey || before != record.Projected {
		t.changed(record.reconcileKey)
	}
}

func (t *projectedTable) drop(key projectedKey, version uint64) {
	before, reconcileKey, known := t.find(key)
	if !known || version != 0 && version < before.Version {
		return
	}

	if t.tombstones.record(key, version); version != 0 {
		t.lost.note(reconcileKey, key, &before)
	}

	t.remove(key, reconcileKey)
	t.changed(reconcileKey)
}

func (t *projectedTable) find(key projectedKey) (record facts.Projected, reconcileKey string, known bool) {
	for _, reconcileKey := range t.candidates(key) {
		if h := t.byKey[reconcileKey][key.namespace]; h != nil && h.objects[key.ProjectedKey] != nil {
			return *h.objects[key.ProjectedKey], reconcileKey, true
		}
	}

	return record, "", false
}

// candidates says where an object is, if it is known at all.
func (t *projectedTable) candidates(key projectedKey) []string {
	if reconcileKey, known := t.keyOf[key]; known {
		return []string{reconcileKey}
	}

	return t.taggedAs(key)
}

// taggedAs are the reconcile keys that the name of an object stands for.
func (t *projectedTable) taggedAs(key projectedKey) []string {
	if t.names == nil {
		return nil
	}

	tag, named := t.names.TagIn(key.Kind, key.namespace, key.Name)
	if !named {
		return nil
	}

	return t.byTag[tag]
}

// addKey makes room for the objects of an operator namespace.
func (t *projectedTable) addKey(reconcileKey string) {
	if t.byKey == nil {
		t.byKey, t.byTag, t.keyOf = map[string]map[string]*holding{}, map[uint32][]string{}, map[projectedKey]string{}
	}

	if t.byKey[reconcileKey] != nil {
		return
	}

	t.byKey[reconcileKey] = map[string]*holding{}

	if tag, tagged := t.tagFor(reconcileKey); tagged {
		t.byTag[tag] = append(t.byTag[tag], reconcileKey)
	}
}

// removeKey takes an operator namespace out that has no objects any more.
func (t *projectedTable) removeKey(reconcileKey string) {
	delete(t.byKey, reconcileKey)

	tag, tagged := t.tagFor(reconcileKey)
	if !tagged {
		return
	}

	t.byTag[tag] = slices.DeleteFunc(t.byTag[tag], func(k string) bool { return k == reconcileKey })
	if len(t.byTag[tag]) == 0 {
		delete(t.byTag, tag)
	}
}

// tagFor is the tag in the names of the objects of an operator namespace, or of those that lost their marks.
func (t *projectedTable) tagFor(reconcileKey string) (tag uint32, tagged bool) {
	if digits, is := strings.CutPrefix(reconcileKey, lostPrefix); is {
		tag, err := strconv.ParseUint(digits, 16, 32)

		return uint32(tag), err == nil
	}

	if t.names == nil {
		return 0, false
	}

	return t.names.Tag(reconcileKey), true
}

func (t *projectedTable) set(key projectedKey, record projectedRecord) {
	t.addKey(record.reconcileKey)

	h := t.byKey[record.reconcileKey][key.namespace]
	if h == nil {
		h = &holding{objects: map[facts.ProjectedKey]*facts.Projected{}}
		t.byKey[record.reconcileKey][key.namespace] = h
	}

	h.own()
	held := record.Projected
	h.objects[key.ProjectedKey] = &held
	t.lost.found(record.reconcileKey, key, &record.Projected)

	if !slices.Contains(t.taggedAs(key), record.reconcileKey) {
		t.keyOf[key] = record.reconcileKey
	}
}

func (t *projectedTable) remove(key projectedKey, reconcileKey string) {
	h := t.byKey[reconcileKey][key.namespace]
	h.own()
	delete(h.objects, key.ProjectedKey)
	delete(t.keyOf, key)

	if len(h.objects) == 0 {
		delete(t.byKey[reconcileKey], key.namespace)
	}

	if len(t.byKey[reconcileKey]) == 0 {
		t.removeKey(reconcileKey)
	}
}

// forget takes out everything of a namespace, without notifying anybody.
func (t *projectedTable) forget(namespace string) {
	maps.DeleteFunc(t.keyOf, func(key projectedKey, _ string) bool { return key.namespace == namespace })

	for reconcileKey, in := range t.byKey {
		if delete(in, namespace); len(in) == 0 {
			t.removeKey(reconcileKey)
		}
	}

	t.legacy.forget(namespace)
	t.foreign.forget(namespace)
	t.authorizations.forget(namespace)
}

// lost is where the objects are whose marks say nothing any more, by the tag in their names. No operator namespace can be
// called so.
func lost(tag uint32) string { return lostPrefix + strconv.FormatUint(uint64(tag), 16) }

const lostPrefix = "#"

// keys are under which the objects of an operator namespace are: its own name, and that of those that lost their marks.
func (t *projectedTable) keys(reconcileKey string) []string {
	if t.names == nil {
		return []string{reconcileKey}
	}

	return []string{reconcileKey, lost(t.names.Tag(reconcileKey))}
}

// isOf says whether a copy is one of an operator namespace.
func (t *projectedTable) isOf(key projectedKey, reconcileKey string) bool {
	_, under, known := t.find(key)

	return known && slices.Contains(t.keys(reconcileKey), under)
}

// own makes the map ours to change.
func (h *holding) own() {
	if h.lent {
		h.objects, h.lent = maps.Clone(h.objects), false
	}
}

// of lends out what an operator namespace projected. The store has to be locked for writing.
func (t *projectedTable) of(reconcileKey string) map[string]map[facts.ProjectedKey]*facts.Projected {
	out := make(map[string]map[facts.ProjectedKey]*facts.Projected, len(t.byKey[reconcileKey]))

	for _, under := range t.keys(reconcileKey) {
		for namespace, h := range t.byKey[under] {
			h.lent = true

			if out[namespace] == nil {
				out[namespace] = h.objects
			} else {
				out[namespace] = maps.Clone(out[namespace])
				maps.Copy(out[namespace], h.objects)
			}
		}
	}

	return out
}

// Holds says whether a namespace holds something that Ambit made for an owner of an operator namespace; the empty name stands
// for what has no namespace.
func (s *Store) Holds(reconcileKey, owner, namespace string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()

	held := s.projected.byKey[reconcileKey][namespace]
	if held == nil {
		return false
	}

	for _, o := range held.objects {
		if o.Owner == owner {
			return true
		}
	}

	return false
}

// size counts the objects of an operator namespace.
func (t *projectedTable) size(reconcileKey string) int {
	n := 0

	for _, under := range t.keys(reconcileKey) {
		for _, h := range t.byKey[under] {
			n += len(h.objects)
		}
	}

	return n
}

// sink returns the receiver of the watch of one kind.
func (t *projectedTable) sink(kind projected.Kind) sink[projectedRecord] {
	full := func(key types.NamespacedName) projectedKey {
		return projectedKey{shared(key.Namespace), facts.ProjectedKey{Kind: kind, Name: shared(key.Name)}}
	}

	return sink[projectedRecord]{
		convert: t.convert,
		has: func(key types.NamespacedName, version uint64) bool {
			held, _, known := t.find(full(key))

			return known && held.Version == version
		},
		notifies: func(r projectedRecord) bool { return r.authorization != nil },
		put: func(key types.NamespacedName, r projectedRecord, a arrival) {
			t.insert(full(key), r, a)
		},
		drop: func(key types.NamespacedName, version uint64) { t.dropEverywhere(full(key), version) },
		keys: func() map[types.NamespacedName]uint64 {
			out := map[types.NamespacedName]uint64{}
			for key, version := range t.versions(kind) {
				out[types.NamespacedName{Namespace: key.namespace, Name: key.Name}] = version
			}

			return out
		},
	}
}

// convertProjected reads an object that Ambit made. Its name tells: whoever takes all marks away, or writes others, must not
// thereby hide it or give it to somebody else. The watch is on all Roles and RoleBindings for the same reason. Without a key, as
// the command line has none, the marks are believed.
func (t *projectedTable) convert(obj client.Object) (projectedRecord, bool) {
	o, ok := projected.From(obj)
	if !ok {
		return projectedRecord{}, false
	}

	reconcileKey := keyOf(o.Owner, o.Source)
	tag, named := t.tagOf(&o, obj.GetNamespace())

	switch {
	case named && reconcileKey != "" && t.names.Tag(reconcileKey) == tag:
	case t.isBelieved(&o, obj) && reconcileKey != "":
		named = t.names == nil
	case named:
		reconcileKey = ""
	default:
		return t.convertOther(obj, &o)
	}

	return projectedRecord{reconcileKey: shared(reconcileKey), tag: tag, Projected: recordOf(&o, obj, named)}, true
}

// convertOther reads what Ambit did not make, and what it has to know of that.
func (t *projectedTable) convertOther(obj client.Object, o *projected.Object) (projectedRecord, bool) {
	if c := convertAuthorization(obj); c != nil {
		return projectedRecord{authorization: c}, true
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

// isBelieved says whether the marks of an object count although its name does not tell. So it is for everything that was made
// before names did; nobody can make an object today that was created then. What is cluster-scoped is made by nobody who has not
// got rights in the whole cluster.
func (t *projectedTable) isBelieved(o *projected.Object, obj client.Object) bool {
	return writtenByAmbit(obj.GetManagedFields()) &&
		(t.names == nil || o.Kind.IsClusterScoped() || obj.GetCreationTimestamp().Time.Before(t.names.Since()))
}

func recordOf(o *projected.Object, obj client.Object, named bool) facts.Projected {
	slot := o.Slot
	if slot == "" && !named {
		slot = o.Name // So it was before names told nothing.
	}

	owner := o.OwnerRef.UID
	if refs := obj.GetOwnerReferences(); owner == "" && len(refs) == 1 {
		owner = string(refs[0].UID)
	}

	return facts.Projected{
		ScopeHash: shared(o.ScopeHash), Owner: mark(o.Owner), Source: mark(o.Source), Slot: mark(slot), Named: named,
		OwnerUID: shared(owner), RoleRef: roleReference(o.RoleRef),
		Rules:  shared(rulesOf(o)),
		Digest: o.Digest(obj.GetLabels()[scope.LabelManagedBy]), Empty: o.IsEmpty(),
		Held: len(obj.GetFinalizers()) > 0, Terminating: obj.GetDeletionTimestamp() != nil,
	}
}

// RecordOf is the record of an object that Ambit would make, at a version.
func RecordOf(o *projected.Object, version uint64) facts.Projected {
	record := recordOf(o, o.In(o.OwnerRef.Namespace), true)
	record.Version = version

	return record
}

// maxRules bounds the rules that are kept of a Role. What is larger is replaced when it changes, and never changed in place.
const maxRules = 64 << 10

func rulesOf(o *projected.Object) string {
	if o.Kind.IsBinding() || o.Aggregated || len(o.Aggregates) > 0 {
		return ""
	}

	rules, err := json.Marshal(o.Rules)
	if err != nil || len(rules) > maxRules {
		return ""
	}

	if len(o.Rules) == 0 {
		return "[]"
	}

	return string(rules)
}

func writtenByAmbit(entries []metav1.ManagedFieldsEntry) bool {
	for i := range entries {
		if entries[i].Manager == scope.FieldManager {
			return true
		}
	}

	return false
}

// shared returns the one copy of a string that all records use.
func shared(s string) string { return unique.Make(s).Value() }
