package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// auditLog is the API server's log of every request. An entry is in the file before the request is answered.
type auditLog struct{ path string }

// requests counts requests by what they did, such as "create roles".
type requests map[string]int

// The kinds of requests that are counted apart: those for the lease, watches and events.
const (
	leaseRequests = "lease"
	watchRequests = "watch"
	eventRequests = "event"
)

// mark returns where the log goes on, behind an entry that is being written.
func (a auditLog) mark(ctx context.Context) (int64, error) {
	mark, err := embedded.LineFromNow(ctx, a.path)
	if err != nil {
		return 0, fmt.Errorf("finding the end of the audit log: %w", err)
	}

	return mark, nil
}

// since counts the manager's requests that were answered after a mark.
func (a auditLog) since(mark int64) (requests, error) {
	file, err := os.Open(a.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()

	if _, err := file.Seek(mark, io.SeekStart); err != nil {
		return nil, err
	}

	found := requests{}
	user := "system:serviceaccount:" + embedded.Namespace + ":" + embedded.ServiceAccount
	lines := bufio.NewReaderSize(file, 1<<20)

	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return found, nil // Half a line is a request that is not answered yet.
		}

		if err != nil {
			return nil, err
		}

		var entry auditEntry
		if err := json.Unmarshal(line, &entry); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}

		if entry.User.Username == user {
			found[entry.what()]++
		}
	}
}

type auditEntry struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

func (e *auditEntry) what() string {
	if e.ObjectRef == nil {
		return e.Verb + " " + e.RequestURI
	}

	what := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		what += "/" + e.ObjectRef.Subresource
	}

	switch {
	case what == "leases":
		return leaseRequests
	case what == "events":
		return eventRequests
	case e.Verb == "watch":
		return watchRequests
	case e.ResponseStatus.Code >= 400:
		return fmt.Sprintf("%s %s (%d)", e.Verb, what, e.ResponseStatus.Code)
	default:
		return e.Verb + " " + what
	}
}

// own returns the requests without those for the lease, watches and events.
func (r requests) own() requests {
	out := maps.Clone(r)
	delete(out, leaseRequests)
	delete(out, watchRequests)
	delete(out, eventRequests)

	return out
}

// writes returns the requests that change something; those that create a review do not.
func (r requests) writes() requests {
	out := r.own()
	maps.DeleteFunc(out, func(what string, _ int) bool {
		verb, resource, _ := strings.Cut(what, " ")

		return verb == "get" || verb == "list" || strings.HasSuffix(resource, "reviews")
	})

	return out
}

// refused counts the requests that the API server refused because it was overloaded.
func (r requests) refused() int {
	n := 0

	for what, count := range r {
		if strings.HasSuffix(what, fmt.Sprintf(" (%d)", http.StatusTooManyRequests)) {
			n += count
		}
	}

	return n
}

func (r requests) total() int {
	n := 0
	for _, count := range r {
		n += count
	}

	return n
}

func (r requests) String() string {
	if len(r) == 0 {
		return "none"
	}

	parts := collect.Map(slices.Sorted(maps.Keys(r)), func(what string) string { return fmt.Sprintf("%d %s", r[what], what) })

	return strings.Join(parts, ", ")
}

// silence is how long the manager must have asked for nothing before it counts as settled.
const silence = 1500 * time.Millisecond

// settled waits until the manager asks for nothing any more besides its lease.
func (a auditLog) settled(ctx context.Context) error {
	for {
		mark, err := a.mark(ctx)
		if err != nil {
			return err
		}

		if err := sleep(ctx, silence); err != nil {
			return err
		}

		heard, err := a.since(mark)
		if err != nil {
			return err
		}

		delete(heard, leaseRequests)

		if heard.total() == 0 {
			return nil
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
