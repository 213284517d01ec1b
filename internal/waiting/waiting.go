// Package waiting finds the custom resources of a namespace that wait for a finalizer. It asks for the metadata of those that
// operators may change there, as somebody who may list them, and reads no more than it can hold.
package waiting

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
)

const (
	// atOnce bounds the requests under way, maxLists those of one look, and allInAll the time of all of them: who asks has other
	// work, too. What was not looked at by then is looked at the next time.
	atOnce   = 8
	maxLists = 2000
	allInAll = 500 * time.Millisecond
	// maxKinds is how many kinds are looked at in one namespace, and maxNamed how many objects are named.
	maxKinds = 100
	maxNamed = 5
)

// Question is what to look for in a namespace.
type Question struct {
	Namespace string
	// Ending says that everything in the namespace is about to be deleted, so that whatever has a finalizer waits for it.
	Ending bool
	// Grants are what operators hold there.
	Grants []plan.Grant
	// As says as which user what an account may change is listed; empty is whoever looks.
	As func(account string) string
}

// Finder finds what waits.
type Finder struct {
	// NoClusterRoles says that nothing without a namespace may be asked for.
	NoClusterRoles bool

	config  *rest.Config
	kinds   remembered[[]kind]
	clients clients

	mu sync.Mutex
	// roles are the rules of ClusterRoles, by name.
	roles map[string]*remembered[[]rbacv1.PolicyRule]
}

// New returns a finder that reaches the cluster with a configuration.
func New(config *rest.Config) *Finder {
	return &Finder{
		config: config, clients: clients{config: config}, roles: map[string]*remembered[[]rbacv1.PolicyRule]{},
	}
}

// job is one list of one question.
type job struct {
	question int
	user     string
	kind     kind
}

// Find answers questions. Those that it did not come to are not among the answers, which are by the index of the question.
func (l *Finder) Find(ctx context.Context, questions []Question) map[int]facts.Waiting {
	ctx, cancel := context.WithTimeout(ctx, allInAll)
	defer cancel()

	answers := make(map[int]facts.Waiting, len(questions))
	jobs := l.jobs(ctx, questions, answers)

	var (
		mu      sync.Mutex
		next    atomic.Int64
		workers sync.WaitGroup
	)

	for range min(atOnce, len(jobs)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(jobs); i = int(next.Add(1)) - 1 {
				found, err := l.list(ctx, &questions[jobs[i].question], &jobs[i])

				mu.Lock()
				note(answers, &jobs[i], found, err, ctx.Err() != nil)
				mu.Unlock()
			}
		})
	}

	workers.Wait()

	for i, w := range answers {
		w.Objects, w.Count = firstOf(w.Objects)
		w.Kept, w.KeptCount = firstOf(w.Kept)
		answers[i] = w
	}

	return answers
}

// firstOf returns the first of some names, and how many there are.
func firstOf(names []string) ([]string, int) {
	slices.Sort(names)

	return slices.Clip(names[:min(maxNamed, len(names))]), len(names)
}

// jobs are the lists that answer questions. No kind is asked for twice in a namespace. Where the operators may change no custom
// resource, nothing waits for them.
func (l *Finder) jobs(ctx context.Context, questions []Question, answers map[int]facts.Waiting) []job {
	var jobs []job

	for i := range questions {
		known, unseen := l.kindsOf(ctx, &questions[i])
		if len(jobs)+len(known) > maxLists && len(jobs) > 0 {
			break
		}

		answers[i] = facts.Waiting{Unseen: unseen}

		for _, k := range known {
			jobs = append(jobs, job{i, k.user, k.kind})
		}
	}

	return jobs
}

type asked struct {
	kind

	user string
}

// kindsOf are the kinds that operators may list and change, each with who lists it, and why there may be more.
func (l *Finder) kindsOf(ctx context.Context, q *Question) ([]asked, string) {
	rules, unseen := l.rulesOf(ctx, q)
	if !slices.ContainsFunc(rules, func(r held) bool { return slices.ContainsFunc(r.rules, mayBeAbout) }) {
		return nil, unseen
	}

	known, err := l.allKinds(ctx)
	if err != nil {
		return nil, "the kinds of the cluster are unknown now"
	}

	var out []asked

	for _, k := range known {
		at := slices.IndexFunc(rules, func(r held) bool { return k.isWorkedOn(r.rules) })

		switch {
		case at < 0:
		case len(out) >= maxKinds:
			return out, fmt.Sprintf("no more than %d kinds are looked at", maxKinds)
		default:
			out = append(out, asked{k, rules[at].user})
		}
	}

	return out, unseen
}

// held is what an account holds, and as which user Ambit lists for it.
type held struct {
	account, user string
	rules         []rbacv1.PolicyRule
}

// rulesOf are what each account holds.
func (l *Finder) rulesOf(ctx context.Context, q *Question) (out []held, unseen string) {
	for _, g := range q.Grants {
		rules := g.Rules

		if g.ClusterRole != "" {
			var err error
			if rules, err = l.rulesOfClusterRole(ctx, g.ClusterRole); err != nil {
				unseen = "what ClusterRole " + g.ClusterRole + " allows cannot be read"
			}
		}

		for _, account := range g.Accounts {
			at := slices.IndexFunc(out, func(h held) bool { return h.account == account })
			if at < 0 {
				at = len(out)
				out = append(out, held{account: account, user: q.As(account)})
			}

			out[at].rules = slices.Concat(out[at].rules, rules)
		}
	}

	return out, unseen
}

// note takes the answer about one kind into that to the question. One that there was no time for is none.
func note(answers map[int]facts.Waiting, j *job, found *found, err error, late bool) {
	w, answered := answers[j.question]

	switch {
	case !answered:
		return
	case err == nil, isGone(err):
	case isTooMuch(err):
		w.Unseen = fmt.Sprintf("of %s, no more than %d are looked at", j.kind.name(), maxObjects)
	case late:
		delete(answers, j.question)

		return
	default:
		w.Unseen = j.kind.name() + " cannot be listed"
	}

	if found != nil {
		w.Objects = append(w.Objects, found.waiting...)
		w.Kept = append(w.Kept, found.kept...)
	}

	answers[j.question] = w
}
