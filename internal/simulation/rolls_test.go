package simulation_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestRolledPodsGo proposes another version of a workload, and looks whether the pod that it had is still there.
func TestRolledPodsGo(t *testing.T) {
	t.Parallel()

	const workload = "apiVersion: apps/v1\nkind: %s\nmetadata: {namespace: ops, name: op%s}\nspec: {%s}"

	template := func(value string) string { return "template: {metadata: {labels: {app: " + value + "}}}" }

	for reason, tc := range map[string]struct {
		kind, before, after, metadata string
		gone                          bool
	}{
		"another template": {kind: "Deployment", before: template("a"), after: template("b"), gone: true},
		"the same template, and a label": {
			kind: "Deployment", before: template("a"), after: template("a"), metadata: ", labels: {x: y}",
		},
		"no replicas any more": {
			kind: "Deployment", before: template("a"), after: template("a") + ", replicas: 0", gone: true,
		},
		"another template of a DaemonSet": {kind: "DaemonSet", before: template("a"), after: template("b"), gone: true},
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

		once := read.NewOnce([]string{"ops"})
		c := beginningWith(t, once, namespaces("ops"), fmt.Sprintf(workload, tc.kind, "", tc.before),
			"apiVersion: v1\nkind: Pod\nmetadata: {namespace: ops, name: op-7d9-x, labels: {pod-template-hash: 7d9}, ownerReferences: ["+
				by+"]}",
			"apiVersion: v1\nkind: Pod\nmetadata: {namespace: ops, name: bare}")

		if err := c.Propose(objects(t, fmt.Sprintf(workload, tc.kind, tc.metadata, tc.after))[0]); err != nil {
			t.Fatal(err)
		}

		var pods []string

		f, _ := once.Facts(scope.NamespaceScopes.In("ops"), time.Now())
		for i := range f.OperatorNamespace.Pods {
			pods = append(pods, f.OperatorNamespace.Pods[i].Name)
		}

		want := []string{"bare", "op-7d9-x"}
		if tc.gone {
			want = want[:1]
		}

		if !slices.Equal(pods, want) {
			t.Errorf("%s: the pods are %v, want %v", reason, pods, want)
		}
	}
}
