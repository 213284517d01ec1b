package group

import (
	"github.com/ambit-k8s/ambit/internal/writer"
)

// installer is who writes for the group of a namespace; w is nil where nothing is known of one.
func (r *Reconciler) installer(namespace string, w *snapshot) writer.Installer {
	var group *writer.Group

	if w != nil && w.Group != nil {
		_, exists := w.Accounts[w.Group.Account]
		group = &writer.Group{Name: w.Group.Name, Account: w.Group.Account, Exists: exists}

		if r.Writers.MayInstallAs(namespace, group.Account) {
			r.remembered.Store(namespace, group.Account)
		}
	}

	return r.Writers.OfGroup(namespace, group, r.lastAccount(namespace))
}

// lastAccount is the account that the group of a namespace last named, since Ambit began; empty when it is not known.
func (r *Reconciler) lastAccount(namespace string) string {
	account, _ := r.remembered.Load(namespace)
	name, _ := account.(string)

	return name
}
