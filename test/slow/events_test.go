package slow_test

import (
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestEventsThatHangAreFew: an admission webhook that never answers is asked about the events of one namespace, and each of many
// scopes there has one. Each such write takes room at the API server, so few are under way; those of another namespace are
// written meanwhile.
func TestEventsThatHangAreFew(t *testing.T) {
	const scopes, few = 40, 8

	w := beds.Begin(t, "cluster")
	ops, home, member := w.Namespace("hanging"), w.Namespace("home"), w.Namespace("member")
	// No workload is here, of which Kubernetes' own controllers would write events, too.
	spec := testbed.Members(member)
	spec.ServiceAccountMembers = []string{"op"}

	for _, ns := range []string{ops, home} {
		w.Make(testbed.Account(ns, "op"))
		w.Grant(ns, "op-role", ns, "op", "get secrets")
	}

	about := metav1.ObjectMeta{Namespace: ops, Name: "probe"}
	webhook, asked := hangs(w, map[string]string{corev1.LabelMetadataName: ops}, admissionv1.Rule{
		APIGroups: []string{"", eventsv1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"events"},
	}, &corev1.Event{ObjectMeta: about, InvolvedObject: corev1.ObjectReference{Namespace: ops, Name: "probe"}})
	before := asked.Load()

	of := make([]*operatorv1.NamespaceScope, scopes)
	for i := range of {
		of[i] = w.ScopeCalled(ops, fmt.Sprintf("scope-%02d", i), spec)
	}

	for _, nss := range of {
		w.Reports(nss, yes, "Reconciled")
	}

	w.Eventually("some of their events hang", func() error {
		if asked.Load() == before {
			return errMissing
		}

		return nil
	})

	w.Scope(home, spec)
	w.Eventually("an event of another namespace is written", func() error {
		list := &eventsv1.EventList{}
		if err := w.Client.List(w.Context(), list, client.InNamespace(home)); err != nil {
			return err
		}

		for i := range list.Items {
			if list.Items[i].Reason == "NamespaceAdded" {
				return nil
			}
		}

		return errMissing
	})

	if n := asked.Load() - before; n > few {
		t.Errorf("the webhook was asked about %d events of %d scopes", n, scopes)
	}

	w.Remove(webhook)
}
