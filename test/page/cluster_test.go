package page_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=\S+`)

// command runs ambit serve, and returns its link.
func command(t *testing.T, bed *testbed.Bed, arguments ...string) string {
	t.Helper()

	arguments = append([]string{"serve", "--kubeconfig", bed.Cluster.Kubeconfig}, arguments...)
	c := exec.CommandContext(t.Context(), bed.Program, arguments...)
	c.Stderr = os.Stderr

	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := c.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = c.Wait() })

	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if link := address.FindString(lines.Text()); link != "" {
			go func() {
				for lines.Scan() { // What it says further must not fill the pipe.
				}
			}()

			return link
		}
	}

	t.Fatal("ambit serve prints no link")

	return ""
}

// TestCluster drives the page against a real API server: an administrator, and a tenant who may see one namespace.
func TestCluster(t *testing.T) {
	chromium(t)

	bed, err := testbed.Start(t.Context(), "cluster")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := bed.Stop(); err != nil {
			t.Error(err)
		}
	})

	w := &testbed.World{T: t, Bed: bed}
	for _, name := range []string{"ops", "payments", "team-a", "team-b", "joins"} {
		w.MakeNamespace(name)
	}

	w.Operator("ops", "secretman", "get,list,create secrets")

	scope := w.Scope("ops", operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{"team-a", "payments", "missing"}})
	w.Make(testbed.ClusterRole("reader", "get,list,watch roles", "get,list,watch rolebindings"), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "jane"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "jane"}},
	}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "ada"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "ada"}, {Kind: rbacv1.UserKind, Name: "pat"}},
	})
	w.Eventually("the scope serves", func() error {
		return bed.Client.Get(t.Context(), client.ObjectKey{Namespace: "ops", Name: "namespace-scope"}, newConfigMap())
	})

	file := filepath.Join(t.TempDir(), "scope.yaml")
	if err := os.WriteFile(file, []byte(planFile), 0o600); err != nil {
		t.Fatal(err)
	}

	planner := open(t, command(t, bed, "--as", "pat", "-f", file))
	planner.plans(w, scope)

	admin := open(t, command(t, bed, "--as", "ada"))
	admin.sees("#view", "payments")
	admin.drives(w, scope)
	admin.visit("#view=map&panel=namespace&namespace=team-a")
	admin.sees("#aside", "ops/secretman")
	admin.picture("page-administrator")

	jane := open(t, command(t, bed, "--as", "jane", "--namespace", "team-a"))
	jane.sees("#view", "There is no operator that you may see whose scope is in namespace team-a.")
	jane.run(chromedp.Click("#view .empty a"))
	jane.sees("#aside", "ops/secretman")
	jane.visit("#view=wrong")
	jane.sees("#view", "you may not list namespaces in the whole cluster")
	jane.lacks("body", "payments")
	jane.visit("#view=map&panel=who&verb=get&resource=secrets&namespace=team-a")
	jane.sees("#aside", "ops/secretman")
	jane.sees("#aside", "NamespaceScope ops/scope")
	jane.sees("#aside", "you may not list ClusterRoleBindings, so others may be able to")
	jane.lacks("#aside", "ada")
	jane.visit("#view=map&panel=who&verb=get&resource=secrets&namespace=payments")
	jane.sees("#aside", "Nobody, by the bindings that you may read.")
	jane.lacks("#aside", "ops/secretman")
	jane.visit("#view=map&panel=namespace&namespace=team-a")
	jane.sees("#aside", "ops/secretman")
	jane.picture("page-tenant")

	planless := open(t, command(t, bed, "--as", "jane", "-f", file))
	planless.visit("#view=plan")
	planless.sees("#view", "because you may not list its configmaps")
	planless.lacks("body", "payments")

	asked(t, bed, "pat")
	asked(t, bed, "ada")
	asked(t, bed, "jane")
}

// planFile takes payments out of the scope, and puts another namespace in.
const planFile = `apiVersion: operator.ibm.com/v1
kind: NamespaceScope
metadata:
  name: scope
  namespace: ops
spec:
  namespaceMembers: [team-a, team-b]
