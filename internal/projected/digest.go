package projected

import (
	"crypto/sha256"
	"encoding/binary"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Digest stands for everything that Ambit decides about an object, but for its name and for the role that it refers to, which
// differ from member to member. Two objects with the same digest and the same role need no write.
type Digest [16]byte

// Digest hashes the labels, the annotations and the content, in the order in which they are written. A null and an empty
// list are the same, as they are to RBAC.
func (o *Object) Digest(managedBy string) Digest {
	h := &hasher{text: make([]byte, 0, mostText)}
	h.strings(string(o.Kind), o.Slot, managedBy, o.ScopeHash, o.Owner, o.Source)

	// An owner that has a namespace is left out: only what is in that namespace refers to it, and the digest is the same in
	// every member.
	for _, ref := range o.OwnerRefs {
		if ref.Namespace == "" {
			h.strings(ref.APIVersion, ref.Kind, ref.Name, ref.UID)
		}
	}

	h.length(len(o.Subjects))

	for i := range o.Subjects {
		s := &o.Subjects[i]
		h.strings(s.Kind, s.APIGroup, s.Namespace, s.Name)
	}

	if o.Aggregated {
		h.strings("aggregated")
	}

	// The API server fills in the rules of an aggregated role.
	if len(o.Aggregates) > 0 {
		h.strings(o.Aggregates...)

		return h.digest()
	}

	h.length(len(o.Rules))

	for i := range o.Rules {
		h.rule(&o.Rules[i])
	}

	return h.digest()
}

// hasher gathers what is hashed. A hash that is written to piece by piece has each piece copied first.
type hasher struct{ text []byte }

// mostText is a length that what is hashed seldom exceeds.
const mostText = 1 << 10

func (h *hasher) length(n int) {
	h.text = binary.BigEndian.AppendUint64(h.text, uint64(n)) //nolint:gosec // G115: the length of a slice is never negative.
}

func (h *hasher) strings(values ...string) {
	h.length(len(values))

	for _, v := range values {
		h.length(len(v))
		h.text = append(h.text, v...)
	}
}

func (h *hasher) rule(r *rbacv1.PolicyRule) {
	h.strings(r.Verbs...)
	h.strings(r.APIGroups...)
	h.strings(r.Resources...)
	h.strings(r.ResourceNames...)
	h.strings(r.NonResourceURLs...)
}

func (h *hasher) digest() Digest {
	sum := sha256.Sum256(h.text)

	return Digest(sum[:len(Digest{})])
}
