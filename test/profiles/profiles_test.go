// Package profiles_test holds each profile to its contract: all tests of namespacescope pass with the rights that the
// profile gives to Ambit's account, no right is given that nothing uses, and nothing is refused that the profile promises.
// What was used and refused is what the API server's audit log says.
package profiles_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// The profiles run one after the other: the suite waits like a user would, and wants the machine for itself.

func TestCluster(t *testing.T) { keepsItsContract(t, "cluster") }

func TestDelegated(t *testing.T) { keepsItsContract(t, "delegated") }

func TestNamespaced(t *testing.T) { keepsItsContract(t, "namespaced") }

func keepsItsContract(t *testing.T, profile string) {
	t.Helper()

	suite := compiled(t)
	bed := againstAnOlderServer(t, profile)

	in, err := readInstalled(t.Context(), bed.Client)
	if err != nil {
		t.Fatal(err)
	}

	// What follows is judged even if the suite fails: both have the same causes.
	if err := run(t, suite, profile, bed); err != nil {
		t.Errorf("the tests of namespacescope in profile %s: %v", profile, err)
	}

	t.Run("HandsOut", func(t *testing.T) { handsOut(t, bed, in) })

	for _, complaint := range judge(t, profile, bed, in) {
		t.Error(complaint)
	}
}

// suite is the test binary of namespacescope.
var suite struct {
	once sync.Once
	path string
	err  error
}

func compiled(t *testing.T) string {
	t.Helper()

	suite.once.Do(func() {
		suite.path = filepath.Join(os.TempDir(), fmt.Sprintf("ambit-namespacescope-%d.test", os.Getpid()))

		build := exec.Command("go", "test", "-c", "-o", suite.path, "./test/namespacescope")
		build.Dir = testcluster.Root()

		if out, err := build.CombinedOutput(); err != nil {
			suite.err = fmt.Errorf("building the tests: %w\n%s", err, out)
		}
	})

	if suite.err != nil {
		t.Fatal(suite.err)
	}

	return suite.path
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // Nothing here logs; without a word to that effect the library complains.

	code := m.Run()

	_ = os.Remove(suite.path)

	os.Exit(code)
}

// run runs the suite against the cluster of a bed, and shows what it prints as it comes.
func run(t *testing.T, suite, profile string, bed *testbed.Bed) error {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), 21*time.Minute)
	defer cancel()

	arguments := []string{"-test.timeout=20m"}
	if testing.Verbose() {
		arguments = append(arguments, "-test.v")
	}

	command := exec.CommandContext(ctx, suite, arguments...)
	command.Dir = filepath.Join(testcluster.Root(), "test", "namespacescope")
	command.Env = slices.Concat(os.Environ(), testcluster.Disposable(bed.Cluster.Kubeconfig),
		[]string{"AMBIT_TEST_PROFILE=" + profile, "AMBIT_TEST_PROGRAM=" + bed.Program})
	// Asked to end, it says where its tests are.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second

	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}

	command.Stderr = command.Stdout

	if err := command.Start(); err != nil {
		return err
	}

	show(out, profile)

	return command.Wait()
}

// show prints lines with the name of the profile in front, so that they are not taken for those of this test.
func show(from io.Reader, profile string) {
	lines := bufio.NewReader(from)

	for {
		line, err := lines.ReadString('\n')
		if line = strings.TrimRight(line, "\n"); line != "" && line != "PASS" {
			fmt.Fprintf(os.Stdout, "%s: %s\n", profile, line)
		}

		if err != nil {
			return
		}
	}
}

// judge reads the audit log until it shows no fault, or for a moment: the API server notes the end of a watch a little
// after the manager that watched has ended.
func judge(t *testing.T, profile string, bed *testbed.Bed, in *installed) []string {
	t.Helper()

	var faults []string

	for end := time.Now().Add(testbed.Patience); ; time.Sleep(200 * time.Millisecond) {
		requests, err := readLog(bed)
		if err != nil {
			t.Fatal(err)
		}

		if faults = verdict(t, profile, bed, in, requests); len(faults) == 0 || time.Now().After(end) {
			return faults
		}
	}
}

func verdict(t *testing.T, profile string, bed *testbed.Bed, in *installed, requests []request) []string {
	t.Helper()

	grants, err := in.grants()
	if err != nil {
		t.Fatal(err)
	}

	faults := unused(grants, withImpersonation(usesOf(requests, byAmbit), requests))
	faults = append(faults, refusals(requests, excuses(profile, requests))...)

	switch profile {
	case "delegated":
		faults = append(faults, unused(delegates(t, bed), usesOf(requests, asDelegate))...)
	case "namespaced":
		faults = append(faults, unused(authorized(t), usesOf(requests, inMember(requests)))...)
		faults = append(faults, clusterWide(requests)...)
	}

	return faults
}

// delegates are the rights that the suite gives to the accounts that scopes name: no more than such an account needs.
func delegates(t *testing.T, bed *testbed.Bed) []granted {
	t.Helper()

	role := &rbacv1.ClusterRole{}
	if err := bed.Client.Get(t.Context(), client.ObjectKey{Name: "namespacescope-test-delegate"}, role); err != nil {
		t.Fatal(err)
	}

	return grantsOf(t, role.Rules, "what a delegate is given")
}

// authorized are the rights that "ambit authorize" gives in a member, besides those to hand out what the scope projects.
func authorized(t *testing.T) []granted {
	t.Helper()

	return grantsOf(t, authority.GrantFor(&plan.ScopePlan{}), "what ambit authorize grants")
}

func grantsOf(t *testing.T, rules []rbacv1.PolicyRule, role string) []granted {
	t.Helper()

	rights, err := rightsOf(rules)
	if err != nil {
		t.Fatal(err)
	}

	out := make([]granted, 0, len(rights))
	for _, r := range rights {
		out = append(out, granted{right: r, role: role})
	}

	return out
}
