package group

import "github.com/ambit-k8s/ambit/internal/writer"

// installer is who writes for the group of a namespace; w is nil where nothing is known of one.
func (r *Reconciler) installer(namespace string, w *snapshot) writer.Installer {
	var group *writer.Group

	if w != nil && w.Group != nil {
		live, exists := w.Accounts[w.Group.Account]
		group = &writer.Group{Name: w.Group.Name, Account: w.Group.Account, Exists: exists && !live.Ending}

		r.remember(namespace, group)
	}

	return r.Writers.OfGroup(namespace, group, r.lastAccount(namespace))
}

// remember keeps the account of a group, which may take away what it gave. An account that does not exist replaces no other: it
// gave nothing since that one did.
func (r *Reconciler) remember(namespace string, g *writer.Group) {
	switch {
	case !r.Writers.MayInstallAs(namespace, g.Account):
	case g.Exists:
		r.remembered.Store(namespace, g.Account)
	default:
		r.remembered.LoadOrStore(namespace, g.Account)
	}
}

// lastAccount is the account by which something was last installed in a namespace since Ambit started; empty when it is not
// known.
func (r *Reconciler) lastAccount(namespace string) string {
	account, _ := r.remembered.Load(namespace)
	name, _ := account.(string)

	return name
}
