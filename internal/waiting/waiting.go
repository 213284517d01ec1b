// Package waiting finds the custom resources of a namespace that wait for a finalizer. It asks for the metadata of those that
// operators may change there, as somebody who may list them, and reads no more than it can hold.
package waiting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/lru"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
)

const (
	// atOnce bounds the requests under way, and maxLists those of one look.
	atOnce   = 8
	maxLists = 2000
	// defaultPatience bounds the time of a look: who asks has other work, too.
	defaultPatience = time.Second
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
	// As is the user who lists what an account may change; empty means whoever looks.
	As func(account string) string
}

// Finder finds what waits.
type Finder struct {
	// NoClusterRoles says that nothing without a namespace may be asked for.
	NoClusterRoles bool
	// Patience is how long one look may take; New sets a second. What was not looked at by then has no answer.
	Patience time.Duration

	config  *rest.Config
	kinds   remembered[known]
	clients *lru.Cache // By the user that they act as.

	mu sync.Mutex
	// roles are the rules of ClusterRoles, by name.
	roles map[string]*remembered[[]rbacv1.PolicyRule]
}

// New returns a finder that reaches the cluster with a configuration.
func New(config *rest.Config) *Finder {
	return &Finder{
		Patience: defaultPatience,

		config: config, clients: lru.New(maxClients), roles: map[string]*remembered[[]rbacv1.PolicyRule]{},
	}
}

// job is one list of one question.
type job struct {
	question int
	user     string
	kind     kind
}

// Find answers questions, by their index. A question has no answer where the API server did not say in time what there is, or
// failed: objects that an overloaded API server did not list may still be waiting. Why not is in unanswered, for those that were
// asked.
func (l *Finder) Find(ctx context.Context, questions []Question) (answers map[int]facts.Waiting, unanswered map[int]string) {
	ctx, cancel := context.WithTimeout(ctx, l.Patience)
	defer cancel()

	answers, unanswered = make(map[int]facts.Waiting, len(questions)), map[int]string{}
	jobs := l.jobs(ctx, questions, answers, unanswered)

	var mu sync.Mutex

	// Each is asked, also when the time is over: what fails by that is noted.
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), atOnce, len(jobs), func(i int) {
		found, err := l.list(ctx, &questions[jobs[i].question], &jobs[i])

		mu.Lock()
		defer mu.Unlock()

		if !note(answers, &jobs[i], found, err) {
			noteFailure(unanswered, &jobs[i], err)
		}
	})

	for i, w := range answers {
		w.Objects, w.Count = firstOf(w.Objects)
		w.Kept, w.KeptCount = firstOf(w.Kept)
		answers[i] = w
	}

	return answers, unanswered
}

// noteFailure notes why a question has no answer: always the same of several reasons, so that what is said stays the same.
func noteFailure(unanswered map[int]string, j *job, err error) {
	why := "listing " + j.kind.name() + ": " + words(err)
	if before, known := unanswered[j.question]; !known || why < before {
		unanswered[j.question] = why
	}
}

// words say why the API server gave no answer, without what differs each time.
func words(err error) string {
	var status apierrors.APIStatus

	switch {
	case apierrors.IsTooManyRequests(err):
		return "the API server is overloaded"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), apierrors.IsTimeout(err),
		apierrors.IsServerTimeout(err):
		return "the API server does not answer in time"
	case errors.As(err, &status):
		return fmt.Sprintf("the API server fails with code %d", status.Status().Code)
	default:
		return "the API server cannot be reached, or its answer cannot be read"
	}
}

// firstOf returns the first of some names, and how many there are.
func firstOf(names []string) ([]string, int) {
	slices.Sort(names)

	return slices.Clip(names[:min(maxNamed, len(names))]), len(names)
}

// jobs are the lists that answer questions. No kind is asked for twice in a namespace. Where the operators may change no custom
// resource, nothing waits for them.
func (l *Finder) jobs(
	ctx context.Context, questions []Question, answers map[int]facts.Waiting, unanswered map[int]string,
) []job {
	var jobs []job

	for i := range questions {
		if ctx.Err() != nil {
			unanswered[i] = words(ctx.Err())

			continue // It would ask anew which kinds there are.
		}

		known, unseen, err := l.kindsOf(ctx, &questions[i])
		if err != nil {
			unanswered[i] = words(err)

			continue
		}

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
func (l *Finder) kindsOf(ctx context.Context, q *Question) (out []asked, unseen string, err error) {
	rules, unseen, err := l.rulesOf(ctx, q)
	if err != nil || !slices.ContainsFunc(rules, func(r held) bool { return slices.ContainsFunc(r.rules, mayBeAbout) }) {
		return nil, unseen, err
	}

	all, err := l.allKinds(ctx)
	if err != nil {
		return nil, "", err
	}

	for _, r := range rules {
		if group := all.silentFor(r.rules); group != "" {
			unseen = "the server of " + group + " does not answer"
		}
	}

	for _, k := range all.kinds {
		at := slices.IndexFunc(rules, func(r held) bool { return k.isWorkedOn(r.rules) })

		switch {
		case at < 0:
		case len(out) >= maxKinds:
			return out, fmt.Sprintf("no more than %d kinds are looked at", maxKinds), nil
		default:
			out = append(out, asked{k, rules[at].user})
		}
	}

	return out, unseen, nil
}

// held is what an account holds, and as which user Ambit lists for it.
type held struct {
	account, user string
	rules         []rbacv1.PolicyRule
}

// rulesOf are what each account holds.
func (l *Finder) rulesOf(ctx context.Context, q *Question) (out []held, unseen string, err error) {
	for _, g := range q.Grants {
		rules := g.Rules

		if g.ClusterRole != "" {
			switch rules, err = l.rulesOfClusterRole(ctx, g.ClusterRole); {
			case err == nil:
			case isRefused(err):
				unseen = "what ClusterRole " + g.ClusterRole + " allows cannot be read"
			default:
				return nil, "", err
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

	return out, unseen, nil
}

// isRefused says whether it would be of no use to ask again.
func isRefused(err error) bool {
	return errors.Is(err, errNotAsked) || isTooMuch(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// note takes the answer about one kind into that to the question, which has none where one kind has none, and says whether there
// was one.
func note(answers map[int]facts.Waiting, j *job, found *found, err error) bool {
	w, answered := answers[j.question]

	switch {
	case err == nil:
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err): // A kind that is no longer served has no objects.
	case isTooMuch(err):
		w.Unseen = fmt.Sprintf("of %s, no more than %d are looked at", j.kind.name(), maxObjects)
	case isRefused(err):
		w.Unseen = j.kind.name() + " cannot be listed"
	default:
		delete(answers, j.question)

		return false
	}

	if !answered {
		return true
	}

	if found != nil {
		w.Objects = append(w.Objects, found.waiting...)
		w.Kept = append(w.Kept, found.kept...)
	}

	answers[j.question] = w

	return true
}
