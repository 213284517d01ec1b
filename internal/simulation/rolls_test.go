package simulation_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestRolledPodsAreReplaced proposes another version of a workload, and looks whether the pod that it had is still there, and
// whether another one has just begun in its place.
func TestRolledPodsAreReplaced(t *testing.T) {
	t.Parallel()

	const workload = "apiVersion: apps/v1\nkind: %s\nmetadata: {namespace: ops, name: op%s}\nspec: {%s}"

	template := func(value string) string { return "template: {metadata: {labels: {app: " + value + "}}}" }

	for reason, tc := range map[string]struct {
		kind, before, after, metadata string
		gone, young                   bool
	}{
		"another template": {kind: "Deployment", before: template("a"), after: template("b"), gone: true, young: true},
		"the same template, and a label": {
			kind: "Deployment", before: template("a"), after: template("a"), metadata: ", labels: {x: y}",
		},
		"no replicas any more": {
			kind: "Deployment", before: template("a"), after: template("a") + ", replicas: 0", gone: true,
		},
		"replicas again": {
			kind: "StatefulSet", before: template("a") + ", replicas: 0", after: template("a") + ", replicas: 1", young: true, gone: true,
		},
		"another template of a DaemonSet": {
			kind: "DaemonSet", before: template("a"), after: template("b"), gone: true, young: true,
		},
		"another template, for pods that somebody deletes": {
			kind: "StatefulSet", before: template("a"), after: template("b") + ", updateStrategy: {type: OnDelete}",
		},
		"another template, to be rolled out later": {
			kind: "Deployment", before: template("a"), after: template("b") + ", paused: true",
		},
	} {
		by := "{apiVersion: apps/v1, kind: " + tc.kind + ", name: op, uid: unknown, controller: true}"
		if tc.kind == "Deployment" {
			by = `{apiVersion: apps/v1, kind: ReplicaSet, name: op-7d9, uid: unknown, controller: true}`
		}

		once, began := read.NewOnce([]string{"ops"}), time.Now()
		c := beginningWith(t, once, namespaces("ops"), fmt.Sprintf(workload, tc.kind, "", tc.before),
			"apiVersion: v1\nkind: Pod\nmetadata: {namespace: ops, name: op-7d9-x, labels: {pod-template-hash: 7d9}, ownerReferences: ["+
				by+"]}",
			"apiVersion: v1\nkind: Pod\nmetadata: {namespace: ops, name: bare}")

		if err := c.Propose(objects(t, fmt.Sprintf(workload, tc.kind, tc.metadata, tc.after))[0]); err != nil {
			t.Fatal(err)
		}

		var (
			pods  []string
			young bool
		)

		f, _ := once.Store.Facts(scope.NamespaceScopes.In("ops"), time.Now())
		for i := range f.OperatorNamespace.Pods {
			pod := &f.OperatorNamespace.Pods[i]
			if pod.Began.IsZero() {
				pods = append(pods, pod.Name)
			} else {
				young = pod.Controller.Name == "op" && string(pod.Controller.Kind) == tc.kind && pod.Began.After(began.Add(-time.Hour))
			}
		}

		want := []string{"bare", "op-7d9-x"}
		if tc.gone {
			want = want[:1]
		}

		if !slices.Equal(pods, want) || young != tc.young {
			t.Errorf("%s: the pods are %v, want %v, and one has just begun: %t, want %t", reason, pods, want, young, tc.young)
		}
	}
}
