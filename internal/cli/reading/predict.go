package reading

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/simulation"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/internal/waiting"
)

// Predict lets the manager's reconcilers serve the scopes of every operator namespace in memory. also adds further keys to serve.
func (v *Cluster) Predict(
	ctx context.Context, also func(*simulation.Simulation) (keys []scope.Key),
) ([]*predict.Prediction, *snapshot.Authorizer, error) {
	operatorNamespaces := v.predicted()

	plans := make([]plan.Plan, len(operatorNamespaces))
	all := make([]*facts.Facts, len(operatorNamespaces))
	settings := make([]predict.Setting, len(operatorNamespaces))

	for i, at := range operatorNamespaces {
		if err := UnknownFor(v.Denied(), at.Key); err != nil {
			return nil, nil, err
		}

		plans[i], all[i], settings[i] = plan.New(at.Scopes, at.Facts), at.Facts, predict.Setting{Key: at.Key, Scopes: at.Scopes}
	}

	v.lookForWaiting(ctx, plans)

	authorizer, err := v.Authorizer(ctx, v.Config, v.Settings, plans, all)
	if err != nil {
		return nil, nil, err
	}

	in := v.Settings.Simulation(v.Snapshot.Cluster)
	in.Ask, in.HasRBAC = authorizer.Holds, v.Snapshot.HasRBAC

	if in.Kubernetes, err = v.kubernetes(); err != nil {
		return nil, nil, err
	}

	for i := range v.Scopes {
		if err := v.Snapshot.Cluster.Declare(v.Scopes[i].Object); err != nil {
			return nil, nil, fmt.Errorf("reading scopes: %w", err)
		}
	}

	out, err := predict.Of(ctx, in, settings, v.Snapshot.Amend, also(in)...)
	if err != nil {
		return nil, nil, fmt.Errorf("playing forward what would be done: %w", err)
	}

	return out, authorizer, nil
}

// kubernetes is the version of the API server; empty where the caller may not ask for it.
func (v *Cluster) kubernetes() (string, error) {
	asking, err := discovery.NewDiscoveryClientForConfig(v.Config)
	if err != nil {
		return "", fmt.Errorf("making the client that asks for the version: %w", err)
	}

	version, err := asking.ServerVersion()

	switch {
	case apierrors.IsForbidden(err):
		v.Deny(snapshot.Denied{Verb: "get", Resource: "the version of the API server"})

		return "", nil
	case err != nil:
		return "", fmt.Errorf("asking for the version of the API server: %w", err)
	}

	return version.GitVersion, nil
}

// Nothing is passed to Predict where there is nothing to serve besides scopes.
func Nothing(*simulation.Simulation) []scope.Key { return nil }

// maxLooks is how often the finder is asked at most, because it may not have had time for every namespace.
const maxLooks = 10

// lookForWaiting finds, with the caller's rights, what waits for finalizers in the namespaces that would leave.
func (v *Cluster) lookForWaiting(ctx context.Context, plans []plan.Plan) {
	v.Waiting = map[facts.WaitingKey]facts.Waiting{}

	var (
		keys      []facts.WaitingKey
		questions []waiting.Question
	)

	for i := range plans {
		for j := range plans[i].Scopes {
			s := &plans[i].Scopes[j]
			for _, l := range s.Leaves {
				keys = append(keys, s.WaitingKey(l.Namespace))
				questions = append(questions, waiting.Question{
					Namespace: l.Namespace, Ending: l.Terminating, Grants: s.Grants(), As: func(string) string { return "" },
				})
			}
		}
	}

	finder, why := waiting.New(v.Config), map[facts.WaitingKey]string{}

	for range maxLooks {
		if len(questions) == 0 {
			return
		}

		answers, unanswered := finder.Find(ctx, questions)

		var (
			laterKeys []facts.WaitingKey
			later     []waiting.Question
		)

		for i := range questions {
			if found, looked := answers[i]; looked {
				v.Waiting[keys[i]] = found
			} else {
				laterKeys, later = append(laterKeys, keys[i]), append(later, questions[i])
				why[keys[i]] = cmp.Or(unanswered[i], why[keys[i]])
			}
		}

		keys, questions = laterKeys, later
	}

	for _, waits := range keys {
		v.Waiting[waits] = facts.Waiting{Unseen: cmp.Or(why[waits], "the API server does not answer")}
	}
}
