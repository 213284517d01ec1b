package facts

// WaitingKey is a namespace from the point of view of one scope, which its hash identifies.
type WaitingKey struct{ Scope, Namespace string }

// Waiting is what was found, in a namespace, of the custom resources that operators of a scope may change there.
type Waiting struct {
	// Objects name some of those that are being deleted and wait for a finalizer, as "<resource>.<group> <name>", sorted; Count is
	// how many were found.
	Objects []string
	Count   int
	// Unseen says why there may be more; empty when everything was looked at.
	Unseen string
	// Kept name some of those that have a finalizer and are not being deleted, likewise: once the operators are gone, nobody takes
	// it off. KeptCount is how many were found.
	Kept      []string
	KeptCount int
	// Unanswered says why nothing is known of all this; empty where it is, and where nobody has looked yet.
	Unanswered string
}

// Any says whether something waits, as far as is known.
func (w *Waiting) Any() bool { return w.Count > 0 || w.Unseen != "" }
