package main

import (
	"context"
	"embed"
	"fmt"
	"time"
)

// files are what the steps apply.
//
//go:embed *.yaml
var files embed.FS

const (
	ops       = "ibm-common-services"
	scopeName = "namespacescope"
	configMap = "namespace-scope"

	// patience is how long an effect may take, pause how often it is looked for.
	patience = time.Minute
	pause    = 50 * time.Millisecond
	// restartInterval is shorter than the default, because nobody wants to watch a play pause.
	restartInterval = time.Second
	// quiet is how long nothing more has to happen for "once" to be true: longer than two restarts are apart.
	quiet = 2*restartInterval + 500*time.Millisecond
)

// operator is one of the two operators of the play.
type operator string

const (
	secretman operator = "secretman"
	certman   operator = "certman"
)

// user is the name by which the API server knows the operator.
func (o operator) user() string { return "system:serviceaccount:" + ops + ":" + string(o) }

// play is a play under way.
type play struct {
	stage   *stage
	screen  *screen
	kubectl *kubectl
	world   *world
	journal *journal
	// mark is the cluster's revision before the step under way.
	mark uint64
	// rollouts is how often each operator should have been rolled out, pods in which it runs.
	rollouts int
	pods     map[operator]string
	live     live
}

// unexpected is an effect that was not observed.
type unexpected struct {
	what, expected, seen string
}

func (u *unexpected) Error() string {
	return fmt.Sprintf("%s\n    expected: %s\n    seen:     %s", u.what, u.expected, u.seen)
}

// perform plays every step, each on what the one before left behind.
func perform(ctx context.Context, s *stage, k *kubectl) error {
	w, err := newWorld(s.kubeconfig)
	if err != nil {
		return err
	}

	j, err := keep(ctx, w)
	if err != nil {
		return err
	}

	p := &play{stage: s, screen: s.screen, kubectl: k, world: w, journal: j, pods: map[operator]string{}}

	for i, step := range []struct {
		title string
		play  func(*play, context.Context) error
	}{
		{"IBM Common Services is installed in " + ops, (*play).install},
		{"A customer creates the namespace cloudpak1", (*play).createMember},
		{"The customer adds cloudpak1 to the scope", (*play).addMember},
		{"The customer installs a Cloud Pak in cloudpak1, and the operators work there", (*play).work},
		{"An operator's Role changes where it was installed", (*play).editSource},
		{"Somebody tampers with the copies in cloudpak1", (*play).tamper},
		{"cloudpak2 takes the place of cloudpak1", (*play).swapMembers},
		{"The scope is deleted", (*play).remove},
		{"An operator is restarted when a namespace joins", (*play).restartLive},
		{"The same operator follows its scope, and is not", (*play).followLive},
	} {
		p.screen.title(i+1, step.title)

		// Not the latest that was noted: what the step before brought about may still be on its way to the journal.
		if p.mark, err = w.revision(ctx); err != nil {
			return err
		}

		if err := step.play(p, ctx); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}

	return nil
}

// apply applies one of the files. Its text is shown, if it is short enough to be read.
func (p *play) apply(ctx context.Context, file string, show bool) error {
	if show {
		text, err := files.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}

		p.screen.sayf("  %s:", file)
		p.screen.block(string(text))
	}

	_, err := p.kubectl.quietly(ctx, "apply -f test/demo/"+file)

	return err
}

// expect waits until something looks as expected, and shows it.
func (p *play) expect(ctx context.Context, what, expected string, look func(context.Context) (string, error)) error {
	took, err := p.await(ctx, what, expected, look)
	if err == nil {
		p.screen.seenf(took, "%s", what)
	}

	return err
}

// await waits until something looks as expected. It returns how long after the last command that was, or zero if it was so
// at the first look.
func (p *play) await(
	ctx context.Context, what, expected string, look func(context.Context) (string, error),
) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	for first := true; ; first = false {
		seen, err := look(ctx)

		switch {
		case err == nil && seen == expected && first:
			return 0, nil
		case err == nil && seen == expected:
			return time.Since(p.kubectl.done), nil
		}

		select {
		case <-ctx.Done():
			if err != nil {
				seen = err.Error()
			}

			return 0, &unexpected{what, expected, seen}
		case <-time.After(pause):
		}
	}
}

// expectList waits for a watch list.
func (p *play) expectList(ctx context.Context, list string) error {
	return p.expect(ctx, "ConfigMap "+configMap+", key namespaces: "+list, list, p.world.watchList)
}

// answer is what kubectl should say.
type answer struct{ line, expected string }

// expectAnswers waits for the answers to commands, such as kubectl auth can-i.
func (p *play) expectAnswers(ctx context.Context, answers ...answer) error {
	for _, a := range answers {
		what := fmt.Sprintf("kubectl %-70s → %s", a.line, a.expected)
		look := func(ctx context.Context) (string, error) { return p.kubectl.answer(ctx, a.line) }

		if err := p.expect(ctx, what, a.expected, look); err != nil {
			return err
		}
	}

	return nil
}

// expectOrder waits until things happened in an order: all of each before the first of the next.
func (p *play) expectOrder(ctx context.Context, what string, order ...string) error {
	const right = "as promised"

	return p.expect(ctx, what, right, func(context.Context) (string, error) {
		var before uint64

		for _, thing := range order {
			first, last, count := p.journal.span(p.mark, thing)
			if count == 0 || first <= before {
				return "\n" + p.journal.story(p.mark), nil
			}

			before = last
		}

		return right, nil
	})
}
