package facts

import appsv1 "k8s.io/api/apps/v1"

// Installed is what a namespace holds that matters to what is installed in it.
type Installed struct {
	// Accounts are its service accounts, by name.
	Accounts map[string]Account
	// Deployments are all, by name; nil where Ambit did not make them. They are shared and must not be changed.
	Deployments map[string]*appsv1.Deployment
	// Services are all, by name.
	Services map[string]Service
	// LeftOut is what the namespace holds besides: more than may be remembered.
	LeftOut LeftOut
	// Webhooks are the webhook configurations that Ambit made for CSVs of the namespace, by name.
	Webhooks map[string]InstalledWebhooks
}

// LeftOut is what a namespace holds and what is not remembered, because it is too much.
type LeftOut struct {
	// Words says how much that is, such as "2 Deployments"; empty when it is nothing.
	Words string
	// Deployments are the names of those that are left out; More says that there are further ones.
	Deployments map[string]struct{}
	More        bool
}

// MayHave says whether a Deployment that is not remembered may be there.
func (l *LeftOut) MayHave(deployment string) bool {
	_, is := l.Deployments[deployment]

	return is || l.More
}

// Account is a service account that exists.
type Account struct {
	UID string
	// Made says that the API server recorded Ambit as a writer of it.
	Made bool
	// Labelled says that it still bears the label of what Ambit made.
	Labelled bool
	// Ending says that it is being deleted, however long a finalizer keeps it. Nothing is written as such an account.
	Ending bool
	// Owners are the UIDs of its owners, separated by commas.
	Owners string
}
