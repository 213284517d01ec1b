package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// The operator of the last steps is a real one, examples/greeting.
const (
	liveOps       = "greetings"
	liveOperator  = "greeting"
	liveProgram   = "greeting"
	liveImage     = "registry.example.com/greeting-operator:1"
	liveManifests = "examples/greeting/manifests.yaml"
	liveFinalizer = "example.com/greeting"
	hello         = "hello"
)

// seen are the answers of world.served, world.running and world.follows.
const (
	served  = "served"
	running = "running"
	follows = "follows"
)

var greetings = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "GreetingList"}

// live is what the last steps remember of each other.
type live struct {
	// pod is where the operator runs; restart and follow are how long it took until it served a namespace that joined.
	pod             string
	restart, follow time.Duration
}

// restartLive is step 9: an operator whose program really runs, and which is told of its namespaces when it starts.
func (p *play) restartLive(ctx context.Context) error {
	p.screen.sayf("  examples/greeting is a whole operator: a Greeting becomes a Deployment. Its program runs here, with the\n" +
		"  token of its pod's service account. At first it reads its namespaces from WATCH_NAMESPACE, as most operators do.")

	if err := p.stage.runPods(liveOps); err != nil {
		return err
	}

	for _, line := range []string{
		"create namespace " + liveOps, "create namespace team-a", "create namespace team-b",
		"apply -n " + liveOps + " -f " + liveManifests,
		"patch deployment " + liveOperator + " -n " + liveOps + " --patch-file test/demo/9-as-ever.yaml",
		"wait --for=condition=Established crd/greetings.example.com",
		"apply -f test/demo/9-greetings.yaml",
	} {
		if _, err := p.kubectl.quietly(ctx, line); err != nil {
			return err
		}
	}

	if err := p.journal.addOperator(ctx, p.world); err != nil {
		return err
	}

	if err := p.expectServed(ctx, liveOps); err != nil {
		return err
	}

	if err := p.noteLivePod(ctx); err != nil {
		return err
	}

	before := p.live.pod

	took, err := p.join(ctx, "team-a", "team-a")
	if err != nil {
		return err
	}

	p.live.restart = took

	if err := p.noteLivePod(ctx); err != nil {
		return err
	}

	if p.live.pod == before {
		return &unexpected{liveOperator + " restarted", "a pod other than " + before, p.live.pod}
	}

	p.screen.seenf(0, "for that, it was restarted: pod %s → %s", before, p.live.pod)

	return nil
}

// followLive is step 10: the same program without the variable follows the list.
func (p *play) followLive(ctx context.Context) error {
	line := "set env deployment/" + liveOperator + " -n " + liveOps + " WATCH_NAMESPACE-"
	if _, err := p.kubectl.quietly(ctx, line); err != nil {
		return err
	}

	look := func(ctx context.Context) (string, error) { return p.world.follows(ctx) }
	if err := p.expect(ctx, "the operator says in a Lease which list it has taken in", follows, look); err != nil {
		return err
	}

	if err := p.noteLivePod(ctx); err != nil {
		return err
	}

	before := p.live.pod

	took, err := p.join(ctx, "team-b", "team-a", "team-b")
	if err != nil {
		return err
	}

	p.live.follow = took

	if err := p.leave(ctx); err != nil {
		return err
	}

	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(quiet):
	}

	if err := p.noteLivePod(ctx); err != nil {
		return err
	}

	if p.live.pod != before {
		return &unexpected{liveOperator + " was not restarted", before, p.live.pod}
	}

	p.screen.seenf(0, "it was not restarted: pod %s", before)
	p.screen.sayf("\n  From the change of the scope until the operator serves the namespace that joined:")
	p.screen.block(fmt.Sprintf("restarted for each list   %.2f s, with its image at hand and no leader's lease to wait for\n"+
		"follows its list          %.2f s", p.live.restart.Seconds(), p.live.follow.Seconds()))

	return nil
}

// join makes namespaces the members and returns how long it took, from the change of the scope, until the operator served one
// of them.
func (p *play) join(ctx context.Context, namespace string, members ...string) (time.Duration, error) {
	changed, err := p.world.first(ctx, &operatorv1.NamespaceScopeList{}, liveOps, func(o client.Object) bool {
		nss, ok := o.(*operatorv1.NamespaceScope)

		return ok && slices.Equal(nss.Spec.NamespaceMembers, members)
	})
	if err != nil {
		return 0, err
	}

	done, err := p.world.first(ctx, &appsv1.DeploymentList{}, namespace, func(o client.Object) bool {
		return o.GetName() == hello
	})
	if err != nil {
		return 0, err
	}

	if err := p.setMembers(ctx, members...); err != nil {
		return 0, err
	}

	if _, err := p.await(ctx, "Greeting in "+namespace, served, p.servedIn(namespace)); err != nil {
		return 0, err
	}

	took := (<-done).Sub(<-changed)
	p.screen.seenf(took, "the Greeting in %s is served", namespace)

	return took, nil
}

// leave takes team-a out of the scope.
func (p *play) leave(ctx context.Context) error {
	var err error
	if p.mark, err = p.world.revision(ctx); err != nil {
		return err
	}

	if err := p.setMembers(ctx, "team-b"); err != nil {
		return err
	}

	list := liveOps + ",team-b"
	what := "the list forgets team-a, the operator lets go of it and says so, and then its permissions go"

	if err := p.expectOrder(ctx, what, listed(list), released, takenIn, revoked("team-a")); err != nil {
		return err
	}

	p.screen.block(p.journal.story(p.mark))

	user := "system:serviceaccount:" + liveOps + ":" + liveOperator

	return p.expectAnswers(ctx,
		answer{"auth can-i update greetings.example.com -n team-b --as=" + user, "yes"},
		answer{"auth can-i update greetings.example.com -n team-a --as=" + user, "no"})
}

func (p *play) setMembers(ctx context.Context, members ...string) error {
	_, err := p.kubectl.quietly(ctx, fmt.Sprintf(`patch nss greetings -n %s --type=merge -p '{"spec":{"namespaceMembers":["%s"]}}'`,
		liveOps, strings.Join(members, `","`)))

	return err
}

func (p *play) servedIn(namespace string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) { return p.world.served(ctx, namespace) }
}

func (p *play) expectServed(ctx context.Context, namespace string) error {
	return p.expect(ctx, "the Greeting in "+namespace+" is served", served, p.servedIn(namespace))
}

// noteLivePod waits until the operator runs in one pod, and notes which that is.
func (p *play) noteLivePod(ctx context.Context) error {
	_, err := p.await(ctx, liveOperator+" runs in one pod", running, func(ctx context.Context) (string, error) {
		names, err := p.world.livePods(ctx)
		if err != nil || len(names) != 1 {
			return strings.Join(names, " "), err
		}

		p.live.pod = names[0]

		return running, nil
	})

	return err
}

// runPods runs the operator's program for the pods of a namespace, with what their service account may do.
func (s *stage) runPods(namespace string) error {
	w, err := newWorld(s.kubeconfig)
	if err != nil {
		return err
	}

	s.kubelet, err = embedded.StartKubelet(w.config, &embedded.KubeletOptions{
		Dir: s.dir, Namespace: namespace, Programs: map[string]string{liveImage: embedded.Program(liveProgram)},
		Environment: []string{"HEALTH_ADDRESS=0"}, Died: func(err error) { s.end(err) },
	})

	return err
}
