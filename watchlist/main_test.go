package watchlist

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// patience bounds every wait; the machine that runs the tests may be busy.
const patience = 40 * time.Second

// apiServer is real, without controllers: namespaces that are deleted stay, terminating, and nothing is collected.
var apiServer *rest.Config

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		assets, _ := filepath.Abs("../bin/k8s")
		_ = os.Setenv("KUBEBUILDER_ASSETS", assets)
	}

	log.SetLogger(logr.Discard())

	environment := &envtest.Environment{}

	cfg, err := environment.Start()
	if err != nil {
		fmt.Fprintf(os.Stderr, "starting an API server (make devcluster-k8s builds it): %v\n", err)

		return 1
	}

	defer func() { _ = environment.Stop() }()

	apiServer = cfg
	apiServer.QPS, apiServer.Burst = 1000, 2000

	return m.Run()
}

// pushed is a source that a test speaks for.
type pushed struct {
	mu   sync.Mutex
	last namespaces
	say  func(namespaces, error)
}

func (p *pushed) live() bool { return true }

func (p *pushed) follow(ctx context.Context, say func(namespaces, error)) {
	p.mu.Lock()
	p.say = say
	say(p.last, nil)
	p.mu.Unlock()

	<-ctx.Done()
}

func (p *pushed) push(t testing.TB, list string) {
	t.Helper()

	parsed, err := parse(list)
	if err != nil {
		t.Fatal(err)
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	p.last = parsed
	if p.say != nil {
		p.say(parsed, nil)
	}
}

// newList makes a list that the test pushes, and says at first what start says.
func newList(t testing.TB, start string) (*List, *pushed) {
	t.Helper()

	p := &pushed{}
	p.push(t, start)

	return &List{source: p, configMap: usualName}, p
}

// startCache starts the list's cache and returns what ends it, and waits for that.
func startCache(t testing.TB, cfg *rest.Config, l *List, change func(*cache.Options)) (cache.Cache, func()) {
	t.Helper()

	httpClient, err := rest.HTTPClientFor(cfg)
	must(t, err)

	mapper, err := apiutil.NewDynamicRESTMapper(cfg, httpClient)
	must(t, err)

	opts := cache.Options{Scheme: scheme.Scheme, Mapper: mapper, HTTPClient: httpClient}
	if change != nil {
		change(&opts)
	}

	c, err := l.NewCache()(cfg, opts)
	must(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)

	go func() { done <- c.Start(ctx) }()

	stop := sync.OnceFunc(func() {
		cancel()

		if err := <-done; err != nil {
			t.Errorf("the cache ended with: %v", err)
		}

		httpClient.CloseIdleConnections()
	})
	t.Cleanup(stop)

	if !c.WaitForCacheSync(ctx) {
		t.Fatal("the cache did not sync")
	}

	return c, stop
}

func must(t testing.TB, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()

	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		if holds() {
			return
		}
	}

	t.Fatalf("waited in vain: %s", what)
}

func clients(t testing.TB, cfg *rest.Config) *kubernetes.Clientset {
	t.Helper()

	c, err := kubernetes.NewForConfig(cfg)
	must(t, err)

	return c
}

// makeNamespaces makes namespaces with names that no other test has.
func makeNamespaces(t testing.TB, n int) []string {
	t.Helper()

	var out []string

	for range n {
		ns, err := clients(t, apiServer).CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "live-"}}, metav1.CreateOptions{})
		must(t, err)

		out = append(out, ns.Name)
	}

	return out
}

func makeConfigMap(t testing.TB, namespace, name string, data map[string]string) *corev1.ConfigMap {
	t.Helper()

	cm, err := clients(t, apiServer).CoreV1().ConfigMaps(namespace).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
	must(t, err)

	return cm
}
