package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// Patience bounds every wait. Ambit needs far less; the machine that runs the tests may be busy, and slow.
const Patience = 3 * time.Minute

// World is one test's view of a bed.
type World struct {
	*testing.T
	*Bed
}

// Begin starts a test that runs beside the others of the bed. When it fails, the end of the manager's log is printed.
func (b *Bed) Begin(t *testing.T) *World {
	t.Helper()
	t.Parallel()

	return b.world(t)
}

func (b *Bed) world(t *testing.T) *World {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}

		log, err := os.ReadFile(b.Manager.Log)
		t.Logf("the manager's log ends with (%v)\n%s", err, log[max(0, len(log)-4000):])
	})

	return &World{T: t, Bed: b}
}

// Logged is how many lines of the manager's log have all of these words.
func (w *World) Logged(words ...string) int {
	w.Helper()

	log, err := os.ReadFile(w.Manager.Log)
	if err != nil {
		w.Fatal(err)
	}

	found := 0

	for line := range strings.Lines(string(log)) {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			found++
		}
	}

	return found
}

// Namespace makes a namespace that no other test has.
func (w *World) Namespace(prefix string, labels ...string) string {
	w.Helper()

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: prefix + "-" + rand.String(6), Labels: map[string]string{}}}
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		ns.Labels[k] = v
	}

	w.Make(ns)

	return ns.Name
}

// MakeNamespace makes a namespace of a given name.
func (w *World) MakeNamespace(name string) {
	w.Helper()
	w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// Make creates objects as cluster-admin.
func (w *World) Make(objects ...client.Object) {
	w.Helper()

	for _, obj := range objects {
		if err := w.Client.Create(w.Context(), obj, client.FieldOwner("somebody")); err != nil {
			w.Fatalf("making %T %s: %v", obj, client.ObjectKeyFromObject(obj), err)
		}
	}
}

// Change updates the latest version of an object as cluster-admin.
func (w *World) Change(obj client.Object, edit func()) {
	w.Helper()

	if err := Change(w.Context(), w.Client, obj, edit); err != nil {
		w.Fatalf("changing %T %s: %v", obj, client.ObjectKeyFromObject(obj), err)
	}
}

// Change updates the latest version of an object as the user of a client, whoever else writes it meanwhile.
func Change(ctx context.Context, c client.Client, obj client.Object, edit func()) error {
	return retry.RetryOnConflict(embedded.Conflicts, func() error { //nolint:wrapcheck // Callers say what was changed.
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err //nolint:wrapcheck // The error is reported with what was being done.
		}

		edit()

		return c.Update(ctx, obj, client.FieldOwner("somebody"))
	})
}

// Remove deletes an object as cluster-admin.
func (w *World) Remove(obj client.Object) {
	w.Helper()

	if err := w.Client.Delete(w.Context(), obj); err != nil {
		w.Fatalf("deleting %T %s: %v", obj, client.ObjectKeyFromObject(obj), err)
	}
}

// Eventually waits until check returns no error.
func (w *World) Eventually(what string, check func() error) {
	w.Helper()
	w.Within(Patience, what, check)
}

// Within waits for what Kubernetes does in its own time, such as ending a namespace.
func (w *World) Within(limit time.Duration, what string, check func() error) {
	w.Helper()

	if err := Until(limit, check); err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

// Gone is a check for Eventually and Within: that an object no longer exists.
func (w *World) Gone(obj client.Object) func() error {
	return func() error {
		err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) {
			return nil
		}

		return errors.Join(errors.New("it is still there"), err)
	}
}

// Running waits until the Deployments of a namespace have all of their pods, of the present template.
func (w *World) Running(namespace string) {
	w.Helper()
	w.Eventually("the operators of "+namespace+" run", func() error {
		list := &appsv1.DeploymentList{}
		if err := w.Client.List(w.Context(), list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("listing them: %w", err)
		}

		for i := range list.Items {
			d := &list.Items[i]
			if s := &d.Status; s.ObservedGeneration != d.Generation || s.Replicas != *d.Spec.Replicas ||
				s.UpdatedReplicas != s.Replicas || s.AvailableReplicas != s.Replicas {
				return fmt.Errorf("%s has %+v", d.Name, *s)
			}
		}

		return nil
	})
}

// RolledOut says whether the one pod of a Deployment is of its present template, and there is no other.
func RolledOut(d *appsv1.Deployment) bool {
	s := &d.Status

	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == 1 && s.Replicas == 1 && s.ReadyReplicas == 1
}

