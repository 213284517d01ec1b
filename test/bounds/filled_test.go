package bounds_test

import (
	"fmt"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestLargeSubscriptionsStarveNobody: who may subscribe in one namespace fills it with Subscriptions, InstallPlans and
// CatalogSources that are as large as an object can be. Ambit stays small, also when it begins anew; others get what they
// subscribe to; what was small before is served as before. A Subscription that becomes too large to be remembered says so, and
// the Deployment that it configures stays as it is.
//
// Files run in the order of their names. This one is on the cluster of another profile than those before and after it, which
// have a manager each by that: one that has been through the next larger attack has a higher peak.
func TestLargeSubscriptionsStarveNobody(t *testing.T) {
	const large = 4

	w := beds.Quiet(t, "cluster")
	evil, other := w.Namespace("evil"), w.Namespace("other")

	w.Make(testbed.Account(evil, "installer"), testbed.GroupOf(evil, "installer"), testbed.GroupOf(other, ""))
	w.Grant(evil, "installs", evil, "installer", "* *")

	mine := honest(w, evil)
	w.Change(mine, func() { mine.Spec.Config = mode("before") })
	isInstalled(w, mine)
	w.Eventually("the Deployment is configured", func() error { return hasMode(w, evil, "before") })

	user := mallory(w, evil, &olm.SubscriptionList{}, olm.GroupName, "subscriptions", "installplans", "catalogsources")
	many(w, user, large, func(i int) client.Object { return largeSubscription(evil, i) })
	many(w, user, large, func(i int) client.Object { return largePlan(evil, i) })
	many(w, user, large, func(i int) client.Object { return largeSource(evil, i) })

	running := &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: evil, Name: "op.v1"}}
	saysLimit := func(s *olm.Subscription) {
		w.Helper()
		w.Within(long, s.Name+" is told to be too large", func() error {
			if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(s), s); err != nil {
				return err
			}

			if c := s.Status.GetCondition(olm.SubscriptionResolutionFailed); c.Reason != catalog.ReasonLimit {
				return fmt.Errorf("it says %+v", s.Status.Conditions)
			}

			return nil
		})
	}

	isInstalled(w, honest(w, other))
	saysLimit(largeSubscription(evil, large-1)) // The first by name may fit.
	madeAgain(w, running)
	bounded(w)

	reborn(w)
	madeAgain(w, running)
	bounded(w)

	if err := hasMode(w, evil, "before"); err != nil {
		t.Error(err)
	}

	// Now the one that counts becomes too large.
	w.Change(mine, func() {
		mine.Spec.Config = mode("hidden")
		mine.Spec.Config.Env = append(mine.Spec.Config.Env, largeEnv()...)
	})
	saysLimit(mine)
	w.Within(long, "what is installed says so", func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(running), running); err != nil {
			return err
		}

		if running.Status.Reason != install.ReasonLimit || !strings.Contains(running.Status.Message, "Subscription "+mine.Name) {
			return fmt.Errorf("it says %s: %s", running.Status.Reason, running.Status.Message)
		}

		return nil
	})

	if err := hasMode(w, evil, "before"); err != nil {
		t.Error(err)
	}

	w.May(evil, "op", evil, "get secrets")

	// And then there is room again.
	for i := range large {
		w.Remove(largeSubscription(evil, i))
		w.Remove(largePlan(evil, i))
		w.Remove(largeSource(evil, i))
	}

	w.Change(mine, func() { mine.Spec.Config = mode("after") })
	w.Within(long, "the Deployment is configured again", func() error { return hasMode(w, evil, "after") })
	w.Within(long, "it runs", func() error { return w.InPhase(running, olm.CSVPhaseSucceeded) })
	bounded(w)
}

// isInstalled waits until a Subscription has op.v1 installed.
func isInstalled(w *testbed.World, s *olm.Subscription) {
	w.Helper()
	w.Within(long, s.Namespace+" gets its operator", func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}

		if s.Status.InstalledCSV != "op.v1" {
			return fmt.Errorf("its status is %+v", s.Status)
		}

		return nil
	})
}

// mode has the pods of an operator told a mode.
func mode(is string) *olm.SubscriptionConfig {
	return &olm.SubscriptionConfig{Env: []corev1.EnvVar{{Name: "MODE", Value: is}}}
}

// hasMode complains unless the pods of an operator are told a mode.
func hasMode(w *testbed.World, namespace, want string) error {
	d := &appsv1.Deployment{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: "op"}, d); err != nil {
		return err
	}

	for _, e := range d.Spec.Template.Spec.Containers[0].Env {
		if e.Name == "MODE" && e.Value == want {
			return nil
		}
	}

	return fmt.Errorf("its variables are %.300v, want the mode %s", d.Spec.Template.Spec.Containers[0].Env, want)
}

// largeEnv takes about a megabyte as text, and several times that in memory.
func largeEnv() []corev1.EnvVar {
	env := make([]corev1.EnvVar, 0, 12_000)
	for i := range cap(env) {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("V%05d", i), Value: strings.Repeat("v", 50)})
	}

	return env
}

func largeSubscription(namespace string, number int) *olm.Subscription {
	s := subscriptionOf(namespace, number+1)
	s.Name = fmt.Sprintf("large-%03d", number)
	s.Spec.Config = &olm.SubscriptionConfig{Env: largeEnv()}

	return s
}

func largePlan(namespace string, number int) *olm.InstallPlan {
	ip := &olm.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("large-%03d", number)}}
	ip.Spec.Approval = olm.ApprovalManual

	for i := range 15_000 {
		name := fmt.Sprintf("%s-%05d", strings.Repeat("n", 60), i)
		ip.Spec.ClusterServiceVersionNames = append(ip.Spec.ClusterServiceVersionNames, name)
	}

	return ip
}

func largeSource(namespace string, number int) *olm.CatalogSource {
	s := catalogOf(namespace, number+1)
	s.Name = fmt.Sprintf("large-%03d", number)
	s.Spec.Description = strings.Repeat("d", 900_000)
	s.Annotations = map[string]string{"note": strings.Repeat("n", 240_000)}

	return s
}
