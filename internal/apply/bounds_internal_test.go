package apply

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/writer"
)

// TestClientsOfManyAccountsAreDropped: whoever may write scopes decides how many accounts they name.
func TestClientsOfManyAccountsAreDropped(t *testing.T) {
	t.Parallel()

	mapper, err := client.New(&rest.Config{Host: "https://127.0.0.1:1"}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	a := New(&rest.Config{Host: "https://127.0.0.1:1"}, client.Options{Mapper: mapper.RESTMapper()}, nil, 1)

	for i := range 5 * maxClients {
		if _, err := a.as(writer.ServiceAccount("ops", fmt.Sprintf("account-%d", i))); err != nil {
			t.Fatal(err)
		}

		if _, err := a.as(Own()); err != nil {
			t.Fatal(err)
		}
	}

	if got := a.clients.Len(); got != maxClients {
		t.Errorf("%d clients are kept, want %d", got, maxClients)
	}

	if _, kept := a.clients.Get(Own()); !kept {
		t.Error("a client that is always in use was dropped")
	}
}

// TestReviewsAreBounded: owners of namespaces decide how many rules an account holds, and authors of scopes how many accounts do.
func TestReviewsAreBounded(t *testing.T) {
	t.Parallel()

	r := &reviews{known: map[reviewed]*review{}, rules: map[[sha256.Size]byte][]rbacv1.PolicyRule{}}

	for i := range 200 {
		id := writer.ServiceAccount("ops", strconv.Itoa(i))
		held := []rbacv1.PolicyRule{{Verbs: []string{"get"}, ResourceNames: []string{strings.Repeat("x", 100_000), strconv.Itoa(i)}}}

		if kept := r.keep(reviewed{id, "a"}, &review{held: held, taken: time.Now()}); len(kept.held) != 1 {
			t.Fatal("what was asked is not answered")
		}

		r.keep(reviewed{id, "b"}, &review{held: held, taken: time.Now()})
	}

	if r.bytes > maxRuleBytes || len(r.rules)*100_000 > maxRuleBytes || len(r.known) > 2*len(r.rules) {
		t.Errorf("%d bytes of %d sets of rules are remembered, for %d reviews", r.bytes, len(r.rules), len(r.known))
	}

	huge := []rbacv1.PolicyRule{{ResourceNames: []string{strings.Repeat("x", maxRuleBytes)}}}
	at := reviewed{writer.ServiceAccount("ops", "huge"), "a"}
	if r.keep(at, &review{held: huge}); r.known[at] != nil {
		t.Error("more than all that may be remembered is")
	}
}

// TestAReviewThatIsRightIsBelieved: what a review does not cover is tried, but not for ever; and it is not
// believed once it was wrong.
func TestAReviewThatIsRightIsBelieved(t *testing.T) {
	t.Parallel()

	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.ErrUnsupported)

	for reason, tc := range map[string]struct {
		verdict func(i int) error
		asked   int
		refused bool
	}{
		"it is right":                 {func(int) error { return forbidden }, maxTries, true},
		"it is wrong once":            {func(i int) error { return map[bool]error{false: forbidden}[i == 3] }, maxTries, false},
		"nobody answers":              {func(int) error { return errors.ErrUnsupported }, 100, false},
		"another authorizer says yes": {func(int) error { return nil }, maxTries, false},
	} {
		r, asked, refused := &review{}, 0, false

		for i := range 100 {
			refused, _ = r.isRefused(strconv.Itoa(i), func() error {
				asked++

				return tc.verdict(i)
			})
		}

		if asked != tc.asked || refused != tc.refused || len(r.verdicts) > maxTries {
			t.Errorf("%s: asked %d times, refused %t, %d verdicts", reason, asked, refused, len(r.verdicts))
		}
	}
}
