package snapshot

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// asked remembers what is listed, and knows nothing.
type asked struct {
	client.Client

	mu    sync.Mutex
	lists []string
}

// Scheme knows no kinds, and RESTMapper no resources.
func (*asked) Scheme() *runtime.Scheme { return runtime.NewScheme() }

func (*asked) RESTMapper() meta.RESTMapper { return meta.NewDefaultRESTMapper(nil) }

func (a *asked) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	a.mu.Lock()
	defer a.mu.Unlock()

	a.lists = append(a.lists, fmt.Sprintf("%T in %s", list, opts[0]))

	return nil
}

// TestSourcesAreAllThatIsRead holds what whoever authorizes must be able to read: a list more is a right more.
func TestSourcesAreAllThatIsRead(t *testing.T) {
	t.Parallel()

	c := &asked{}
	if _, err := New(c).Sources(t.Context(), "ops"); err != nil {
		t.Fatal(err)
	}

	want := []string{"*v1.PodList in ops", "*v1.RoleBindingList in ops", "*v1.RoleList in ops", "*v1.ServiceAccountList in ops"}
	for i := range facts.WorkloadTypes {
		want = append(want, "*v1."+string(facts.WorkloadTypes[i].Kind)+"List in ops")
	}

	slices.Sort(want)
	slices.Sort(c.lists)

	if !slices.Equal(c.lists, want) {
		t.Errorf("read are %q, want %q", c.lists, want)
	}
}
