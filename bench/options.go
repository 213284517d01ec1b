package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// The measures that --only chooses from. The cold projection is part of every run, since the others start from it.
const (
	measureCold   = "cold"
	measureChange = "change"
	measureMore   = "more"
	measureFewer  = "fewer"
	measureDrift  = "drift"
	measureIdle   = "idle"
	measureMemory = "memory"
	measureDelete = "delete"
	// measureLook are the commands that only read.
	measureLook = "look"
	// measureDelegated is the cold projection of a scope that names a service account.
	measureDelegated = "delegated"
	// measureRule is part of measureTemplate.
	measureTemplate = "template"
	measureRule     = "rule"
	// measureInstalls are the operators of an OperatorGroup.
	measureInstalls = "installs"
	// measureHostile is never taken with others: what somebody who administers one namespace can cost all others.
	measureHostile = "hostile"
	// measureFairness is never taken with others, either: what a tenant's controller waits beside a cold projection.
	measureFairness = "fairness"
)

func measures() []string {
	return []string{
		measureCold, measureChange, measureMore, measureFewer, measureDrift, measureIdle, measureMemory, measureLook,
		measureDelete,
		measureDelegated,
		measureTemplate, measureInstalls, measureHostile, measureFairness,
	}
}

const usage = `bench measures NamespaceScope, ScopeTemplate and OperatorGroup on an embedded Kubernetes, beside the floor: a bare
client with the same rights that makes the same writes at the best pace it can find, over one connection or four. Floor and
Ambit take turns, and the medians of all rounds are compared. Every figure is checked: the objects have to be there, with the
right content, and no others.

Usage: make bench BENCHFLAGS='--namespaces 100,1000 --rounds 1'

Flags:
`

// options are what the command line says.
type options struct {
	namespaces               []int
	accounts, roles          int
	rounds, parallel         int
	idle                     time.Duration
	only                     []string
	strict                   bool
	program, managerArgs     string
	namespacesRaw, chosenRaw string
}

func parseOptions(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&o.namespacesRaw, "namespaces", "100", "member namespaces; several sizes, with commas, run one after the other")
	f.IntVar(&o.accounts, "accounts", 10, "service accounts, each with a Deployment that reads the watch list")
	f.IntVar(&o.roles, "roles", 2, "Roles, and as many RoleBindings, of each account")
	f.IntVar(&o.rounds, "rounds", 3, "turns of floor and Ambit, of which the medians are shown")
	f.IntVar(&o.parallel, "parallel", 0,
		"writes of the floor under way at once, over four connections; 0 tries 8, 16, 32 and 64, over one and over four")
	f.DurationVar(&o.idle, "idle", 2*time.Minute, "how long the manager is watched while nothing happens; 0 skips that")
	f.StringVar(&o.chosenRaw, "only", "", "measures to take besides the cold projection, with commas, of "+
		strings.Join(measures(), ", "))
	f.BoolVar(&o.strict, "strict", false, "exit 1 when a target is missed")
	f.StringVar(&o.program, "program", embedded.Program("ambit"), "the manager to measure")
	f.StringVar(&o.managerArgs, "manager-args", "", "further arguments of the manager, separated by spaces")
	f.Usage = func() {
		fmt.Fprint(os.Stderr, usage)
		f.PrintDefaults()
	}

	if err := f.Parse(args); err != nil {
		return nil, err
	}

	if f.NArg() > 0 {
		return nil, fmt.Errorf("bench does not know %q; see --help", f.Arg(0))
	}

	return o, o.validate()
}

func (o *options) validate() error {
	for s := range strings.SplitSeq(o.namespacesRaw, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 10000 {
			return fmt.Errorf("--namespaces holds %q; give numbers from 1 to 10000", s)
		}

		o.namespaces = append(o.namespaces, n)
	}

	if o.chosenRaw != "" {
		o.only = strings.Split(o.chosenRaw, ",")
	}

	for _, name := range o.only {
		if !slices.Contains(measures(), name) {
			return fmt.Errorf("--only holds %q; choose from %s", name, strings.Join(measures(), ", "))
		}
	}

	switch {
	case slices.Contains(o.only, measureHostile) && len(o.only) > 1:
		return errors.New("--only hostile stands alone")
	case slices.Contains(o.only, measureFairness) && len(o.only) > 1:
		return errors.New("--only fairness stands alone")
	case o.accounts < 1 || o.accounts > 1000:
		return fmt.Errorf("--accounts is %d; give 1 to 1000", o.accounts)
	case o.roles < 1 || o.roles > 100:
		return fmt.Errorf("--roles is %d; give 1 to 100", o.roles)
	case o.rounds < 1:
		return fmt.Errorf("--rounds is %d; give 1 or more", o.rounds)
	case o.parallel < 0 || o.parallel > 1000:
		return fmt.Errorf("--parallel is %d; give 0 to 1000", o.parallel)
	case o.idle < 0:
		return fmt.Errorf("--idle is %s; give 0 or more", o.idle)
	default:
		return nil
	}
}

func (o *options) wants(name string) bool {
	// A namespace that joined has to leave again before other measures are taken.
	if name == measureFewer && slices.Contains(o.only, measureMore) {
		return true
	}

	return len(o.only) == 0 || slices.Contains(o.only, name)
}
