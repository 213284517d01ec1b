package facts

// maxLabel is how long the value of a label can be.
const maxLabel = 63

// Legacy is a Role or RoleBinding that bears the marks of IBM's operator. Anybody can write these, in any number, so of the
// object no more is kept than what tells it from what that operator wrote.
type Legacy struct {
	// Mark is the label namespace-scope-configmap, by which that operator finds it again.
	Mark string
	// Labelled says that the other labels are those that the operator gives; List is the ConfigMap that they name.
	Labelled bool
	List     string
	// Account is the service account, of the namespace AccountNamespace, that is the one subject of a binding, as long as that
	// refers to the Role of its own name; empty otherwise.
	Account, AccountNamespace string
	Version                   uint64
}

// LegacyMark is the label by which IBM's operator finds what it projected for a ConfigMap of a namespace.
func LegacyMark(list, namespace string) string {
	mark := list + "-" + namespace

	return mark[:min(len(mark), maxLabel)]
}
