package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/test/harness/testbed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// TestOneReadingIsWhatTheWatchesSee holds that the command line plans from the same facts as the manager.
func TestOneReadingIsWhatTheWatchesSee(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, a, b := w.Namespace("ops"), w.Namespace("a"), w.Namespace("b")
	w.Operator(ops, "op", "get secrets")
	role, binding := ibmCopies(ops, "gone", "op", b)
	w.Make(role, binding)

	nss := w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{a}})
	w.Reports(nss, metav1.ConditionTrue, "Reconciled")

	w.Eventually("both see the same", func() error {
		once := readOnce(w, ops, compile.NamespaceScope(nss))

		watched, err := testbed.Watched(w.Context(), w.Client, ops)
		if err != nil {
			return err
		}

		// Other tests make and delete namespaces and ClusterRoles meanwhile; pods change by themselves.
		for _, f := range []*facts.Facts{watched, once} {
			f.Now, f.Namespaces, f.ClusterRoles = time.Time{}, nil, nil

			for i := range f.OperatorNamespace.Pods {
				f.OperatorNamespace.Pods[i].BornAt = 0
			}

			for i := range f.OperatorNamespace.Workloads {
				f.OperatorNamespace.Workloads[i].BornAt = 0
			}
		}

		if len(once.Projected[a]) != 2 || len(once.OperatorNamespace.Roles) == 0 || len(once.OperatorNamespace.Workloads) == 0 ||
			len(once.Legacy[b]) != 0 {
			return fmt.Errorf("too little was read: %+v", once)
		}

		if !reflect.DeepEqual(watched, once) {
			return fmt.Errorf("watched %+v\nread    %+v", watched, once)
		}

		return nil
	})
}

func readOnce(w *testbed.World, ops string, s scope.Scope) *facts.Facts {
	snapshot, err := snapshot.New(w.Client).Facts(w.Context(), []scope.Scope{s})
	if err != nil {
		w.Fatal(err)
	}

	return snapshot.Facts(scope.NamespaceScopes.In(ops))
}

func TestTheShellKnowsNames(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops := w.Namespace("shell")
	w.Operator(ops, "op")
	w.Scope(ops, operatorv1.NamespaceScopeSpec{})

	for what, arguments := range map[string][]string{
		ops + "/op\n":    {"why", ""},
		ops + "/scope\n": {"tree", ""},
		ops + "\n":       {"operators", "-n", ""},
		"html\n":         {"matrix", "-o", ""},
	} {
		// A shell is not kept waiting longer than the line says: what cannot be read in time is not offered.
		line := append([]string{"__complete", arguments[0], "--kubeconfig", w.Cluster.Kubeconfig, "--request-timeout=1m"},
			arguments[1:]...)

		w.Eventually("the shell offers "+what, func() error {
			var out, errOut bytes.Buffer

			if code := cli.Run(t.Context(), line, &out, &errOut); code != cli.ExitDone || !strings.Contains(out.String(), what) {
				return fmt.Errorf("%v: exit code %d, nothing of %q: %s%s", arguments, code, what, out.String(), errOut.String())
			}

			return nil
		})
	}
}

func TestInterrupted(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	for _, arguments := range [][]string{{"tree"}, {"matrix"}, {"why", "a/b"}, {"operators"}, {"import", "csv/x"}} {
		var out, errOut bytes.Buffer

		code := cli.Run(ctx, append(arguments, "--kubeconfig", w.Cluster.Kubeconfig), &out, &errOut)
		if code != cli.ExitFailed || errOut.String() != "error: interrupted; nothing was changed\n" {
			t.Errorf("%v: exit code %d: %s", arguments, code, errOut.String())
		}
	}
}
