package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// Service is a Service that exists, where something is installed.
type Service struct {
	// Made says that the API server recorded Ambit as a writer of it.
	Made bool
	// Shape is ServiceShape of it, and Owners are the UIDs of its owners, separated by commas.
	Shape, Owners string
}

// InstalledWebhooks is a webhook configuration that Ambit made for a ClusterServiceVersion.
type InstalledWebhooks struct {
	Kind, Name, UID string
	// Owner is the hash of the ClusterServiceVersion that it was made for, as its label says.
	Owner string
	// Content and Reach are Shape of its webhooks, and of the namespaces that they are asked about, both without Limit.
	Content, Reach string
	// Limit are the namespaces to which a scope limits them further, separated by commas; empty where none does.
	Limit string
	// Namespaces are those that it is limited to by name, separated by commas; empty where it is not.
	Namespaces string
}

// Shape tells values apart by what they say as JSON.
func Shape(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "" // No value has this shape.
	}

	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:16])
}

// ServiceShape tells Services apart by where they lead to.
func ServiceShape(spec *corev1.ServiceSpec) string {
	type port struct {
		Name, Target, Protocol string
		Port                   int32
	}

	ports := make([]port, 0, len(spec.Ports))
	for i := range spec.Ports {
		p := &spec.Ports[i]
		ports = append(ports, port{Name: p.Name, Target: p.TargetPort.String(), Protocol: string(p.Protocol), Port: p.Port})
	}

	return Shape([]any{spec.Type, spec.Selector, ports, spec.ExternalIPs, spec.ExternalName})
}
