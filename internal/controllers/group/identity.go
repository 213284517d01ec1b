package group

import (
	"fmt"
	"slices"

	"github.com/ambit-k8s/ambit/internal/apply"
)

// identity is who writes for the group of a namespace.
func (r *Reconciler) identity(w *snapshot) apply.Identity {
	if w.Group == nil {
		return apply.Nobody("the namespace has no operator group, or more than one")
	}

	account := w.Group.Account

	switch _, exists := w.Accounts[account]; {
	case r.Confined != nil && slices.Contains(r.Confined.accountsIn(w.Namespace), account):
		return apply.Nobody("service account " + account + " is Ambit's own, and whoever may write what is installed could use it; " +
			"set spec.serviceAccountName to another account of namespace " + w.Namespace)
	case account == "" && r.NeedDelegate:
		return apply.Nobody("the operator group names no service account, and this Ambit writes only as one that a group names; " +
			"set spec.serviceAccountName to an account of namespace " + w.Namespace)
	case account == "":
		return apply.Own()
	case !exists:
		return apply.Nobody(fmt.Sprintf("please make sure the service account exists. sa=%s operatorgroup=%s/%s",
			account, w.Namespace, w.Group.Name))
	}

	return named(w.Namespace, account)
}

func named(namespace, account string) apply.Identity {
	id, err := apply.ServiceAccount(namespace, account)
	if err != nil {
		return apply.Nobody(err.Error())
	}

	return id
}

// remover is who takes permissions away: Ambit itself, or the group's account where Ambit holds no rights of its own. Rights are
// given to the name of an account, so the name takes away what it gave although the account is gone, or the group that named it:
// otherwise whoever deletes one of the two keeps what was given.
func (r *Reconciler) remover(namespace string) apply.Identity {
	if !r.NeedDelegate {
		return apply.Own()
	}

	account, _ := r.remembered.Load(namespace)
	if name, _ := account.(string); name != "" {
		return named(namespace, name)
	}

	return apply.Identity{}
}
