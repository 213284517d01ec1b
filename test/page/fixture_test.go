package page_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/page"
)

// fixture is a cluster without one: operators by namespaces as many as a test wants, of the kinds that occur.
type fixture struct {
	operators, namespaces int
	// files says that the page was started with some.
	files bool

	mu    sync.Mutex
	extra []overview.Service
	news  chan struct{}
}

func newFixture(operators, namespaces int) *fixture {
	return &fixture{operators: operators, namespaces: namespaces, news: make(chan struct{}, 1)}
}

// teams are the operator namespaces, each with a scope.
func teams() []struct{ namespace, scope string } {
	return []struct{ namespace, scope string }{
		{"ibm-common-services", "common-service"}, {"payments-ops", "payments"}, {"data-platform", "databases"}, {"observability", "agents"},
	}
}

func words() []string {
	return []string{
		"secretman", "certman", "ingress-operator", "postgres", "kafka", "licensing", "iam", "events", "backup", "search", "mongo", "redis",
	}
}

func (f *fixture) name(n int) string {
	kinds := []string{"cloudpak", "payments", "analytics", "checkout", "team", "sandbox"}
	if f.namespaces <= 100 {
		return fmt.Sprintf("%s-%02d", kinds[n%len(kinds)], n/len(kinds)+1)
	}

	return fmt.Sprintf("%s-%05d", kinds[n%len(kinds)], n/len(kinds)+1)
}

// state is that of a team in a namespace: most are served, few are not, in whole classes.
func (f *fixture) state(team, n int) (overview.State, string) {
	switch {
	case team == 1 && n%6 != 1 || team == 2 && n%6 > 3 || team == 3 && n%3 == 2:
		return "", ""
	case team == 0 && n%29 == 17:
		return overview.Failed, "AuthorizationRequired"
	case team == 2 && n%41 == 14:
		return overview.Partial, "RoleNotProjected"
	case team == 0 && n%53 == 40:
		return overview.Unknown, overview.NotRead
	default:
		return overview.Served, ""
	}
}

