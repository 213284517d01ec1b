package read

import (
	"maps"
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// projectedTable holds the records of projected objects: tens of thousands on a large cluster, so a record is small and
// shares its strings with its siblings in other namespaces.
type projectedTable struct {
	// buckets hold objects by the namespace that they are in.
	buckets map[bucket]map[string]*holding
	// byTag has the buckets by the tag that is in the names of their objects: an object of which only the name is known is in one of
	// these. Of objects whose names do not tell, bucketOf knows where they are. These are few, but where the key of names is not
	// known, as on the command line, they are all objects: so it holds handles, which take a quarter of the memory.
	byTag      map[uint32][]bucket
	bucketOf   map[projectedKey]unique.Handle[bucket]
	tombstones tombstones[projectedKey]
	changed    func(bucket)
	contents   contents
	// names gave the names of copies; nil where the key is not known.
	names *projected.Names
	// foreign are the bindings of others that refer to copies.
	foreign kept[projectedKey, projectedKey]
	// authorizations, and their Roles, are what the owners of namespaces granted; lost are copies that somebody else deleted.
	authorizations     kept[authorizationRecord, string]
	authorizationRoles kept[authorizationRole, string]
	lost               lostCopies
	// legacy is what bears the marks of IBM's operator instead.
	legacy kept[facts.Legacy, string]
}

// bucket is which objects are kept together: those of a reconcile key. Those whose marks say nothing any more are kept apart, by
// the tag in their names, and have no key.
type bucket struct {
	key scope.Key
	tag uint32
}

// holding is what a namespace holds for one reconcile key. Facts get the map itself, and what facts got never changes again: the
// first change after that goes into a copy. So a plan for forty thousand objects copies only those of the few namespaces that
// changed since the last plan.
type holding struct {
	objects map[facts.ProjectedKey]*facts.Projected
	lent    bool
}

type projectedKey struct {
	namespace string
	facts.ProjectedKey
}

func (t *projectedTable) put(key projectedKey, record projectedRecord, a arrival) {
	if t.tombstones.holds(key, a.version) {
		return
	}

	record.Version = a.version
	before, in, known := t.find(key)

	switch {
	case known && a.version != 0 && a.version < before.Version,
		known && in == record.bucket && before.Equal(&record.Projected):
		return
	case known && in != record.bucket:
		t.remove(key, in)
		t.changed(in)
	}

	t.set(key, record)

	if before.Version = a.version; !known || in != record.bucket || !before.Equal(&record.Projected) {
		t.changed(record.bucket)
	}
}

func (t *projectedTable) drop(key projectedKey, version uint64) {
	before, in, known := t.find(key)
	if !known || version != 0 && version < before.Version {
		return
	}

	if t.tombstones.record(key, version); version != 0 {
		t.lost.note(in, key, &before)
	}

	t.remove(key, in)
	t.changed(in)
}

// dropOwn takes out what Ambit deleted. A watch that is late still tells of what Ambit wrote before that, and a copy that is gone
// must not be taken for one that is there.
func (t *projectedTable) dropOwn(key projectedKey) {
	if before, _, known := t.find(key); known {
		t.tombstones.record(key, before.Version)
	}

	t.dropEverywhere(key, 0)
	// A watch may have told of it before, and then it was taken for somebody else's doing.
	t.lost.forget(key)
}

func (t *projectedTable) find(key projectedKey) (record facts.Projected, in bucket, known bool) {
	for _, in := range t.candidates(key) {
		if h := t.buckets[in][key.namespace]; h != nil && h.objects[key.ProjectedKey] != nil {
			return *h.objects[key.ProjectedKey], in, true
		}
	}

	return record, in, false
}

// has says whether an object is held in this very version.
func (t *projectedTable) has(key projectedKey, version uint64) bool {
	held, _, known := t.find(key)

	return version != 0 && known && held.Version == version
}

// candidates says where an object is, if it is known at all.
func (t *projectedTable) candidates(key projectedKey) []bucket {
	if in, known := t.bucketOf[key]; known {
		return []bucket{in.Value()}
	}

	return t.taggedAs(key)
}

// taggedAs are the buckets that the name of an object stands for.
func (t *projectedTable) taggedAs(key projectedKey) []bucket {
	if t.names == nil {
		return nil
	}

	tag, named := t.names.TagIn(key.Kind, key.namespace, key.Name)
	if !named {
		return nil
	}

	return t.byTag[tag]
}

// addBucket makes room for the objects of a bucket.
func (t *projectedTable) addBucket(in bucket) {
	if t.buckets == nil {
		t.buckets, t.byTag = map[bucket]map[string]*holding{}, map[uint32][]bucket{}
		t.bucketOf = map[projectedKey]unique.Handle[bucket]{}
	}

	if t.buckets[in] != nil {
		return
	}

	t.buckets[in] = map[string]*holding{}

	if tag, tagged := t.tagFor(in); tagged {
		t.byTag[tag] = append(t.byTag[tag], in)
	}
}

// removeBucket takes a bucket out that has no objects any more.
func (t *projectedTable) removeBucket(in bucket) {
	delete(t.buckets, in)

	tag, tagged := t.tagFor(in)
	if !tagged {
		return
	}

	t.byTag[tag] = slices.DeleteFunc(t.byTag[tag], func(other bucket) bool { return other == in })
	if len(t.byTag[tag]) == 0 {
		delete(t.byTag, tag)
	}
}

// tagFor is the tag in the names of the objects of a bucket.
func (t *projectedTable) tagFor(in bucket) (tag uint32, tagged bool) {
	if in.key.IsZero() {
		return in.tag, true
	}

	if t.names == nil {
		return 0, false
	}

	return t.names.Tag(in.key), true
}

func (t *projectedTable) set(key projectedKey, record projectedRecord) {
	t.addBucket(record.bucket)

	h := t.buckets[record.bucket][key.namespace]
	if h == nil {
		h = &holding{objects: map[facts.ProjectedKey]*facts.Projected{}}
		t.buckets[record.bucket][key.namespace] = h
	}

	h.own()
	held := record.Projected
	h.objects[key.ProjectedKey] = &held
	t.lost.found(record.bucket, key, &record.Projected)

	if !slices.Contains(t.taggedAs(key), record.bucket) {
		t.bucketOf[key] = unique.Make(record.bucket)
	}
}

func (t *projectedTable) remove(key projectedKey, in bucket) {
	h := t.buckets[in][key.namespace]
	h.own()
	delete(h.objects, key.ProjectedKey)
	delete(t.bucketOf, key)

	if len(h.objects) == 0 {
		delete(t.buckets[in], key.namespace)
	}

	if len(t.buckets[in]) == 0 {
		t.removeBucket(in)
	}
}

// forget takes out everything of a namespace, without notifying anybody.
func (t *projectedTable) forget(namespace string) {
	maps.DeleteFunc(t.bucketOf, func(key projectedKey, _ unique.Handle[bucket]) bool { return key.namespace == namespace })

	for in, held := range t.buckets {
		if delete(held, namespace); len(held) == 0 {
			t.removeBucket(in)
		}
	}

	for _, other := range t.others() {
		other.forget(namespace)
	}
}

// bucketsOf are those in which the objects of a reconcile key are: its own, and the one of objects that lost their marks.
func (t *projectedTable) bucketsOf(reconcileKey scope.Key) []bucket {
	if t.names == nil {
		return []bucket{{key: reconcileKey}}
	}

	return []bucket{{key: reconcileKey}, {tag: t.names.Tag(reconcileKey)}}
}

// isOf says whether a copy is one of a reconcile key.
func (t *projectedTable) isOf(key projectedKey, reconcileKey scope.Key) bool {
	_, in, known := t.find(key)

	return known && slices.Contains(t.bucketsOf(reconcileKey), in)
}

// own makes the map ours to change.
func (h *holding) own() {
	if h.lent {
		h.objects, h.lent = maps.Clone(h.objects), false
	}
}

// of lends out what was projected for a reconcile key. The store has to be locked for writing.
func (t *projectedTable) of(reconcileKey scope.Key) map[string]map[facts.ProjectedKey]*facts.Projected {
	out := make(map[string]map[facts.ProjectedKey]*facts.Projected, len(t.buckets[bucket{key: reconcileKey}]))

	for _, in := range t.bucketsOf(reconcileKey) {
		for namespace, h := range t.buckets[in] {
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

// Held is what Ambit made in a namespace for an owner of a reconcile key; the empty name stands for what has no namespace.
func (s *Store) Held(reconcileKey scope.Key, owner, namespace string) []*facts.Projected {
	s.mu.RLock()
	defer s.mu.RUnlock()

	held := s.projected.buckets[bucket{key: reconcileKey}][namespace]
	if held == nil {
		return nil
	}

	var out []*facts.Projected

	for _, o := range held.objects {
		if o.Owner == owner {
			out = append(out, o)
		}
	}

	return out
}

// size counts the objects of a reconcile key.
func (t *projectedTable) size(reconcileKey scope.Key) int {
	n := 0

	for _, in := range t.bucketsOf(reconcileKey) {
		for _, h := range t.buckets[in] {
			n += len(h.objects)
		}
	}

	return n
}

// others are the tables of what Ambit did not project.
func (t *projectedTable) others() []keptTable {
	return []keptTable{&t.legacy, &t.foreign, &t.authorizations, &t.authorizationRoles}
}

// insert puts an object into the table where it belongs, and out of the others.
func (t *projectedTable) insert(key projectedKey, r projectedRecord, a arrival) {
	isLegacy, isForeign := t.legacy.set(key, r.legacy, a), t.foreign.set(key, r.foreign, a)
	isAuthorization := t.authorizations.set(key, r.authorization, a)
	isAuthorizationRole := t.authorizationRoles.set(key, r.authorizationRole, a)

	if isLegacy || isForeign || isAuthorization || isAuthorizationRole {
		t.drop(key, a.version)
	} else {
		t.put(key, r, a)
	}
}

func (t *projectedTable) dropEverywhere(key projectedKey, version uint64) {
	t.drop(key, version)

	for _, other := range t.others() {
		other.drop(key, version)
	}
}

// versions lists what all tables hold of a kind.
func (t *projectedTable) versions(kind projected.Kind) map[projectedKey]uint64 {
	out := map[projectedKey]uint64{}

	for _, held := range t.buckets {
		for namespace, h := range held {
			for key, r := range h.objects {
				if key.Kind == kind {
					out[projectedKey{namespace, key}] = r.Version
				}
			}
		}
	}

	for _, other := range t.others() {
		other.addVersions(out, kind)
	}

	return out
}

// sink returns the receiver of the watch of one kind.
func (t *projectedTable) sink(kind projected.Kind) sink[projectedRecord] {
	full := func(key types.NamespacedName) projectedKey { return projectedKeyOf(kind, key) }

	return sink[projectedRecord]{
		convert: t.convert,
		most:    maxGrantedIn, small: smallGranted,
		weigh: func(r projectedRecord) int { return r.weight() }, lighten: (*projectedRecord).lighten,
		has:      func(key types.NamespacedName, version uint64) bool { return t.has(full(key), version) },
		notifies: func(r projectedRecord) bool { return r.authorization != nil || r.authorizationRole != nil },
		put: func(key types.NamespacedName, r projectedRecord, a arrival) {
			t.insert(full(key).shared(), r, a)
		},
		drop: func(key types.NamespacedName, version uint64) { t.dropEverywhere(full(key).shared(), version) },
		keys: func() map[types.NamespacedName]uint64 {
			out := map[types.NamespacedName]uint64{}
			for key, version := range t.versions(kind) {
				out[types.NamespacedName{Namespace: key.namespace, Name: key.Name}] = version
			}

			return out
		},
	}
}
