package facts

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	// maxLabels bounds the labels of a namespace that are remembered, in bytes. An object has room for a hundred thousand labels,
	// and somebody may make ten thousand namespaces.
	maxLabels = 8 << 10
	// perLabel is what each of them takes besides its text.
	perLabel = 64
)

// Namespace is a namespace that exists.
type Namespace struct {
	// Labels are empty where they are more than may be remembered, which Overlabelled says.
	Labels       map[string]string
	Overlabelled bool
	Terminating  bool
	// Deleted is when its deletion was asked for; zero where that is not known.
	Deleted time.Time
	// Closed says why nothing is known of it and nothing can be done there; empty when it can be read.
	Closed string
}

// NamespaceWith is a namespace with these labels, if they may be remembered.
func NamespaceWith(labelled map[string]string) Namespace {
	size := 0
	for key, value := range labelled {
		size += len(key) + len(value) + perLabel
	}

	if size > maxLabels {
		return Namespace{Overlabelled: true}
	}

	return Namespace{Labels: labelled}
}

// NamespaceOf is what there is to know of a namespace.
func NamespaceOf(ns *corev1.Namespace) Namespace {
	out := NamespaceWith(ns.Labels)
	out.Terminating = ns.DeletionTimestamp != nil || ns.Status.Phase == corev1.NamespaceTerminating

	if ns.DeletionTimestamp != nil {
		out.Deleted = ns.DeletionTimestamp.Time
	}

	return out
}

// IsSelected says whether a selector selects the namespace by its labels. None selects one whose labels are not remembered: it
// may have what the selector excludes.
func (n *Namespace) IsSelected(by labels.Selector) bool {
	return !n.Overlabelled && by.Matches(labels.Set(n.Labels))
}
