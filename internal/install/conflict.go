package install

import (
	"cmp"
	"strings"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/ambit-k8s/ambit/internal/compile"
)

// Operator is an operator of another namespace that runs. What its group merely lists, or a CSV that is not installed asks for,
// is nobody's: anybody could otherwise keep everybody's operators out by saying so.
type Operator struct {
	// Namespace and Group name its group; Created and UID are that group's.
	Namespace, Group, UID string
	Created               time.Time
	// APIs are those that it brings, sorted.
	APIs []string
	// Serves are the namespaces, of those that matter here, in which it holds permissions, and its own, sorted. Everywhere says
	// that it serves all.
	Serves     []string
	Everywhere bool
}

// conflict is why a CSV does not get all that its group has.
type conflict struct {
	message string
	// targets are those that it still gets, nil for all of them, and withheld are the others.
	targets, withheld []string
}

// conflict says where operators of other groups bring an API that a CSV brings. An operator that serves a namespace continues
// there, whatever else is installed for it. Of two that were installed at the same time, both continue, and the one of the
// younger group reports the conflict.
func (w *Snapshot) conflict(csv *olm.ClusterServiceVersion) conflict {
	apis := Provided(csv)
	if len(apis) == 0 || len(w.Others) == 0 {
		return conflict{}
	}

	var c conflict

	runs, held, withheld := w.runs(csv), w.held(csv), sets.Set[string]{}

	for i := range w.Others {
		other := &w.Others[i]
		if len(common(apis, other.APIs)) == 0 {
			continue
		}

		foreign := false

		shared := w.shared(other)
		for _, namespace := range shared {
			// One that runs serves its own namespace in any case.
			if _, holds := held[namespace]; !runs || !holds && namespace != w.Namespace {
				foreign = true
				withheld.Insert(namespace)
			}
		}

		if foreign || len(shared) > 0 && !w.isOlderThan(other) {
			c.message = cmp.Or(c.message, "intersecting operatorgroups provide the same apis: "+
				strings.Join(common(apis, other.APIs), ", ")+" by operatorgroup "+other.Namespace+"/"+other.Group)
		}
	}

	c.withhold(w, held, withheld)

	return c
}

// shared are the namespaces that another operator serves and the group of this namespace is for; the empty name stands for all
// of them. Each counts its own namespace, too.
func (w *Snapshot) shared(other *Operator) []string {
	switch everywhere := compile.IsEverywhere(w.Group.Targets); {
	case everywhere && (other.Everywhere || len(other.Serves) > 0):
		return []string{corev1.NamespaceAll}
	case everywhere:
		return nil
	case other.Everywhere:
		return append([]string{w.Namespace}, w.Group.Targets...)
	default:
		return other.Serves
	}
}

func (w *Snapshot) isOlderThan(other *Operator) bool {
	g := w.Group.Group

	return cmp.Or(g.Created.Compare(other.Created), cmp.Compare(g.UID, other.UID)) < 0
}

// withhold leaves to an operator that runs the targets that nobody else serves. One that was for some namespaces, and whose group
// is for all of them now, is left with those.
func (c *conflict) withhold(w *Snapshot, held map[string]struct{}, withheld sets.Set[string]) {
	if len(withheld) == 0 {
		return
	}

	left := sets.New(w.Group.Targets...)
	if compile.IsEverywhere(w.Group.Targets) {
		left = left.Union(sets.KeySet(held))
	}

	c.withheld = sets.List(withheld)
	c.targets = sets.List(left.Difference(withheld)) // None is not all.
}

// limits applies a conflict to the verdict about an operator that runs.
func (c *conflict) limits(v Verdict) Verdict {
	if c.message == "" {
		return v
	}

	v.Targets, v.Withheld = c.targets, c.withheld

	if v.ApplyObjects {
		v.Phase, v.Reason, v.Message = olm.CSVPhaseFailed, olm.CSVReasonInterOperatorGroupOwnerConflict, c.message
	}

	return v
}
