package embedded

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Conflicts is how often and how long to try again what somebody else wrote meanwhile: about four seconds in all. Kubernetes
// writes the status of a workload three times or more during each rollout, about 50 ms apart, and Ambit and tests write beside
// it. A client that tries four times, as client-go's defaults do, loses all four on a busy machine.
//
//nolint:gochecknoglobals // A struct can be no constant.
var Conflicts = wait.Backoff{Steps: 20, Duration: 20 * time.Millisecond, Factor: 1.2, Jitter: 0.2}
