package operators_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

const (
	// installer is the account of the group.
	installer = "installer"
	// hook is the webhook that is asked about Elasticsearches, and masterless what ECK says of one without a master.
	hook       = "elastic-es-validation-v1.k8s.elastic.co"
	masterless = "Elasticsearch needs to have at least one master node"
)

// TestOperatorAnswersItsWebhooks has ECK installed by a ClusterServiceVersion, in a group with an account of its own. It refuses
// what is wrong in the target of the group, is asked about no other namespace, and about none after it was revoked.
func TestOperatorAnswersItsWebhooks(t *testing.T) {
	for name, revoke := range map[string]func(w *world, csv *olm.ClusterServiceVersion){
		"without its ClusterServiceVersion": func(w *world, csv *olm.ClusterServiceVersion) { w.Remove(csv) },
		"without its group": func(w *world, csv *olm.ClusterServiceVersion) {
			w.Remove(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: csv.Namespace, Name: "group"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{World: beds.Begin(t, "delegated"), op: operatorCalled(t, "eck")}
			w.ops = w.Namespace("eck")
			target, outside := w.Namespace("target"), w.Namespace("outside")

			csv := w.installed(target)
			w.refuses(target)
			w.accepts(target, outside)
			w.renewed(csv)
			w.refuses(target)
			w.isAskedAbout(target, outside)

			revoke(w, csv)
			w.revoked(csv, target)
		})
	}
}

func operatorCalled(t *testing.T, name string) *operator {
	t.Helper()

	for i := range operators {
		if operators[i].name == name {
			return &operators[i]
		}
	}

	t.Fatalf("no operator is called %s", name)

	return nil
}

// installed does what docs/operatorgroups.md tells a user to, until the operator was installed for a target.
func (w *world) installed(target string) *olm.ClusterServiceVersion {
	w.Helper()

	program, folder := w.built()
	csv, definitions := w.packed(folder)
	w.apply(definitions...)
	w.established(definitions)

	w.runs(&embedded.KubeletOptions{
		Programs: map[string]string{image(csv): program}, Services: w.Cluster.Services(),
		Ports: map[int]string{webhookPort: "--webhook-port=%d"},
	})

	w.Make(
		testbed.Account(w.ops, installer),
		&operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.ops, Name: "group"},
			Spec:       operatorsv1.OperatorGroupSpec{ServiceAccountName: installer, TargetNamespaces: []string{target}},
		},
		csv,
	)
	w.becomes(csv, olm.CSVPhaseFailed)
	w.authorizes(csv, target)
	w.becomes(csv, olm.CSVPhaseSucceeded)
	w.restartedSince(0)

	return csv
}

// authorizes gives the account of the group what is said to be missing, and what it takes to undo it.
func (w *world) authorizes(csv *olm.ClusterServiceVersion, target string) {
	w.Helper()

	grants, code := w.Ambit("preflight", "csv/"+csv.Name, "-n", w.ops, "-o", "yaml")
	if code != cli.ExitMissing {
		w.Fatalf("ambit preflight: exit code %d\n%s", code, grants)
	}

	file := filepath.Join(w.TempDir(), "grants.yaml")
	w.must(os.WriteFile(file, []byte(grants), 0o600))

	for _, arguments := range [][]string{
		{"apply", "-f", file},
		{"apply", "--server-side", "-k", filepath.Join(embedded.Root(), "config", "rbac", "impersonate-certificates")},
	} {
		_, err := w.Cluster.Kubectl(w.Context(), arguments...)
		w.must(err)
	}

	w.Grant(target, "revokes", w.ops, installer, "delete roles", "delete rolebindings")

	role := testbed.ClusterRole("revokes-" + w.ops)
	role.Rules = []rbacv1.PolicyRule{{
		APIGroups: []string{admissionv1.GroupName}, Resources: []string{"validatingwebhookconfigurations"}, Verbs: []string{"delete"},
	}}
	w.Make(role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.ops, Name: installer}},
	})
}

