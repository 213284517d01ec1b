package bounds_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestHostileClusterServiceVersionsStarveNobody: who may install in one namespace fills it with ClusterServiceVersions, each as
// large as an object can be, by the hundred, in chains, with thousands of APIs, and goes on writing them. What is over the limits
// says so, what runs in that namespace goes on running, others are served meanwhile, and Ambit stays small.
func TestHostileClusterServiceVersionsStarveNobody(t *testing.T) {
	w := beds.Quiet(t, "cluster")
	mine, other, joins := w.Namespace("hostile"), w.Namespace("other"), w.Namespace("joins")

	w.Make(testbed.Account(mine, "installer"), testbed.GroupOf(mine, "installer"))
	w.Grant(mine, "installs", mine, "installer", "* *")

	running := testbed.ReadsSecrets(mine)
	w.Make(running)
	w.Succeeded(running)

	group := testbed.GroupOf(other, "")
	w.Make(group, testbed.ReadsSecrets(other))
	w.May(other, "op", other, "get secrets")

	user := w.Tenant("mallory-"+mine, mine)
	w.Make(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: mine, Name: "csvs"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{olm.GroupName}, Resources: []string{"clusterserviceversions"}, Verbs: []string{"*"},
		}},
	}, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: mine, Name: "csvs"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "csvs"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "mallory-" + mine}},
	})

	const large, small = 10, install.MaxCSVs + 20

	w.Eventually("the tenant may write", func() error { return user.Create(t.Context(), hostileCSV(mine, 0)) })
	many(w, user, large-1, func(i int) client.Object { return hostileCSV(mine, i+1) })
	many(w, user, small, func(i int) client.Object {
		csv := testbed.ReadsSecrets(mine)
		csv.Name, csv.Spec.Replaces = fmt.Sprintf("s%03d", i), fmt.Sprintf("s%03d", i+1)
		csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = csv.Name

		return csv
	})

	stop := make(chan struct{})
	written := make(chan struct{})

	go func() {
		defer close(written)

		for round := 0; ; round++ {
			select {
			case <-stop:
				return
			default:
			}

			csv := hostileCSV(mine, round%large)
			note := fmt.Sprintf(`{"metadata":{"annotations":{"note":"%d"}}}`, round)
			_ = user.Patch(t.Context(), csv, client.RawPatch(types.MergePatchType, []byte(note)))

			pause()
		}
	}()

	for range 2 {
		w.Serves(func() { w.Change(group, func() { group.Spec.TargetNamespaces = []string{other, joins} }) },
			func() bool { return w.Allowed(other, "op", joins, "get secrets") })
		w.Serves(func() { w.Change(group, func() { group.Spec.TargetNamespaces = []string{other} }) },
			func() bool { return !w.Allowed(other, "op", joins, "get secrets") })
	}

	close(stop)
	<-written

	w.May(mine, "op", mine, "get secrets")
	w.Succeeded(running)

	over := toldOfAll(w, mine, large+small+1)
	t.Logf("%d are over the limits; the manager took %d MiB", over, w.Peak()>>20)

	if over < 20 {
		t.Errorf("%d are said to be over the limits", over)
	}

	if peak := w.Peak(); peak > maxMemory {
		t.Errorf("the manager took %d MiB", peak>>20)
	}

	// Once there is room, what was over the limits is installed.
	late := testbed.ReadsSecrets(mine)
	late.Name, late.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = "zz-late", "late"
	w.Make(late)

	gone := func(format string, n int) {
		for i := range n {
			csv := &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: mine, Name: fmt.Sprintf(format, i)}}
			if err := client.IgnoreNotFound(w.Client.Delete(t.Context(), csv)); err != nil {
				t.Error(err) // One that was replaced is gone.
			}
		}
	}

	gone("h%03d", large)
	gone("s%03d", small)

	w.Within(long, "what was over the limits runs", func() error { return w.InPhase(late, olm.CSVPhaseSucceeded) })
}

// toldOfAll waits until something is said of each ClusterServiceVersion of a namespace, and counts those that are over a limit.
// It reads each of them until then, and not all of them every time: together they are many megabytes.
func toldOfAll(w *testbed.World, namespace string, n int) int {
	names := &metav1.PartialObjectMetadataList{}
	names.SetGroupVersionKind(olm.SchemeGroupVersion.WithKind(olm.ClusterServiceVersionKind + "List"))

	if err := w.Client.List(w.Context(), names, client.InNamespace(namespace)); err != nil || len(names.Items) > n {
		w.Fatalf("there are %d, want no more than %d (%v)", len(names.Items), n, err)
	}

	over, next, n := 0, 0, len(names.Items)

	w.Within(4*time.Minute, "what is over the limits is told of", func() error {
		for ; next < n; next++ {
			csv := &olm.ClusterServiceVersion{}
			if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(&names.Items[next]), csv); apierrors.IsNotFound(err) {
				continue // It was replaced.
			} else if err != nil {
				return err
			}

			switch s := &csv.Status; {
			case s.Phase == "":
				return fmt.Errorf("nothing is said of %s", csv.Name)
			case s.Reason == install.ReasonLimit && strings.Contains(s.Message, "limit"):
				over++
			}
		}

		return nil
	})

	return over
}

// hostileCSV is as large as an object can be, in what has to be kept of it, and claims thousands of APIs.
func hostileCSV(namespace string, number int) *olm.ClusterServiceVersion {
	csv := testbed.ReadsSecrets(namespace)
	csv.Name = fmt.Sprintf("h%03d", number)
	csv.Spec.Replaces = fmt.Sprintf("h%03d", number+1)
	csv.Spec.Description = strings.Repeat("d", 100_000)
	d := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
	d.Name = csv.Name

	for i := range 8_000 {
		d.Spec.Template.Spec.Containers[0].Env = append(d.Spec.Template.Spec.Containers[0].Env,
			corev1.EnvVar{Name: fmt.Sprintf("V%d", i), Value: strings.Repeat("v", 50)})
	}

	for i := range 300 {
		csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned, olm.CRDDescription{
			Name: fmt.Sprintf("things%d.made-up.example.com", i+2000*number), Kind: fmt.Sprintf("Thing%d", i), Version: "v1",
		})
	}

	return csv
}
