package attacks_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// The mark beside a watch list is a hash that anybody can make, so whoever may edit ConfigMaps in the operator namespace
// writes a list of their own with a mark that fits, and with a time that is still to come. Nobody gets a right by that, no
// namespace enters that is no member, and nobody restarts for ever.
func TestForgedMarkOfTheList(t *testing.T) {
	w := begin(t, "cluster")
	ops, member, outsider := w.Namespace("home"), w.Namespace("member"), w.Namespace("outsider")
	w.Operator(ops, "op", "get secrets")

	nss := w.Scope(ops, testbed.Members(member))
	w.Reports(nss, yes, "Reconciled")
	w.May(ops, "op", member, "get secrets")
	w.Running(ops)

	mallory := w.Tenant("mallory-"+ops, ops)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "namespace-scope"}}

	for round := range int64(3) {
		// Ambit may write it just then.
		w.Eventually("the list is forged", func() error {
			if err := mallory.Get(t.Context(), client.ObjectKeyFromObject(cm), cm); err != nil {
				return err
			}

			list := strings.Join([]string{ops, member, outsider}, ",")
			cm.Data["namespaces"] = list
			cm.Annotations[scope.AnnotationListGeneration] = strconv.FormatInt(5+round, 10)
			cm.Annotations[scope.AnnotationListHash] = scope.ListHash(list, 5+round)
			cm.Annotations[scope.AnnotationListSince] = time.Now().Add(time.Hour).UTC().Format(time.RFC3339)

			return mallory.Update(t.Context(), cm, client.FieldOwner("ambit"))
		})

		w.Eventually("the list is put right", func() error {
			if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm); err != nil {
				return err
			}

			if cm.Data["namespaces"] != ops+","+member {
				return errMissing
			}

			return nil
		})
	}

	w.Holds(ops, func() error { return denied(w, ops, "op", outsider, "get secrets") })
}
