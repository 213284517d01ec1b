// Package control is how the other verbs talk to the supervisor of a running
// cluster: one JSON object each way, over a socket in the folder of the
// cluster.
package control

import "github.com/ambit-k8s/ambit/devcluster/internal/workdir"

// The verbs of a request.
const (
	verbStatus  = "status"
	verbStop    = "stop"
	verbRestart = "restart"
	verbSave    = "save"
	verbReset   = "reset"
)

type request struct {
	Verb      string `json:"verb"`
	Component string `json:"component,omitempty"`
	Kill      bool   `json:"kill,omitempty"`
	Name      string `json:"name,omitempty"`
}

type response struct {
	Error string        `json:"error,omitempty"`
	State workdir.State `json:"state"`
}
