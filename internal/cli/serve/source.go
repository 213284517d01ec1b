package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/plan"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/cli/served"
	"github.com/ambit-k8s/ambit/internal/cli/whocan"
	"github.com/ambit-k8s/ambit/internal/cli/why"
	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/follow"
	"github.com/ambit-k8s/ambit/internal/page"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// pageSource answers the page as the commands answer a terminal.
type pageSource struct {
	options reading.Options
	// flags are those by which commands reach the same cluster as the same user.
	flags  []string
	config *rest.Config
	// gate asks the API server each time; live keeps the lists that the map is made from up to date.
	gate *follow.Gate
	live *follow.Client
	// plan and documents are what would be applied; without files, there are no documents.
	plan      plan.Options
	documents []files.Document
}

func (o *Options) source(ctx context.Context) (*pageSource, error) {
	c, config, err := command.Connect(o.Cluster)
	if err != nil {
		return nil, err
	}

	watching, err := client.NewWithWatch(config, client.Options{Scheme: c.Scheme(), Mapper: c.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("reaching the cluster: %w", command.OneLine(err))
	}

	gate := follow.NewGate(watching)

	out := &pageSource{
		options: o.Options, flags: o.flags, config: config, gate: gate, live: follow.New(ctx, gate),
		plan: plan.Options{Options: o.Options, Files: o.Files, Recursive: o.Recursive, Delete: o.Delete},
	}

	if len(o.Files) > 0 {
		if out.documents, err = files.Read(o.Files, o.Recursive); err != nil {
			return nil, err
		}
	}

	return out, nil
}

// view returns a Cluster that a client reads, without progress.
func (s *pageSource) view(c client.Client) *reading.Cluster {
	v := reading.New(c, s.config, s.options.ErrOut)
	v.MayActAs, v.Progress = s.gate.MayActAs, nil

	return v
}

// Read reads what ambit matrix and ambit tree are made from.
func (s *pageSource) Read(ctx context.Context) (*page.Snapshot, error) {
	v := s.view(s.live)

	all, err := served.Overview(ctx, v, &s.options)
	if err != nil {
		return nil, command.OneLine(err)
	}

	snapshot := &page.Snapshot{Overview: all, NotRead: v.NotRead(), Notes: v.Notes, Flags: s.flags}
	if s.options.NamespaceGiven {
		snapshot.Namespace = s.options.Namespace
	}

	return snapshot, nil
}

// Wait returns when something that Read read may have changed.
func (s *pageSource) Wait(ctx context.Context) error { return s.live.Wait(ctx) }

// Operators is what ambit operators prints.
func (s *pageSource) Operators(ctx context.Context, namespace string) (any, error) {
	o := served.OperatorsOptions{Options: s.options}
	o.Namespace, o.NamespaceGiven = namespace, true

	data, err := o.Find(ctx, s.view(s.gate))
	if errors.Is(err, served.ErrNoNamespace) {
		err = fmt.Errorf("%w: %w", page.ErrNotThere, err)
	}

	return data, err
}

// Why is what ambit why prints.
func (s *pageSource) Why(ctx context.Context, q *page.WhyQuestion) (any, error) {
	namespace, name, _ := strings.Cut(q.Account, "/")
	o := why.Options{
		Options: s.options, Account: explain.Account{Namespace: namespace, Name: name},
		Verb: q.Verb, Resource: q.Resource, Name: q.Name,
	}
	o.Namespace, o.NamespaceGiven = q.Namespace, true

	return answered(o.Explain(ctx, s.view(s.gate)))
}

// WhoCan is what ambit who-can prints.
func (s *pageSource) WhoCan(ctx context.Context, q *page.WhoQuestion) (any, error) {
	return answered(whocan.Ask(ctx, s.gate, explain.Question{Verb: q.Verb, Resource: q.Resource, Name: q.Name}, q.Namespace))
}

// People are those whose names contain a text.
func (s *pageSource) People(ctx context.Context, text string) (any, error) {
	people, err := whocan.Find(ctx, s.gate, text, s.options.Namespace)
	if err != nil {
		return nil, command.OneLine(err)
	}

	return people, nil
}

// answered marks the errors that are the fault of the question.
func answered[T any](data T, err error) (any, error) {
	if errors.Is(err, discovered.ErrAmbiguous) {
		err = fmt.Errorf("%w: %w", page.ErrQuestion, err)
	}

	return data, err
}

// Events returns the events of a scope, which is named as reading.ScopeName does, newest first.
func (s *pageSource) Events(ctx context.Context, named string) ([]page.Event, error) {
	kind, rest, _ := strings.Cut(named, " ")
	kind, _, _ = strings.Cut(kind, ".")

	namespace, name, namespaced := strings.Cut(rest, "/")
	if !namespaced {
		namespace, name = corev1.NamespaceDefault, rest // Events of cluster-scoped objects are there.
	}

	var list corev1.EventList

	err := s.gate.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{
		"involvedObject.kind": kind, "involvedObject.name": name,
	})
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("%w: events in namespace %s", page.ErrMayNot, namespace)
	}

	if err != nil {
		return nil, fmt.Errorf("reading events: %w", command.OneLine(err))
	}

	out := make([]page.Event, 0, len(list.Items))

	for i := range list.Items {
		e := &list.Items[i]
		about := &e.InvolvedObject
		owner := scope.Owner{
			Group: about.GroupVersionKind().Group, Kind: about.Kind, Namespace: about.Namespace, Name: about.Name,
		}

		if reading.ScopeName(owner) != named {
			continue
		}

		at, count := seen(e)
		out = append(out, page.Event{Time: at, Type: e.Type, Reason: e.Reason, Message: e.Message, Count: count})
	}

	slices.SortStableFunc(out, func(a, b page.Event) int { return b.Time.Compare(a.Time) })

	return out, nil
}

// seen is when an event happened last, and how often it did. Recorders of events.k8s.io, such as the manager's, keep both in the
// series alone.
func seen(e *corev1.Event) (at time.Time, count int32) {
	var series corev1.EventSeries
	if e.Series != nil {
		series = *e.Series
	}

	return cmp.Or(e.LastTimestamp.Time, series.LastObservedTime.Time, e.EventTime.Time, e.CreationTimestamp.Time),
		cmp.Or(e.Count, series.Count)
}
