package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// The bounds that somebody who administers one namespace, and nothing else, must not make Ambit exceed.
const (
	boundMemory  = 256 << 20
	boundWatches = 50
	boundWait    = 2 * time.Second
	// margin is by how much a bound of memory or watches has to be exceeded before the run fails: the machine may be busy. A wait
	// that is too long is printed alone, since the machine and the API server have a part in it.
	margin = 5.0 / 4
)

// hostileMembers is how many namespaces there are, hostileAccounts how many accounts the other tenant's operators have.
const (
	hostileMembers  = 120
	hostileAccounts = 2
)

// joins is how often the wait of the other tenant is still measured once the attack is made; the first of these may have begun
// before.
const joins = 3

var errBroken = errors.New("a bound of memory or watches is broken by a clear margin")

// load is what the manager took over a time.
type load struct {
	peak     int64
	watches  int
	requests int
	// wait is the longest that a change of the other tenant took to have an effect, and write the longest that its one write took:
	// that part of the wait is the API server's.
	wait, write time.Duration
}

// longer takes account of what a change took.
func (l *load) longer(wait, write time.Duration) {
	l.wait, l.write = max(l.wait, wait), max(l.write, write)
}

// hostileRow is one attack.
type hostileRow struct {
	name          string
	before, under load
}

func (r *hostileRow) watches() int { return r.under.watches - r.before.watches }

func (r *hostileRow) isBroken() bool {
	return float64(r.under.peak) > boundMemory*margin || float64(r.watches()) > boundWatches*margin
}

// hostile attacks a manager in each way, and prints what it takes and what another tenant waits, before and meanwhile.
func hostile(ctx context.Context, o *options, out io.Writer) error {
	o.accounts = hostileAccounts

	var rows []hostileRow

	err := onCluster(ctx, o, hostileMembers, func(ctx context.Context, b *bench) (err error) {
		rows, err = b.hostile(ctx)

		return err
	})
	if err != nil {
		return err
	}

	printHostile(out, rows)

	for i := range rows {
		if rows[i].isBroken() {
			return fmt.Errorf("%s: %w", rows[i].name, errBroken)
		}
	}

	return nil
}

func (b *bench) hostile(ctx context.Context) ([]hostileRow, error) {
	ctx, cancel := b.manager.guard(ctx)
	defer cancel()

	var rows []hostileRow

	for i, a := range attacks() {
		sayf("%s", a.name)

		r, err := b.attack(ctx, a, fmt.Sprintf("bench-evil-%d", i), i == 0)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.name, err)
		}

		rows = append(rows, *r)
	}

	return rows, nil
}

// attack makes an attack in a namespace of its own, against a manager that was just started, and removes what the attack made.
func (b *bench) attack(ctx context.Context, a attack, namespace string, first bool) (*hostileRow, error) {
	if err := b.manager.start(ctx); err != nil {
		return nil, err
	}

	if first {
		if _, err := b.project(ctx, newScope(), b.members); err != nil {
			return nil, err
		}
	}

	if err := b.cluster.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return nil, err
	}

	r := &hostileRow{name: a.name}

	var err error
	if r.before, err = b.loadWhile(ctx, func() error { return nil }); err != nil {
		return nil, err
	}

	if r.under, err = b.loadWhile(ctx, func() error { return a.mount(ctx, b.cluster.admin, namespace, b.members) }); err != nil {
		return nil, err
	}

	// A manager that starts meets all of it at once.
	if err := b.manager.stop(); err != nil {
		return nil, err
	}

	if err := b.manager.start(ctx); err != nil {
		return nil, err
	}

	anew, err := b.loadWhile(ctx, func() error { return nil })
	if err != nil {
		return nil, err
	}

	r.under.peak, r.under.watches = max(r.under.peak, anew.peak), max(r.under.watches, anew.watches)
	r.under.longer(anew.wait, anew.write)

	return r, errors.Join(b.endAttack(ctx, namespace), b.manager.stop())
}

// loadWhile measures what the manager takes while something is done, and for a while after that.
func (b *bench) loadWhile(ctx context.Context, do func() error) (load, error) {
	var l load

	mark, err := b.cluster.audit.mark(ctx)
	if err != nil {
		return l, err
	}

	done := make(chan error, 1)
	go func() { done <- do() }()

	for after := 0; after < joins; {
		if err := b.join(ctx, &l); err != nil {
			return l, err
		}

		if n, err := b.watching(ctx); err == nil {
			l.watches = max(l.watches, n)
		}

		if after > 0 {
			after++

			continue
		}

		select {
		case err := <-done:
			if err != nil {
				return l, err
			}

			after = 1
		default:
		}
	}

	l.peak, _ = b.manager.process().memory()

	made, err := b.cluster.audit.since(mark)
	l.requests = made.own().total()

	return l, err
}

// join lets a namespace join the other tenant's scope and leave it, and notes how long it took until the watch list said so.
func (b *bench) join(ctx context.Context, l *load) error {
	for _, joins := range []bool{true, false} {
		members := b.members
		if joins {
			members = append([]string{extraNamespace}, members...)
		}

		var write time.Duration

		took, err := b.untilListed(ctx, members, func() error {
			begun := time.Now()
			defer func() { write = time.Since(begun) }()

			return b.label(ctx, memberLabel, joins)
		})
		if err != nil {
			return err
		}

		l.longer(took.wall, write)
	}

	return nil
}

// watching counts the watches that are open at the API server.
func (b *bench) watching(ctx context.Context) (int, error) {
	raw, err := b.cluster.embedded.Kubectl(ctx, "get", "--raw", "/metrics")
	if err != nil {
		return 0, err
	}

	open := 0.0

	for line := range strings.Lines(raw) {
		if strings.HasPrefix(line, "apiserver_longrunning_requests{") && strings.Contains(line, `verb="WATCH"`) {
			n, _ := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, '}')+1:]), 64)
			open += n
		}
	}

	return int(open), nil
}

// endAttack takes away everything that an attack made.
func (b *bench) endAttack(ctx context.Context, namespace string) error {
	if err := b.cluster.admin.DeleteAllOf(ctx, &operatorv1.NamespaceScope{}, client.InNamespace(namespace)); err != nil {
		return err
	}

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := b.cluster.admin.Delete(ctx, ns); err != nil {
		return err
	}

	for !apierrors.IsNotFound(b.cluster.admin.Get(ctx, client.ObjectKeyFromObject(ns), ns)) {
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}

	return nil
}

func printHostile(out io.Writer, rows []hostileRow) {
	fmt.Fprintf(out, "\nWhat one namespace can cost, beside a scope of %d members; before and under attack\n\n", hostileMembers)

	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ATTACK\tPEAK MEMORY\t\tWATCHES MORE\tREQUESTS\t\tANOTHER TENANT WAITS\t\tOF THAT, ITS ONE WRITE\t\t")

	for i := range rows {
		r := &rows[i]
		held := r.under.peak <= boundMemory && r.watches() <= boundWatches && r.under.wait <= boundWait
		fmt.Fprintf(w, "%s\t%d MiB\t%d MiB\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", r.name, r.before.peak>>20, r.under.peak>>20,
			r.watches(), r.before.requests, r.under.requests, show(r.before.wait), show(r.under.wait), show(r.before.write),
			show(r.under.write), verdict(held))
	}

	fmt.Fprintf(w, "the bound\t\t%d MiB\t%d\t\t\t\t%s\t\t\t\n", boundMemory>>20, boundWatches, show(boundWait))

	_ = w.Flush() // What a terminal that went away does not show is lost either way.
}
