// Package operatorgroups_test describes how Ambit serves OLM's kinds, on a real API server, with the program that users run and
// under the rights that it is installed with.
package operatorgroups_test

import (
	"os"
	"testing"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

var beds testbed.Beds

func TestMain(m *testing.M) { os.Exit(beds.Run(m)) }
