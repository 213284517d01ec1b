// Package faults_test breaks things while Ambit works, and holds that afterwards the cluster is what the planner says.
// It has a cluster of its own: it kills the API server.
package faults_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// suite is what all tests of the package share. They run one after the other: each breaks things for everybody.
var suite struct {
	cluster *embedded.Cluster
	manager *embedded.Manager
	client  client.WithWatch
	program string
	births  births
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		code = 1
	}

	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()

	cluster, err := embedded.LeaseInstalled(ctx, "cluster")
	if err != nil {
		return 1, err
	}
	defer cluster.Stop() //nolint:errcheck // The tests have spoken by then.

	suite.cluster = cluster

	if suite.program, err = embedded.BuildAmbit(ctx, cluster.Dir); err != nil {
		return 1, err
	}

	admin, err := cluster.Config()
	if err != nil {
		return 1, err
	}

	scheme, err := controllers.Scheme()
	if err != nil {
		return 1, err
	}

	if suite.client, err = client.NewWithWatch(admin, client.Options{Scheme: scheme}); err != nil {
		return 1, err
	}

	suite.births.versions = map[types.UID]uint64{}

	go suite.births.follow(context.WithoutCancel(ctx), suite.client)

	suite.manager, err = embedded.NewManager(ctx, admin, cluster.Dir, suite.program, "--restart-interval="+restartInterval.String())
	if err != nil {
		return 1, err
	}

	if err := suite.manager.Start(); err != nil {
		return 1, err
	}
	defer suite.manager.Stop() //nolint:errcheck // The tests have spoken by then.

	// The tests are about what happens to a manager that works; the first of them takes the API server away, without which none can
	// begin to.
	if err := testbed.UntilWorking(suite.manager); err != nil {
		return 1, err
	}

	return m.Run(), nil
}

// showLog prints the end of the manager's log when the test has failed.
func showLog(t *testing.T) {
	t.Helper()
	showEnd(t, suite.manager)
}

// showEnd prints how the log of a manager ends when the test has failed.
func showEnd(t *testing.T, m *embedded.Manager) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}

		log, err := os.ReadFile(m.Log)
		if err != nil {
			t.Log(err)
		}

		t.Logf("the log of manager %d ends with\n%s", m.PID(), log[max(0, len(log)-6000):])
	})
}