// Allowed asks the API server whether a service account may do something, such as "get secrets" or "get secrets/one".
func (w *World) Allowed(ops, account, namespace, words string) bool {
	w.Helper()

	return w.must(w.Review(ops, account, namespace, words))
}

// Review asks what Allowed asks, and returns the error: only a test's own goroutine may end the test.
func (w *World) Review(ops, account, namespace, words string) (bool, error) {
	return Review(w.Context(), w.Client, ops, account, namespace, words)
}

// Review asks, as the user of a client, what Allowed asks.
func Review(ctx context.Context, c client.Client, ops, account, namespace, words string) (bool, error) {
	verb, resource, _ := strings.Cut(words, " ")
	resource, name, _ := strings.Cut(resource, "/")
	groups := map[string]string{
		"deployments": "apps", "roles": "rbac.authorization.k8s.io", "rolebindings": "rbac.authorization.k8s.io",
		"clusterroles": "rbac.authorization.k8s.io", "clusterserviceversions": "operators.coreos.com",
	}

	return review(ctx, c, ops, account, &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: verb, Group: groups[resource], Resource: resource, Name: name,
	})
}

// AllowedIn asks about a resource of any API group.
func (w *World) AllowedIn(ops, account, namespace, verb, group, resource string) bool {
	w.Helper()

	return w.must(review(w.Context(), w.Client, ops, account, &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: verb, Group: group, Resource: resource,
	}))
}

func (w *World) must(allowed bool, err error) bool {
	w.Helper()

	if err != nil {
		w.Fatal(err)
	}

	return allowed
}

func review(
	ctx context.Context, c client.Client, ops, account string, about *authorizationv1.ResourceAttributes,
) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               scope.AccountUser(ops, account),
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + ops, "system:authenticated"},
		ResourceAttributes: about,
	}}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking what is allowed: %w", err)
	}

	return review.Status.Allowed, nil
}

// May waits until a service account may do something.
func (w *World) May(ops, account, namespace, words string) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%s/%s may %s in %s", ops, account, words, namespace), func() error {
		if !w.Allowed(ops, account, namespace, words) {
			return errDenied
		}

		return nil
	})
}

// MayNot waits until a service account may not do something any more.
func (w *World) MayNot(ops, account, namespace, words string) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%s/%s may not %s in %s", ops, account, words, namespace), func() error {
		if w.Allowed(ops, account, namespace, words) {
			return errAllowed
		}

		return nil
	})
}

// Reports waits until the condition Ready of a scope has a status and a reason, for the present generation, and a message with
// these words. Words are needed if the scope may have had that reason already before the last change to the cluster.
func (w *World) Reports(
	nss *operatorv1.NamespaceScope, status metav1.ConditionStatus, reason string, words ...string,
) *metav1.Condition {
	w.Helper()

	var found *metav1.Condition

	w.Eventually(nss.Name+" becomes "+reason, func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(nss), nss); err != nil {
			return err //nolint:wrapcheck // The error is reported with what was waited for.
		}

		found = meta.FindStatusCondition(nss.Status.Conditions, "Ready")
		if found == nil || found.Status != status || found.Reason != reason || found.ObservedGeneration != nss.Generation {
			return fmt.Errorf("generation %d, status %+v", nss.Generation, nss.Status)
		}

		for _, word := range words {
			if !strings.Contains(found.Message, word) {
				return fmt.Errorf("nothing about %q in %+v", word, nss.Status)
			}
		}

		return nil
	})

	return found
}

// As returns a client that acts as a user with groups.
func (w *World) As(user string, groups ...string) client.Client {
	w.Helper()

	config := rest.CopyConfig(w.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}

	c, err := newClient(config)
	if err != nil {
		w.Fatal(err)
	}

	return c
}

// ConfigOf is how a service account reaches the API server, with a token of its own.
func (w *World) ConfigOf(namespace, account string) *rest.Config {
	w.Helper()

	config, err := embedded.ConfigFor(w.Context(), w.Config, namespace, account)
	if err != nil {
		w.Fatal(err)
	}

	return config
}

// Ambit runs the command line as cluster-admin and returns what it printed, and its exit code.
func (w *World) Ambit(arguments ...string) (string, int) {
	w.Helper()

	var out bytes.Buffer

	//nolint:gosec // It runs what this repository built.
	command := exec.CommandContext(context.WithoutCancel(w.Context()), w.Program, arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+w.Cluster.Kubeconfig)
	command.Stdout, command.Stderr = &out, &out

	if err := command.Run(); err != nil && command.ProcessState == nil {
		w.Fatalf("running ambit: %v", err)
	}

	return out.String(), command.ProcessState.ExitCode()
}
