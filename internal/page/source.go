package page

import (
	"context"
	"errors"
	"time"

	"github.com/ambit-k8s/ambit/internal/overview"
)

// Source answers with the rights of the caller, by the functions that the commands use, so that the page and the terminal show
// the same. What it returns as any is what the command prints for programs.
type Source interface {
	// Read reads who is served where.
	Read(ctx context.Context) (*Snapshot, error)
	// Wait returns when what Read returned may have changed.
	Wait(ctx context.Context) error
	// Operators are those that serve a namespace, as ambit operators prints them.
	Operators(ctx context.Context, namespace string) (any, error)
	// Why is what an account may do in a namespace, and by what, as ambit why prints it.
	Why(ctx context.Context, q *WhyQuestion) (any, error)
	// WhoCan are those who may do something, as ambit who-can prints them.
	WhoCan(ctx context.Context, q *WhoQuestion) (any, error)
	// People are those whose names contain a text, with the bindings that name them.
	People(ctx context.Context, text string) (any, error)
	// Events are the events of a scope, newest first.
	Events(ctx context.Context, scope string) ([]Event, error)
	// Plan is what applying the files of the page would change, as ambit plan prints it; nil without files.
	Plan(ctx context.Context) (*Plan, error)
}

// ErrQuestion is wrapped by errors that are the fault of the question.
var ErrQuestion = errors.New("the question cannot be read")

// ErrNotThere is wrapped by errors of questions about what does not exist.
var ErrNotThere = errors.New("there is no such thing to answer about")

// ErrMayNot is wrapped by errors of questions about what the caller may not see.
var ErrMayNot = errors.New("you may not see this")

// Snapshot is who is served where, and what the caller may not see of it.
type Snapshot struct {
	*overview.Overview

	NotRead, Notes []string
	// Namespace is the namespace whose scopes were asked for; empty for all.
	Namespace string
	// Flags are those by which commands reach the same cluster as the same user.
	Flags []string
}

// Plan is what would change.
type Plan struct {
	// Data is what ambit plan prints for programs, without Objects, which are the single writes.
	Data    any
	Objects []PlannedObject
	// Planned are the names of the scopes that were planned, also of those that would go. Scopes and Services are what would be
	// there of them, and Namespaces those that would exist.
	Planned    []string
	Scopes     []overview.Scope
	Services   []overview.Service
	Namespaces []string
}

// PlannedObject is one write.
type PlannedObject struct {
	Action    string `json:"action"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Source    string `json:"source,omitempty"`
	Scope     string `json:"scope,omitempty"`
	// Refused says why it would not be made.
	Refused string `json:"refused,omitempty"`
}

// WhyQuestion is about a service account in a namespace; without a verb, about everything that it may do there.
type WhyQuestion struct {
	Account, Namespace   string
	Verb, Resource, Name string
}

// WhoQuestion is about everybody who may do something in a namespace; without one, in the whole cluster.
type WhoQuestion struct{ Verb, Resource, Namespace, Name string }

// Event is what Ambit or Kubernetes said about a scope.
type Event struct {
	Time    time.Time `json:"time"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Count   int32     `json:"count,omitempty"`
}
