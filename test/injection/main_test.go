// Package injection_test describes how operators that know nothing of Ambit come to read the watch list, on a real API
// server, with the program that users run and under the rights that it is installed with.
package injection_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

var beds testbed.Beds

func TestMain(m *testing.M) { os.Exit(beds.Run(m)) }

const (
	yes = metav1.ConditionTrue
	no  = metav1.ConditionFalse
)

// world is one test's view of the cluster.
type world struct {
	*testbed.World
}

func begin(t *testing.T) *world {
	t.Helper()

	return &world{beds.Begin(t, "cluster")}
}

// says waits for a condition of a scope, for the present generation, with a message that has these words, and returns the
// message. Words are needed wherever the message matters: the reason may be what was said before the last change.
func (w *world) says(
	nss *operatorv1.NamespaceScope, kind string, status metav1.ConditionStatus, reason string, words ...string,
) string {
	w.Helper()

	var message string

	w.Eventually(kind+" says "+reason, func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(nss), nss); err != nil {
			return err
		}

		c := meta.FindStatusCondition(nss.Status.Conditions, kind)
		if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration != nss.Generation {
			return fmt.Errorf("generation %d: %+v", nss.Generation, nss.Status)
		}

		for _, word := range words {
			if !strings.Contains(c.Message, word) {
				return fmt.Errorf("nothing about %q in %q", word, c.Message)
			}
		}

		message = c.Message

		return nil
	})

	return message
}

// read brings an object up to date.
func (w *world) read(obj client.Object) {
	w.Helper()

	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		w.Fatalf("reading %T %s: %v", obj, client.ObjectKeyFromObject(obj), err)
	}
}

// shows waits until the environment of the pod template's containers is as expected, in words.
func (w *world) shows(obj client.Object, want ...string) {
	w.Helper()
	w.Eventually("the environment of "+obj.GetName(), func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}

		if got := environment(&templateOf(obj).Spec); !slices.Equal(got, want) {
			return fmt.Errorf("it is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}

		return nil
	})
}

func templateOf(obj client.Object) *corev1.PodTemplateSpec {
	switch o := obj.(type) {
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	default:
		return &obj.(*appsv1.Deployment).Spec.Template
	}
}

// environment writes each variable of each container as "<container> <name>=<value>".
func environment(spec *corev1.PodSpec) []string {
	var out []string

	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, v := range c.Env {
			out = append(out, c.Name+" "+v.Name+"="+value(&v))
		}
	}

	return out
}

func value(v *corev1.EnvVar) string {
	from := v.ValueFrom

	switch {
	case from == nil:
		return v.Value
	case from.ConfigMapKeyRef != nil && from.ConfigMapKeyRef.Optional != nil && *from.ConfigMapKeyRef.Optional:
		return "configmap " + from.ConfigMapKeyRef.Name + "/" + from.ConfigMapKeyRef.Key + " (optional)"
	case from.ConfigMapKeyRef != nil:
		return "configmap " + from.ConfigMapKeyRef.Name + "/" + from.ConfigMapKeyRef.Key
	case from.FieldRef != nil:
		return "field " + from.FieldRef.FieldPath
	default:
		return "something else"
	}
}

// lists waits until the watch list is as expected.
func (w *world) lists(ops, want string) {
	w.Helper()

	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "namespace-scope"}}

	w.Eventually("the watch list is "+want, func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(cm), cm); err != nil {
			return err
		}

		if cm.Data["namespaces"] != want {
			return errors.New("it is " + cm.Data["namespaces"])
		}

		return nil
	})
}

func sorted(names ...string) string { return strings.Join(slices.Sorted(slices.Values(names)), ",") }
