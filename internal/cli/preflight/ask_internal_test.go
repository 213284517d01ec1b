package preflight

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// reviews is an API server that knows ClusterRoles and reviews, and counts what it is asked.
type reviews struct {
	mu            sync.Mutex
	asked, roles  int
	inside, atOne int
}

func (s *reviews) enter(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.inside += n
	s.atOne = max(s.atOne, s.inside)
}

func (s *reviews) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")

	if r.Method == http.MethodGet {
		s.mu.Lock()
		s.roles++
		s.mu.Unlock()

		answer(w, &rbacv1.ClusterRole{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: "edit"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
		})

		return
	}

	s.enter(1)
	defer s.enter(-1)

	time.Sleep(10 * time.Millisecond) // As an API server in another place does.

	s.mu.Lock()
	s.asked++
	s.mu.Unlock()

	answer(w, &authorizationv1.SelfSubjectRulesReview{TypeMeta: metav1.TypeMeta{
		APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectRulesReview",
	}})
}

func answer(w http.ResponseWriter, obj any) {
	_ = json.NewEncoder(w).Encode(obj)
}

// TestManyMembersAreAskedAboutAtOnce holds that a scope of thousands of members is answered for soon: the members are asked about
// beside each other, and what is the same for all of them is read once.
func TestManyMembersAreAskedAboutAtOnce(t *testing.T) {
	t.Parallel()

	const members = 60

	server := &reviews{}

	listener := httptest.NewServer(server)
	defer listener.Close()

	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}

	mapper := testrestmapper.TestOnlyStaticRESTMapper(scheme)
	config := &rest.Config{Host: listener.URL, QPS: -1}

	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}

	binds := plan.Copy{}
	binds.Kind, binds.Slot = "RoleBinding", "op"
	binds.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"}

	p := &plan.ScopePlan{Copies: []plan.Copy{binds, binds}}
	for i := range members {
		p.Members = append(p.Members, "member-"+strconv.Itoa(i))
	}

	s := &scope.Scope{Key: scope.NamespaceScopes.In("ops"), WatchList: "list"}
	a := &scopeAnswer{Namespace: "ops", Account: "writer"}

	if err := a.ask(t.Context(), snapshot.New(c), config, s, p); err != nil {
		t.Fatal(err)
	}

	if server.asked != members+1 || server.roles != 1 || server.atOne < 2 {
		t.Errorf("%d reviews, %d at once, and the ClusterRole %d times", server.asked, server.atOne, server.roles)
	}

	var places []string
	for i := range a.Missing {
		places = append(places, a.Missing[i].Namespace)
	}

	if !slices.Equal(places, append([]string{"ops"}, p.Members...)) {
		t.Errorf("it is about %v", places)
	}
}
