package controllers

import (
	"fmt"
	"time"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// Settings are what an administrator decides for a manager.
type Settings struct {
	// Namespace is Ambit's own namespace; labels never select it.
	Namespace string
	// Names gives names to copies.
	Names *projected.Names
	// RestartInterval is the least time between two restarts of one workload.
	RestartInterval time.Duration
	// FollowGrace is how long permissions stay in a namespace that left, for readers that follow the list.
	FollowGrace time.Duration
	// FinishGrace is how long a namespace that left keeps what it has while custom resources there wait for a finalizer.
	FinishGrace time.Duration
	// DefaultServiceAccount is the delegate of scopes that name none; empty means Ambit itself.
	DefaultServiceAccount string
	// NeedDelegate refuses scopes for which no service account is named, neither by themselves nor by default.
	NeedDelegate bool
	// Namespaces are the namespaces whose scopes are served; empty means all. With namespaces, nothing is read cluster-wide.
	Namespaces []string
	// User is the name of the user that Ambit runs as; empty when it is not known.
	User string
	// DefaultScope makes a scope in Namespace, if it has none and is served.
	DefaultScope bool
	// Writes bounds the writes under way at once.
	Writes int
	// Answers are those to everything that is asked; nil where all are believed at once.
	Answers *Answers
	// Remembered is what is kept in memory; the same for Cache and for Add.
	Remembered *Remembered
	// OperatorGroups says when OLM's kinds are served. With namespaces, where Ambit cannot know whether OLM serves them, they are
	// served only with read.ServeAlways, and then OperatorGroups and ClusterServiceVersions of these namespaces.
	OperatorGroups read.Serving
	// OLMNamespaces are where OLM's own controllers are looked for; empty means read.OLMNamespaces.
	OLMNamespaces []string
}

// writers is what of a manager with these settings decides who writes.
func (s *Settings) writers() *writer.Manager {
	return &writer.Manager{
		User: s.User, DefaultDelegate: s.DefaultServiceAccount, NeedDelegate: s.NeedDelegate, Namespaces: s.Namespaces,
		Installs: s.OperatorGroups == read.ServeAlways,
	}
}

// Scheme returns a scheme with every kind that Ambit reads or writes.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()

	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, operatorv1.AddToScheme, namespacescopev1alpha1.AddToScheme,
		// OLM's v1alpha1 and Ambit's are one group and version, with different kinds.
		operatorsv1.AddToScheme, operatorsv1alpha1.AddToScheme, olmv1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}

	return s, nil
}
