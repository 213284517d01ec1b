// Package reconcile_test proves the rules of the reconcilers by calling Reconcile, on a real API server: objects are made, the
// caches take them in, one call follows, and what is in the API server right after that is compared. No worker and no controller
// of Kubernetes runs beside it, so that nothing else writes: namespaces that are deleted stay, terminating, nothing is collected,
// and Deployments have no pods.
package reconcile_test

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// apiServer is how to reach the API server as cluster-admin.
var apiServer *rest.Config

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	// The cases wait for the API server more than they compute.
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() == f.DefValue {
		_ = flag.Set("test.parallel", "8")
	}

	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())

	environment := &envtest.Environment{BinaryAssetsDirectory: embedded.Program("k8s")}
	// The watches of all planes are streams of one connection, which has a hundred. At the limit, a server in Go that has not noted
	// yet that an answer is written refuses the request that follows it with PROTOCOL_ERROR (processHeaders in x/net/http2).
	environment.ControlPlane.GetAPIServer().Configure().Set("http2-max-streams-per-connection", "1000")

	config, err := environment.Start()
	if err != nil {
		fmt.Fprintf(os.Stderr, "starting an API server (make devcluster-k8s builds it): %v\n", err)

		return 1
	}

	defer func() { _ = environment.Stop() }()

	apiServer = config
	apiServer.QPS, apiServer.WarningHandler = -1, rest.NoWarnings{}

	defer endPlanes()
	defer func() { fmt.Fprintf(os.Stdout, "Reconcile was called %d times.\n", calls.Load()) }()

	return m.Run()
}

// planes are the managers of this process, each of which begins with the first case that needs it.
var planes = struct {
	sync.Mutex

	by map[string]*plane
}{by: map[string]*plane{}}

func endPlanes() {
	for _, p := range planes.by {
		p.stop()
	}
}
