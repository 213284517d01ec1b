package predict

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/read"
)

// Flags are those of "ambit manager", each of the same type, so that what it was given is read as it reads it: whether the
// argument after a flag is the flag's value depends on the type of that flag. Those that this manager goes by have the same
// defaults, too.
func (m *Manager) Flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.ParseErrorsAllowlist.UnknownFlags = true // A newer manager may have more.

	f.StringVar(&m.DefaultDelegate, "default-service-account", "", "")
	f.BoolVar(&m.NeedDelegate, "require-service-account", false, "")
	f.StringSliceVar(&m.Namespaces, "namespaces", nil, "")
	f.StringVar(&m.OperatorGroups, "operator-groups", string(read.ServeAuto), "")
	f.StringSliceVar(&m.OLMNamespaces, "olm-namespaces", read.OLMNamespaces(), "")
	f.DurationVar(&m.RestartInterval, "restart-interval", plan.DefaultRestartInterval, "")
	f.DurationVar(&m.FollowGrace, "follow-grace", plan.DefaultFollowGrace, "")
	f.DurationVar(&m.FinishGrace, "finish-grace", plan.DefaultFinishGrace, "")

	for _, name := range []string{"kubeconfig", "metrics-bind-address", "metrics-cert-dir", "health-probe-bind-address"} {
		f.String(name, "", "")
	}

	for _, name := range []string{"leader-elect", "metrics-secure", "default-scope"} {
		f.Bool(name, false, "")
	}

	f.Int("concurrent-writes", 0, "")

	return f
}

// ManagerOf reads the arguments of the manager's container. An error says that no manager runs with these; what was read before
// it counts all the same.
func ManagerOf(namespace string, arguments []string) (Manager, error) {
	var m Manager

	f := m.Flags()
	m.Namespace = namespace

	given := make([]string, len(arguments))
	for i := range arguments {
		given[i] = strings.ReplaceAll(arguments[i], "$(OPERATOR_NAMESPACE)", namespace) // As the kubelet does.
	}

	if err := f.Parse(given); err != nil {
		return m, fmt.Errorf("reading the arguments of the manager: %w", err)
	}

	return m, nil
}
