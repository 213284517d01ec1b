// Package narrow_test narrows real operators on a real API server: what they may do afterwards is what the API server says.
package narrow_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// beds are the clusters that the tests share.
var beds testbed.Beds

func TestMain(m *testing.M) { os.Exit(beds.Run(m)) }

// begin starts a test on the one cluster of this package.
func begin(t *testing.T) *testbed.World {
	t.Helper()

	return beds.Begin(t, "cluster", "--restart-interval=1s")
}

// ambit runs the command line as cluster-admin, in this process.
func ambit(w *testbed.World, arguments ...string) (out, errOut string, code int) {
	w.Helper()

	var stdout, stderr bytes.Buffer

	code = cli.Run(w.Context(), append(arguments, "--kubeconfig", w.Cluster.Kubeconfig), &stdout, &stderr)

	return stdout.String(), stderr.String(), code
}

// kubectl runs kubectl on a manifest.
func kubectl(w *testbed.World, input string, arguments ...string) string {
	w.Helper()

	c := exec.CommandContext(w.Context(), filepath.Join(embedded.Root(), "bin", "k8s", "kubectl"),
		append([]string{"--kubeconfig", w.Cluster.Kubeconfig}, arguments...)...)
	c.Stdin = strings.NewReader(input)

	out, err := c.CombinedOutput()
	if err != nil {
		w.Fatalf("kubectl %v: %v\n%s", arguments, err, out)
	}

	return string(out)
}

// question is one that the API server is asked about an account.
type question struct {
	user, namespace, group, resource, sub, verb, name, url string
}

func (q *question) String() string {
	return fmt.Sprintf("%s %s/%s/%s%s %s in %q", q.verb, q.group, q.resource, q.sub, q.url, q.name, q.namespace)
}

// askAll asks the API server, some questions at once, and returns the answers in their order.
func askAll(w *testbed.World, all []question) []bool {
	w.Helper()

	var (
		answers = make([]bool, len(all))
		errs    = make([]error, len(all))
		wait    sync.WaitGroup
	)

	const workers = 16

	for worker := range workers {
		wait.Go(func() {
			for i := worker; i < len(all); i += workers {
				answers[i], errs[i] = ask(w, &all[i])
			}
		})
	}

	wait.Wait()

	if err := errors.Join(errs...); err != nil {
		w.Fatal(err)
	}

	return answers
}

func ask(w *testbed.World, q *question) (bool, error) {
	namespace := strings.Split(q.user, ":")[2]
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: q.user, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}}

	if q.url != "" {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: q.url, Verb: q.verb}
	} else {
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: q.namespace, Group: q.group, Resource: q.resource, Subresource: q.sub, Verb: q.verb, Name: q.name,
		}
	}

	err := w.Client.Create(w.Context(), review)

	return review.Status.Allowed, err
}

// write writes a file for a test.
func write(w *testbed.World, text string) string {
	w.Helper()

	path := filepath.Join(w.TempDir(), "input.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}

	return path
}
