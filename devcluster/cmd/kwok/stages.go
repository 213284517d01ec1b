package main

import (
	"strings"

	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	lease "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
)

// stages returns the rules by which the nodes and pods of this cluster move:
// everything happens at once. The upstream module ships them as packages, so
// they always fit the version that reads them.
func stages() string {
	return strings.Join([]string{
		nodefast.DefaultNodeInit,
		lease.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady,
		podfast.DefaultPodComplete,
		podfast.DefaultPodDelete,
	}, "\n---\n")
}
