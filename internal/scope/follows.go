package scope

import (
	"crypto/sha256"
	"encoding/hex"
)

// What a reader that follows its list writes, in a Lease of its own namespace that its pod owns. The module watchlist writes
// the same, and docs/live-scope.md says it for other languages.
const (
	// LabelFollows with the value Follows is by which such Leases are watched, and no others.
	LabelFollows = "ambit.dev/follows"
	Follows      = "true"
	// AnnotationFollowed names the ConfigMap, AnnotationTakenIn holds TakenIn of the list that the reader serves.
	AnnotationFollowed = "ambit.dev/watch-list"
	AnnotationTakenIn  = "ambit.dev/taken-in"
)

// FollowerLease is what the Lease of a pod is called, so that each has one.
func FollowerLease(podUID string) string { return "watchlist-" + podUID }

// TakenIn is the hash of a list as it stands in the ConfigMap. Whoever reads a file knows nothing else of it.
func TakenIn(list string) string {
	sum := sha256.Sum256([]byte(list))

	return hex.EncodeToString(sum[:])
}
