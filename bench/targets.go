package main

import (
	"fmt"
	"time"
)

// The targets. From 1,000 members on (large), the ratio is stricter, because what is done once weighs less there; below 100
// (small) there is none, because what is done once is almost everything.
const (
	coldRatio      = 1.5
	small          = 100
	coldRatioLarge = 1.3
	large          = 1000
	changeRatio    = 1.5
	// delegatedRatio compares a cold projection as a service account with one as Ambit itself.
	delegatedRatio = 1.3
	memoryLimit    = 150e6
	// atOnce is what "at once" means in Ambit's promises.
	atOnce = 2 * time.Second
)

// table makes the table of everything that was measured.
func (b *bench) table() *table {
	o := b.options
	t := &table{title: fmt.Sprintf(
		"%d member namespaces, %d accounts with %d roles: %d objects. Medians of %d turns; the floor makes %s.",
		len(b.members), o.accounts, o.roles, b.objects(), o.rounds, b.floor.pace)}

	b.tableCold(t)

	if o.wants(measureChange) {
		b.tableChange(t)
	}

	// A namespace costs its objects, one write of the list, the restart of each reader and one status.
	namespace := 2*o.accounts*o.roles + 1 + o.accounts + 1

	for _, m := range []struct {
		measure, name string
		requests      int
	}{
		{measureMore, "one namespace more", namespace},
		// Two requests ask which kinds exist: custom resources may wait for an operator that leaves.
		{measureFewer, "one namespace fewer", namespace + 2},
		// A deleted Role comes back under another name, so the binding that named it is replaced, too.
		{measureDrift, "drift undone", 3 * len(b.drifting())},
	} {
		if o.wants(m.measure) {
			t.within(m.name, b.figure(m.measure), atOnce)
			b.tableRequests(t, m.measure, m.requests)
		}
	}

	b.tableLook(t)

	if o.wants(measureDelete) {
		t.times("scope deleted", b.figure(measureDelete), wall, 0)
		t.notef("Requests of a deletion: %s.", b.counted[measureDelete])
	}

	if o.wants(measureDelegated) {
		b.tableDelegated(t)
	}

	b.tableTemplate(t)
	b.tableInstalls(t)
	b.tableRest(t)

	return t
}

func (b *bench) objects() int { return 2 * len(b.members) * b.options.accounts * b.options.roles }

// limit is the ratio that is a target at this size.
func (b *bench) limit(usual, ofLarge float64) float64 {
	switch {
	case len(b.members) >= large:
		return ofLarge
	case len(b.members) < small:
		return 0
	default:
		return usual
	}
}

func (b *bench) tableCold(t *table) {
	for _, at := range paces() {
		if took := b.floor.tried[at]; took > 0 {
			t.notef("Floor of a sample with %s: %s.", at, show(took))
		}
	}

	t.costs("cold projection", b.figure(measureCold), b.limit(coldRatio, coldRatioLarge))
	// Besides the objects: the finalizer, the list, the restarts and one status.
	b.tableRequests(t, measureCold, b.objects()+1+1+b.options.accounts+1)
}

func (b *bench) tableChange(t *table) {
	t.costs(fmt.Sprintf("a changed role in %d copies", len(b.members)), b.figure(measureChange), b.limit(changeRatio, changeRatio))
	// In one turn: the old role loses rules, the new one comes with its binding, and the old ones go.
	b.tableRequests(t, measureChange, changes*5*len(b.members))
}

func (b *bench) tableDelegated(t *table) {
	for _, d := range []struct {
		account, what string
		limit         float64
	}{
		{trustedDelegate, "as a delegate that may escalate, beside Ambit itself", delegatedRatio},
		{holdingDelegate, "as a delegate that holds the rules, beside Ambit itself", 0},
	} {
		t.costs(d.what, b.figure(d.account), b.limit(d.limit, d.limit))
		// Besides what Ambit itself asks for: what the delegate may do, and what the owner authorizes, once in each member.
		b.tableRequests(t, d.account, b.objects()+2*len(b.members)+1+1+b.options.accounts+1)
	}
}

func (b *bench) tableRequests(t *table, measure string, limit int) {
	counted := b.counted[measure]
	t.count("  requests", counted.own().total(), limit)
	t.notef("Requests of measure %s: %s.", measure, counted)
}

func (b *bench) tableRest(t *table) {
	if f := b.figure(measureIdle); len(f.ambit) > 0 {
		t.count(fmt.Sprintf("requests in %s of idleness", b.options.idle), b.idle.own().total()+b.idle[eventRequests], 0)
		t.times("  processor time of the manager", f, clientPart, 0)
		t.notef("Requests in %s of idleness: %s.", b.options.idle, b.idle)
	}

	t.bytes("peak memory, cold projection", b.memory.cold, memoryLimit)

	if f := b.figure(measureMemory); len(f.ambit) > 0 {
		t.bytes("peak memory, manager restarted", b.memory.restart, memoryLimit)
		t.bytes("  memory at rest", b.memory.rest, 0)
		// The probe that shows when the manager works costs one write of a status.
		t.count("  writes", b.counted[measureMemory].writes().total(), 1)
		t.times("  time until it works", f, wall, 0)
		t.times("  processor time", f, clientPart, 0)
		t.notef("Requests of a restarted manager: %s.", b.counted[measureMemory])
	}
}
