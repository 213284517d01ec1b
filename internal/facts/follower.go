package facts

// Follower is what a pod of the operator namespace says of itself: it follows a list, and has taken one in. Whoever may write
// Leases in the operator namespace can say so, and gains by it that a reader is not restarted, or that permissions stay for
// the grace time.
type Follower struct {
	// List names the ConfigMap; TakenIn is scope.TakenIn of the list that the pod serves, and nothing of what was before it.
	List, TakenIn string
}