`

// plans sees what a file would change, and that anew when the cluster changes; nothing of it happens.
func (b *browser) plans(w *testbed.World, scope *operatorv1.NamespaceScope) {
	b.Helper()
	b.visit("#view=plan&panel=namespace&namespace=team-b")
	b.sees("#aside .mark", "would join")
	b.sees("#aside", "create RoleBinding")
	b.visit("#view=plan&panel=namespace&namespace=payments")
	b.sees("#aside .mark", "would leave")
	b.sees("#view .plan-summary", "NamespaceScope ops/scope: changed")

	members := func(names string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"namespaceMembers":[`+names+`]}}`))
		if err := w.Client.Patch(b.Context(), scope, patch); err != nil {
			b.Fatal(err)
		}
	}

	members(`"team-a","team-b"`)
	b.sees("#view .plan-summary", "NamespaceScope ops/scope: unchanged")
	members(`"team-a","payments","missing"`)
	b.sees("#view .plan-summary", "NamespaceScope ops/scope: changed")

	var live operatorv1.NamespaceScope
	if err := w.Client.Get(b.Context(), client.ObjectKeyFromObject(scope), &live); err != nil ||
		!slices.Contains(live.Spec.NamespaceMembers, "payments") {
		b.Errorf("after plans the members are %v, %v", live.Spec.NamespaceMembers, err)
	}
}

// drives looks at each view, and changes the cluster meanwhile.
func (b *browser) drives(w *testbed.World, scope *operatorv1.NamespaceScope) {
	b.Helper()
	b.run(chromedp.SendKeys("#search", "secretman", chromedp.ByQuery), chromedp.WaitVisible("#found [role=option]"),
		chromedp.SendKeys("#search", "\r", chromedp.ByQuery))
	b.sees("#aside", "ops/secretman")
	b.visit("#view=matrix&panel=cell&operator=ops/secretman&namespace=payments")
	b.sees("#aside", "get, list, create secrets")
	b.sees("#aside", "NamespaceScope ops/scope")
	b.sees("#aside", "ambit why ops/secretman -n payments --as=ada")
	b.picture("page-why-cluster")
	b.visit("#view=map&panel=who&verb=get&resource=secrets&namespace=payments")
	b.sees("#aside", "ops/secretman")
	b.sees("#aside", "NamespaceScope ops/scope")
	b.sees("#aside", "ClusterRoleBinding ada, in the whole cluster")
	b.visit("#view=wrong")
	b.sees("#view", "missing")
	b.picture("page-refused")

	b.visit("#view=map")

	// Ambit itself takes a part of this.
	b.promptly("a namespace that joins", 4*time.Second, func(turn string) {
		if turn != "" {
			w.MakeNamespace("joins" + turn)
		}

		patch := client.RawPatch(types.MergePatchType,
			[]byte(`{"spec":{"namespaceMembers":["team-a","payments","missing","joins`+turn+`"]}}`))
		if err := w.Client.Patch(b.Context(), scope, patch); err != nil {
			b.Fatal(err)
		}

		b.visit("#view=changes")
		b.sees("#view", "joins"+turn)
	})

	// What needs nothing of Ambit: from the write to the page.
	b.promptly("a namespace", 2*time.Second, func(turn string) {
		w.MakeNamespace("lonely" + turn)
		b.visit("#view=map&panel=block&namespace=")
		b.sees("#aside", "lonely"+turn)
	})
}

// request is what the audit log says of one.
type request struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	Stage      string `json:"stage"`
	UserAgent  string `json:"userAgent"`
	As         struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// asked holds that nothing was asked in somebody's name that they may not see, and that nothing was written.
func asked(t *testing.T, bed *testbed.Bed, user string) {
	t.Helper()

	log, err := bed.Cluster.OpenAuditLog()
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // It was only read.

	content, err := io.ReadAll(log)
	if err != nil {
		t.Fatal(err)
	}

	counts := map[string]int{}

	for line := range strings.Lines(string(content)) {
		var r request
		if json.Unmarshal([]byte(line), &r) != nil || r.As.Username != user || r.Stage == "RequestReceived" {
			continue
		}

		// Of a dry run nothing is kept.
		review := strings.Contains(r.RequestURI, "/selfsubjectaccessreviews") || strings.Contains(r.RequestURI, "dryRun=All")
		if counts[r.Verb]++; r.Status.Code == 403 {
			t.Errorf("%s asked for what is not theirs to see: %s %s", user, r.Verb, r.RequestURI)
		}

		if !review && r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" {
			t.Errorf("%s wrote: %s %s", user, r.Verb, r.RequestURI)
		}
	}

	if t.Logf("as %s: %v", user, counts); counts["list"] == 0 || counts["create"] == 0 {
		t.Errorf("the audit log knows nothing of %s: %v", user, counts)
	}
}
