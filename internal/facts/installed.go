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
	// Webhooks are the webhook configurations that Ambit made for CSVs of the namespace, by name.
	Webhooks map[string]InstalledWebhooks
}

// Account is a service account that exists.
type Account struct {
	UID string
	// Made says that the API server recorded Ambit as a writer of it.
	Made bool
	// Labelled says that it still bears the label of what Ambit made.
	Labelled bool
	// Owners are the UIDs of the resources with which it goes, separated by commas.
	Owners string
}