func (f *fixture) Read(context.Context) (*page.Snapshot, error) {
	var (
		services []overview.Service
		scopes   []overview.Scope
		names    = []string{"default", "kube-node-lease"}
	)

	for t, team := range teams() {
		scope := "NamespaceScope " + team.namespace + "/" + team.scope
		declared := overview.Scope{Name: scope, Group: "operator.ibm.com", Ready: "True", Reason: "Reconciled"}

		for n := range f.namespaces {
			if _, reason := f.state(t, n); reason == "AuthorizationRequired" || reason == "RoleNotProjected" {
				declared.Ready, declared.Reason = "False", "MembersFailed"
				declared.Message = "some members are not fully served; ambit authorize grants what is missing"
				declared.Failed = append(declared.Failed, overview.FailedNamespace{Namespace: f.name(n), Reason: reason})
			}
		}

		scopes = append(scopes, declared)

		for o := t; o < f.operators; o += len(teams()) {
			services = append(services, f.servicesOf(t, o, scope)...)
		}
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	services = append(services, f.extra...)

	return &page.Snapshot{Overview: overview.New(scopes, services, names)}, nil
}

func (f *fixture) servicesOf(team, o int, scope string) []overview.Service {
	word := words()[o%len(words())]
	if o >= len(words()) {
		word = fmt.Sprintf("%s-%d", word, o/len(words())+1)
	}

	home := teams()[team].namespace
	operator := overview.Operator{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: word}
	roles := []overview.Role{{Name: "Role " + home + "/" + word, Binding: "RoleBinding " + home + "/" + word}}
	out := []overview.Service{{Operator: operator, Namespace: home, Scope: scope, State: overview.OwnNamespace, Roles: roles}}

	for n := range f.namespaces {
		if state, reason := f.state(team, n); state != "" {
			s := overview.Service{Operator: operator, Namespace: f.name(n), Scope: scope, State: state, Reason: reason, Roles: roles}
			if reason == "AuthorizationRequired" {
				s.Message = "its owner has not authorized " + home + " yet; ambit authorize " + f.name(n) + " --to " + home + " does"
			}

			out = append(out, s)
		}
	}

	return out
}

// join makes a namespace a member of the first scope, as a live change.
func (f *fixture) join(namespace string) {
	f.joins(namespace, "NamespaceScope "+teams()[0].namespace+"/"+teams()[0].scope)
}

// joins makes a namespace a member of scopes, each a change of its own.
func (f *fixture) joins(namespace string, scopes ...string) {
	f.mu.Lock()
	for _, scope := range scopes {
		f.extra = append(f.extra, overview.Service{
			Operator:  overview.Operator{Kind: rbacv1.ServiceAccountKind, Namespace: teams()[0].namespace, Name: words()[0]},
			Namespace: namespace, Scope: scope, State: overview.Served,
		})
	}
	f.mu.Unlock()

	f.news <- struct{}{}
}

func (f *fixture) Wait(ctx context.Context) error {
	select {
	case <-f.news:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fixture) Operators(ctx context.Context, namespace string) (any, error) {
	snapshot, err := f.Read(ctx)
	if err != nil {
		return nil, err
	}

	type inside struct {
		overview.Operator

		State  overview.State      `json:"state"`
		Reason string              `json:"reason,omitempty"`
		APIs   []map[string]string `json:"apis"`
	}

	out := []inside{}

	for _, s := range snapshot.Services {
		if s.Namespace == namespace {
			out = append(out, inside{s.Operator, s.State, s.Reason, []map[string]string{}})
		}
	}

	return map[string]any{"namespace": namespace, "operators": out}, nil
}

func (f *fixture) Why(_ context.Context, q *page.WhyQuestion) (any, error) {
	home, name, _ := cut(q.Account)
	scope := &explain.Ref{Kind: "NamespaceScope", Namespace: home, Name: "common-service"}
	rules := []rbacv1.PolicyRule{
		{Verbs: []string{"get", "list", "watch", "create", "update"}, APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}},
		{Verbs: []string{"*"}, APIGroups: []string{"certman.example.com"}, Resources: []string{"certificates"}},
	}
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	return map[string]any{"allowed": nil, "rights": []explain.Right{{
		Rules: rules, Binding: explain.Ref{Kind: "RoleBinding", Namespace: q.Namespace, Name: name + "-5f0c92ab31"},
		Role: explain.Ref{Kind: "Role", Namespace: q.Namespace, Name: name + "-77b1e04c9d"}, Scope: scope,
		SourceBinding: &explain.Ref{Kind: "RoleBinding", Namespace: home, Name: name},
		SourceRole:    &explain.Ref{Kind: "Role", Namespace: home, Name: name},
		ScopeAuthor:   &explain.Author{Manager: "kubectl-client-side-apply", By: "Argo CD application platform", Time: &made},
	}}}, nil
}

func cut(account string) (namespace, name string, found bool) {
	for i := range account {
		if account[i] == '/' {
			return account[:i], account[i+1:], true
		}
	}

	return "", account, false
}

func (f *fixture) WhoCan(_ context.Context, q *page.WhoQuestion) (any, error) {
	rules := []rbacv1.PolicyRule{{Verbs: []string{q.Verb}, APIGroups: []string{""}, Resources: []string{q.Resource}}}
	home := teams()[0]

	return map[string]any{"namespace": q.Namespace, "holders": []explain.Entry{
		{Kind: rbacv1.GroupKind, Name: "auditors", Aggregated: []string{"view-secrets"}, Right: explain.Right{
			Rules: rules, Binding: explain.Ref{Kind: "ClusterRoleBinding", Name: "auditors"}, Role: explain.Ref{Kind: "ClusterRole", Name: "audit"},
			Everywhere: true, Author: &explain.Author{Manager: "kubectl-client-side-apply"},
		}},
		{Kind: rbacv1.ServiceAccountKind, Namespace: home.namespace, Name: words()[0], Right: explain.Right{
			Rules: rules, Binding: explain.Ref{Kind: "RoleBinding", Namespace: q.Namespace, Name: words()[0] + "-5f0c92ab31"},
			Role:          explain.Ref{Kind: "Role", Namespace: q.Namespace, Name: words()[0] + "-77b1e04c9d"},
			Scope:         &explain.Ref{Kind: "NamespaceScope", Namespace: home.namespace, Name: home.scope},
			SourceRole:    &explain.Ref{Kind: "Role", Namespace: home.namespace, Name: words()[0]},
			SourceBinding: &explain.Ref{Kind: "RoleBinding", Namespace: home.namespace, Name: words()[0]},
		}},
	}, "notRead": []string{"you may not list ClusterRoles"}}, nil
}

func (f *fixture) People(_ context.Context, text string) (any, error) {
	return map[string]any{"text": text, "bound": []explain.Entry{{
		Kind: rbacv1.UserKind, Name: text + "@example.com", Right: explain.Right{
			Binding: explain.Ref{Kind: "RoleBinding", Namespace: "payments-01", Name: "on-call"},
			Role:    explain.Ref{Kind: "ClusterRole", Name: "edit"}, Author: &explain.Author{Manager: "kubectl-client-side-apply"},
		},
	}}, "notRead": []string{"you may not list ClusterRoleBindings"}}, nil
}

func (f *fixture) Events(context.Context, string) ([]page.Event, error) {
	return []page.Event{{
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Type: "Normal", Reason: "NamespaceAdded", Message: "cloudpak-01 is a member now",
	}}, nil
}

// Plan adds two members to the first scope, of which one is refused, takes one away, and gives an account more in another.
func (f *fixture) Plan(ctx context.Context) (*page.Plan, error) {
	if !f.files {
		return nil, nil
	}

	snapshot, err := f.Read(ctx)
	if err != nil {
		return nil, err
	}

	home := teams()[0]
	scope := "NamespaceScope " + home.namespace + "/" + home.scope
	out := &page.Plan{Planned: []string{scope}, Scopes: snapshot.Scopes[:1], Data: map[string]any{
		"files":    []map[string]string{{"kind": "NamespaceScope", "namespace": home.namespace, "name": home.scope, "result": "changed"}},
		"restarts": []map[string]string{{"namespace": home.namespace, "reader": "Deployment " + words()[0], "reason": "its watch list changes"}},
		"refused":  true,
	}}

	for _, s := range snapshot.Services {
		if s.Scope != scope || s.Namespace == f.name(0) {
			continue
		}

		if s.Namespace == f.name(6) {
			s.Roles = append(s.Roles[:1:1], overview.Role{Name: "Role " + home.namespace + "/more"})
		}

		out.Services = append(out.Services, s)
	}

	for i, namespace := range []string{"newcomer", "stranger"} {
		s := overview.Service{
			Operator:  overview.Operator{Kind: rbacv1.ServiceAccountKind, Namespace: home.namespace, Name: words()[0]},
			Namespace: namespace, Scope: scope, State: overview.Served,
		}
		o := page.PlannedObject{Action: "create", Kind: "Role", Namespace: namespace, Name: words()[0] + "-…", Source: "Role " + home.namespace + "/" + words()[0]}

		if i == 1 {
			s.State, s.Reason = overview.Failed, "MemberUnauthorized"
			o.Refused = "MemberUnauthorized: service account " + home.namespace + "/ambit may not create roles"
		}

		out.Services, out.Objects = append(out.Services, s), append(out.Objects, o)
	}

	return out, nil
}