func (w *world) becomes(csv *olm.ClusterServiceVersion, phase olm.ClusterServiceVersionPhase) {
	w.Helper()
	w.Eventually("the ClusterServiceVersion becomes "+string(phase), func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(csv), csv); err != nil {
			return err
		}

		if s := &csv.Status; s.Phase != phase {
			return fmt.Errorf("it is %s (%s): %s", s.Phase, s.Reason, s.Message)
		}

		return nil
	})
}

// tries asks for an Elasticsearch with roles for its nodes, without making it.
func (w *world) tries(namespace string, roles ...any) error {
	o := w.resource(namespace, 1)
	o.SetName("tried")

	o.Object["spec"] = map[string]any{"version": "8.15.0", "nodeSets": []any{
		map[string]any{"name": "default", "count": int64(1), "config": map[string]any{"node.roles": roles}},
	}}

	return w.Client.Create(w.Context(), o, client.DryRunAll)
}

// refuses waits until the operator refuses what is wrong. It listens a while after the API server asks it.
func (w *world) refuses(namespace string) {
	w.Helper()

	begun := time.Now()

	w.Within(patience, "ECK refuses what is wrong", func() error {
		err := w.tries(namespace, "data")
		if err == nil {
			return errors.New("it is accepted")
		}

		for _, words := range []string{`admission webhook "` + hook + `" denied the request`, masterless} {
			if !strings.Contains(err.Error(), words) {
				return fmt.Errorf("nothing of %q in %w", words, err)
			}
		}

		return nil
	})
	w.Logf("refused after %.1f s", time.Since(begun).Seconds())
}

// accepts holds that what is right gets through and is served, and that nobody says anything where the operator serves nobody.
func (w *world) accepts(target, outside string) {
	w.Helper()
	w.must(w.tries(target, "master", "data"))
	w.must(w.tries(outside, "data"))

	w.Make(w.resource(target, 1))
	w.served(target, 1)
}

// renewed waits until the operator has another certificate, because somebody deleted the one that it had.
func (w *world) renewed(csv *olm.ClusterServiceVersion) {
	w.Helper()

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ops, Name: w.op.workload + "-service-cert"}}
	w.must(w.Client.Get(w.Context(), client.ObjectKeyFromObject(secret), secret))

	before, runs := secret.Data[corev1.TLSCertKey], len(w.kubelet.Runs())
	if len(before) == 0 {
		w.Fatal("there is no certificate")
	}

	w.Remove(secret)
	// Nothing watches Secrets. Any change has Ambit look.
	w.Change(csv, func() { csv.Labels = map[string]string{"look": "again"} })

	w.Eventually("there is another certificate", func() error {
		err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(secret), secret)
		if err == nil && bytes.Equal(secret.Data[corev1.TLSCertKey], before) {
			err = errors.New("it is the same")
		}

		return err
	})
	w.restartedSince(runs)
}

// isAskedAbout has nobody answer, so that the API server itself says about which namespaces it asks: ECK would let everything
// through that is in none of its namespaces.
func (w *world) isAskedAbout(target, outside string) {
	w.Helper()

	runs := w.kubelet.Runs()
	w.must(w.kubelet.Kill(runs[len(runs)-1].Pod))

	w.Eventually("nobody answers", func() error {
		err := w.tries(target, "master", "data")
		if err == nil || !strings.Contains(err.Error(), `failed calling webhook "`+hook+`"`) {
			return fmt.Errorf("the API server says %w", err)
		}

		return nil
	})
	w.must(w.tries(outside, "data"))
}

// revoked waits until the operator is asked about nothing, and may do nothing in what was its target.
func (w *world) revoked(csv *olm.ClusterServiceVersion, target string) {
	w.Helper()

	begun := time.Now()

	w.Eventually("no webhook configuration is left", func() error {
		var list admissionv1.ValidatingWebhookConfigurationList

		err := w.Client.List(w.Context(), &list, client.MatchingLabels{"olm.owner.namespace": csv.Namespace, "olm.owner": csv.Name})
		if n := len(list.Items); n > 0 {
			err = errors.Join(fmt.Errorf("%d are", n), err)
		}

		return err
	})
	w.Eventually("nobody is asked", func() error { return w.tries(target, "data") })
	w.worksNot(target)
	w.Logf("revoked after %.1f s", time.Since(begun).Seconds())
}
