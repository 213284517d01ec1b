// Command profiles generates what follows from the profiles, and compares the chart with them. hack/generate.sh and hack/chart.sh
// run it; kustomize has built config/<profile> before.
//
//	profiles chart BUILT CHART   write the chart's files from BUILT/<profile>.yaml
//	profiles rights BUILT PAGE   write the table of rights into a page
//	profiles same WANT GOT       fail unless two files hold the same objects, but for the Namespace
package main

import (
	"errors"
	"fmt"
	"os"
)

// names are the profiles, from the most rights to the least; each is a folder of config.
var names = []string{"cluster", "delegated", "namespaced"}

// arguments are what every command takes: itself and two paths.
const arguments = 3

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "profiles:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != arguments {
		return errors.New("usage: profiles chart BUILT CHART | rights BUILT PAGE | same WANT GOT")
	}

	switch args[0] {
	case "chart":
		return writeChart(args[1], args[2])
	case "rights":
		return writeRights(args[1], args[2])
	case "same":
		return compare(args[1], args[2])
	default:
		return fmt.Errorf("unknown command %q", args[0])
	}
}
