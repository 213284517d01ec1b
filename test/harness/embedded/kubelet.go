package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// createAgain is how long to wait before a container that could not be created is tried again; its ConfigMap may be missing.
const createAgain = 100 * time.Millisecond

// A container that ends by itself is started again at once the first time, and then after these pauses, each twice as long as the
// one before.
const (
	firstBackOff   = 10 * time.Second
	longestBackOff = 5 * time.Minute
)

// Kubelet runs programs for the pods of one namespace, as processes of this machine: the embedded cluster's nodes only play
// at running pods. Each process has the environment, the arguments and the files that its pod asks for, and a token of its pod's
// account that is bound to its pod. What ends by itself is started again only if KubeletOptions say so.
type Kubelet struct {
	admin   *rest.Config
	clients kubernetes.Interface
	options KubeletOptions

	ctx     context.Context //nolint:containedctx // It lasts as long as the Kubelet; pods begin in it.
	end     context.CancelFunc
	working sync.WaitGroup

	mu   sync.Mutex
	pods map[types.UID]*played
	runs []*Run
}

// played is a pod whose program runs, or is about to.
type played struct {
	pod *corev1.Pod
	// process is nil until the program runs.
	process *Process
	// ports are the ports of this machine on which the program listens, by the ports of the pod.
	ports map[int]int
	began time.Time
	ended bool
	// crashes is how often the program ended by itself.
	crashes int
}

// Run is one process of a pod's program, from its start to its end, which is zero as long as it runs.
type Run struct {
	Pod          string
	Began, Ended time.Time
}

// KubeletOptions say what a Kubelet runs.
type KubeletOptions struct {
	// Dir is where kubeconfigs and logs are put: one of each for a pod, named after it.
	Dir string
	// Namespace is whose pods are run. Those with other images are left alone.
	Namespace string
	// Programs are paths of programs, each by the image that it stands for.
	Programs map[string]string
	// Environment overrides, as NAME=VALUE, what pods ask for: addresses, which they share here.
	Environment []string
	// Arguments are added to those that pods ask for, for the same reason.
	Arguments []string
	// Ports are the arguments that tell programs where to listen, with %d for a port, each by the port that pods declare. Here, pods
	// share the ports of one machine, so each program gets a free one.
	Ports map[int]string
	// Services is the socket of the cluster at which the API server asks for Services. Without the socket, its requests to Services
	// fail.
	Services string
	// Died is called when a program ends that was not asked to.
	Died func(error)
	// Restart has programs started again that end by themselves, with the pauses of a real kubelet.
	Restart bool
}

// StartKubelet begins to run what pods ask for, until Stop.
func StartKubelet(admin *rest.Config, o *KubeletOptions) (*Kubelet, error) {
	clients, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}

	k := &Kubelet{admin: admin, clients: clients, options: *o, pods: map[types.UID]*played{}}
	k.ctx, k.end = context.WithCancel(context.Background())

	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(o.Namespace))

	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { k.see(obj, false) },
		UpdateFunc: func(_, obj any) { k.see(obj, false) },
		DeleteFunc: func(obj any) { k.see(obj, true) },
	})
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}

	if o.Services != "" {
		serve, err := Lead(k.ctx, o.Services, k.route)
		if err != nil {
			return nil, err
		}

		k.working.Go(serve)
	}

	factory.Start(k.ctx.Done())

	return k, nil
}

// see starts the program of a pod that runs, and stops that of a pod that goes.
func (k *Kubelet) see(obj any, gone bool) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}

	pod, ok := obj.(*corev1.Pod)
	if !ok || len(pod.Spec.Containers) != 1 || k.options.Programs[pod.Spec.Containers[0].Image] == "" {
		return
	}

	k.mu.Lock()
	defer k.mu.Unlock()

	p := k.pods[pod.UID]
	ends := gone || pod.DeletionTimestamp != nil

	switch {
	case ends && p != nil && !p.ended:
		p.ended = true

		if p.process != nil {
			k.working.Go(func() { k.report(p.process.Stop()) })
		}
	case !ends && p == nil && pod.Status.Phase == corev1.PodRunning && k.ctx.Err() == nil:
		k.pods[pod.UID] = &played{pod: pod}
		k.working.Go(func() { k.create(pod) })
	}
}

// create starts a pod's program as soon as everything that it needs exists.
func (k *Kubelet) create(pod *corev1.Pod) {
	for {
		err := k.start(pod)
		if err == nil || k.ctx.Err() != nil {
			return
		}

		select {
		case <-k.ctx.Done():
			return
		case <-time.After(createAgain):
		}
	}
}

