package apply_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// TestWebhookThatHangs: what a webhook never answers for is asked for once, and not for every object of the namespace. What
// exists there is changed and deleted all the same.
func TestWebhookThatHangs(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	b.grant(b.change(plan.Create, role("before", "get"), 0))
	asked := b.hang()

	first := b.grant(b.change(plan.Create, role("first", "get"), 0))
	if len(first.Failures) != 1 || first.Failures[0].Class != apply.Transient {
		t.Fatalf("got %+v, want a failure that may pass by itself", first)
	}

	before := asked.Load()
	second := b.grant(b.change(plan.Create, role("second", "get"), 0), b.change(plan.Update, role("before", "list"), 0))

	if asked.Load() != before {
		t.Error("the webhook was asked again at once")
	}

	if len(second.Failures) != 1 || apply.Message(second.Failures[0].Err) != apply.Message(first.Failures[0].Err) {
		t.Errorf("got %+v, want the second refused in the words of the first", second)
	}

	if got := b.role("before").Rules[0].Verbs[0]; got != "list" {
		t.Errorf("the role that was there has %q, want it changed", got)
	}

	seen := b.change(plan.Delete, role("before"), parse(t, b.role("before").ResourceVersion))
	if out := b.apply(writer.Own(), plan.ScopePlan{Prune: []plan.Change{seen}}); out.Scopes[0].Results[apply.Deleted] != 1 {
		t.Errorf("got %+v, want the role deleted", out.Scopes[0])
	}
}

// TestSlowDryRunsCostNoWrites: an API server that is too slow to answer dry runs is not asked to refuse everything that they
// would have tried. A scope may ask for a thousand Roles in each of a hundred namespaces that grant nothing.
func TestSlowDryRunsCostNoWrites(t *testing.T) {
	t.Parallel()

	const roles = 300

	b, written := newBench(t), atomic.Int64{}
	config := rest.CopyConfig(testcluster.Config(t))
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			switch {
			case r.URL.Query().Has("dryRun"):
				<-r.Context().Done()

				return nil, r.Context().Err()
			case strings.HasSuffix(r.URL.Path, "/roles"):
				written.Add(1)
			}

			return next.RoundTrip(r)
		})
	})

	b.applier = apply.New(config, client.Options{}, b.notes, 4)

	var grants plan.ScopePlan
	for i := range roles {
		grants.Grant = append(grants.Grant, b.change(plan.Create, role(fmt.Sprint("r", i), "get"), 0))
	}

	out := b.apply(writer.ServiceAccount(b.member, "delegate"), grants).Scopes[0]
	if n := written.Load(); n == 0 || n > 20 {
		t.Errorf("the API server refused %d writes", n)
	}

	if len(out.Failures) != roles {
		t.Fatalf("of %d Roles, %d were refused", roles, len(out.Failures))
	}

	for i := range out.Failures {
		if missing, is := errors.AsType[*apply.MissingError](out.Failures[i].Err); !is || len(missing.All) == 0 {
			t.Fatalf("it was refused without saying what is missing: %v", out.Failures[i].Err)
		}
	}
}

type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestWhatTakesLongIsNotWaitedFor: a write that a webhook keeps is left to itself, asks for a plan once it has ended, and is not
// made twice meanwhile. Others are made at once. Once it is not wanted any more, it is withdrawn.
func TestWhatTakesLongIsNotWaitedFor(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	asked := b.hang()

	late := make(chan scope.Key, 10)
	b.applier.Late = func(key scope.Key) { late <- key }

	elsewhere := b.change(plan.Create, role("elsewhere", "get"), 0)
	elsewhere.Namespace = testcluster.Namespace(t, testcluster.Config(t), "apply")
	slow := b.change(plan.Create, role("slow", "get"), 0)

	began := time.Now()
	out := b.grant(slow, elsewhere)

	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it was waited for, for %v", took)
	}

	for _, f := range out.Failures {
		if f.Class != apply.Transient {
			t.Fatalf("got %+v, want a failure that may pass by itself", f)
		}
	}

	// On a busy machine, the other one may take longer than it is waited for, too.
	for len(out.Failures) > 1 && b.grant(elsewhere).Results[apply.Created] == 0 && time.Since(began) < 10*time.Second {
		time.Sleep(100 * time.Millisecond)
	}

	if len(out.Failures) == 0 || out.Results[apply.Created] == 0 && time.Since(began) >= 10*time.Second {
		t.Fatalf("got %+v, want one failure, and the other Role made", out)
	}

	before := asked.Load()

	if again := b.grant(slow); len(again.Failures) != 1 ||
		apply.Message(again.Failures[0].Err) != apply.Message(out.Failures[0].Err) {
		t.Errorf("got %+v, want the same words", again)
	}

	if key := <-late; key != scope.NamespaceScopes.In("ops") || asked.Load() != before {
		t.Errorf("a plan of %q is asked for, want that of ops; the webhook was asked %d times more", key, asked.Load()-before)
	}

	if after := b.grant(slow); len(after.Failures) != 1 || !strings.Contains(after.Failures[0].Err.Error(), "hangs.example.com") {
		t.Errorf("got %+v, want the API server's own words", after)
	}
}

// TestWhatIsNotWantedAnyMoreIsWithdrawn: a Role whose source has lost rules while a webhook kept it does not come after that.
func TestWhatIsNotWantedAnyMoreIsWithdrawn(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	b.hang()

	late := make(chan scope.Key, 10)
	b.applier.Late = func(key scope.Key) { late <- key }

	b.grant(b.change(plan.Create, role("slow", "get", "delete"), 0))

	began := time.Now()
	b.grant(b.change(plan.Create, role("slow", "get"), 0))

	select {
	case <-late:
	default:
		t.Error("what is not wanted any more is still under way")
	}

	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// hang makes an admission webhook that accepts connections and never answers, for new Roles of the bench, and waits until it is
// asked. It returns how often it was.
func (b *bench) hang() *atomic.Int64 {
	b.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() { _ = listener.Close() })

	asked := &atomic.Int64{}

	go func() {
		var open []net.Conn

		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			asked.Add(1)
			open = append(open, conn)
		}

		for _, conn := range open {
			_ = conn.Close()
		}
	}()

	url, only := "https://"+listener.Addr().String(), map[string]string{"kubernetes.io/metadata.name": b.member}
	webhook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: b.member},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "hangs.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: &url},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: only}, AdmissionReviewVersions: []string{"v1"},
			FailurePolicy: new(admissionv1.Fail), SideEffects: new(admissionv1.SideEffectClassNone), TimeoutSeconds: new(int32(12)),
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{
					APIGroups: []string{rbacv1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"roles"},
				},
			}},
		}},
	}

	if err := b.client.Create(b.Context(), webhook); err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() { _ = b.client.Delete(b.Context(), webhook) })

	probe := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: b.member, Name: "probe"}}

	for deadline := time.Now().Add(30 * time.Second); asked.Load() == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatal("the API server does not ask the webhook")
		}

		_ = b.client.Create(b.Context(), probe.DeepCopy(), client.DryRunAll)
	}

	return asked
}
