// Package bounds_test holds what Ambit may cost others: what somebody who administers one namespace can make it use, and that
// other tenants are served meanwhile. How long they wait is measured by the benchmark, on a machine that does nothing else.
package bounds_test

import (
	"errors"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// beds are the clusters that the tests share.
var beds testbed.Beds

func TestMain(m *testing.M) { os.Exit(beds.Run(m)) }

const (
	yes = metav1.ConditionTrue
	no  = metav1.ConditionFalse
)

var (
	errStillThere = errors.New("it is still there")
	errMissing    = errors.New("it is not there")
)

// pause is what somebody who goes on writing waits between two objects of a megabyte, so that the API server has time for others.
func pause() { time.Sleep(250 * time.Millisecond) }