func (k *Kubelet) start(pod *corev1.Pod) error {
	config, err := kubeconfigFor(k.ctx, k.admin, k.options.Dir, pod.Namespace, pod.Spec.ServiceAccountName, pod)
	if err != nil {
		return err
	}

	ports, err := k.ports()
	if err != nil {
		return err
	}

	command, err := k.command(pod, ports)
	if err != nil {
		return err
	}

	log, err := os.OpenFile(k.Log(pod.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of pod %s: %w", pod.Name, err)
	}
	defer log.Close() //nolint:errcheck // The program has a handle of its own.

	command.Env = append(command.Env, "KUBECONFIG="+config, "HOME="+k.options.Dir)
	command.Stdout, command.Stderr = log, log

	k.mu.Lock()
	defer k.mu.Unlock()

	p := k.pods[pod.UID]
	if p.ended || k.ctx.Err() != nil {
		return nil
	}

	run := &Run{Pod: pod.Name, Began: time.Now()}
	p.ports, p.began = ports, run.Began

	p.process, err = StartProcess("pod "+pod.Name, command, func(err error) { k.ends(p, run, err) })
	if err == nil {
		k.runs = append(k.runs, run)
	}

	return err
}

// ends notes that a program has ended. If nobody asked for that, it starts the program again, or reports it.
func (k *Kubelet) ends(p *played, run *Run, err error) {
	k.mu.Lock()

	run.Ended = time.Now()
	again := !p.ended && k.options.Restart
	died := !p.ended && !again
	p.ended = p.ended || died

	if again {
		pause := backOff(p.crashes)
		p.crashes++

		k.working.Go(func() {
			select {
			case <-k.ctx.Done():
			case <-time.After(pause):
				k.create(p.pod)
			}
		})
	}

	k.mu.Unlock()

	if died {
		k.report(err)
	}
}

// backOff is how long a real kubelet waits before it starts a container again that ended so often before.
func backOff(crashes int) time.Duration {
	if crashes == 0 {
		return 0
	}

	const doublings = 5

	return min(firstBackOff<<min(crashes-1, doublings), longestBackOff)
}

func (k *Kubelet) report(err error) {
	if err != nil && k.options.Died != nil {
		k.options.Died(err)
	}
}

// Log is the file into which a pod's program logs.
func (k *Kubelet) Log(pod string) string { return filepath.Join(k.options.Dir, pod+".log") }

// Kill ends a pod's program at once, at whatever line it is. The pod stays, like one whose container waits to start again.
func (k *Kubelet) Kill(pod string) error {
	k.mu.Lock()
	for _, p := range k.pods {
		p.ended = p.ended || p.pod.Name == pod
	}
	k.mu.Unlock()

	return k.Signal(pod, syscall.SIGKILL)
}

// Again starts the program of a pod that was killed, in the same pod.
func (k *Kubelet) Again(pod string) error {
	k.mu.Lock()
	defer k.mu.Unlock()

	for uid, p := range k.pods {
		if p.pod.Name == pod && p.process != nil {
			<-p.process.ended
			k.pods[uid] = &played{pod: p.pod}
			k.working.Go(func() { k.create(p.pod) })

			return nil
		}
	}

	return fmt.Errorf("no program ran for pod %s", pod)
}

// Signal sends a signal to a pod's program.
func (k *Kubelet) Signal(pod string, signal syscall.Signal) error {
	k.mu.Lock()
	defer k.mu.Unlock()

	for _, p := range k.pods {
		if p.pod.Name == pod && p.process != nil {
			return p.process.Signal(signal)
		}
	}

	return fmt.Errorf("no program runs for pod %s", pod)
}

// Runs are the processes so far, in the order in which they began.
func (k *Kubelet) Runs() []Run {
	k.mu.Lock()
	defer k.mu.Unlock()

	out := make([]Run, len(k.runs))
	for i, run := range k.runs {
		out[i] = *run
	}

	return out
}

// Stop ends all programs, and waits for them.
func (k *Kubelet) Stop() error {
	k.end()

	var processes []*Process

	k.mu.Lock()
	for _, p := range k.pods {
		if p.process != nil {
			processes = append(processes, p.process)
		}

		p.ended = true
	}
	k.mu.Unlock()

	errs := make([]error, 0, len(processes))
	for _, p := range processes {
		errs = append(errs, p.Stop())
	}

	k.working.Wait()

	return errors.Join(errs...)
}
