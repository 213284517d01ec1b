package namespacescope_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// profile is how Ambit is installed, and with that what it may do by itself. The environment variable
// AMBIT_TEST_PROFILE names it.
type profile string

// The profiles: the folders of config.
const (
	cluster    profile = "cluster"
	delegated  profile = "delegated"
	namespaced profile = "namespaced"
)

func wantedProfile() (profile, error) {
	switch p := profile(os.Getenv("AMBIT_TEST_PROFILE")); p {
	case "":
		return cluster, nil
	case cluster, delegated, namespaced:
		return p, nil
	default:
		return "", fmt.Errorf("AMBIT_TEST_PROFILE is %q; give cluster, delegated or namespaced", p)
	}
}

// ability is something that Ambit can do in some profiles only, by design.
type ability []profile

var (
	// readsEverything is to see namespaces and ClusterRoles, and what is missing among them.
	readsEverything = ability{cluster, delegated}
	// seesNothing is to see no namespace but those whose owners let Ambit in.
	seesNothing = ability{namespaced}
	// writesByItself is to write RBAC in members without another account's help. In the namespaced profile that help is
	// Ambit's own account, to which the members' owners granted it.
	writesByItself = ability{cluster, namespaced}
	// actsAsOthers is to write as a service account that a scope names.
	actsAsOthers = ability{cluster, delegated}
	// outlivesHomes is to have rights in an operator namespace until it is gone.
	outlivesOperatorNamespaces = ability{cluster, delegated}
)

// needs skips a test where the profile does not promise what it is about.
func (w *world) needs(a ability, why string) {
	w.Helper()

	if !slices.Contains(a, w.profile) {
		w.Skipf("not promised in profile %s: %s", w.profile, why)
	}
}

// absent is the reason by which a scope tells of members that are not there. Where Ambit sees no namespaces, such a member
// is one that nobody let it into.
func (s *system) absent(reason string) string {
	if s.profile == namespaced {
		return "AuthorizationRequired"
	}

	return reason
}

// checkProfile fails when the account that Ambit runs as may do more or less than the profile says: an earlier run on the
// same cluster may have left the rights of another one.
func (s *system) checkProfile(ctx context.Context) error {
	for words, should := range map[string]bool{
		"list namespaces": s.profile != namespaced, "create roles": s.profile == cluster,
	} {
		r := on(ambitNamespace, ambitAccount, "", words)

		if err := s.until(ctx, r, should); err != nil {
			return fmt.Errorf("profile %s (is another one installed, too?): %w", s.profile, err)
		}
	}

	return nil
}

// until waits until the API server knows that a right holds, or does not: it learns of RBAC a moment after it was written.
func (s *system) until(ctx context.Context, r right, should bool) error {
	return testbed.Until(testbed.Patience, func() error {
		allowed, err := s.holds(ctx, r)
		if err != nil || allowed == should {
			return err
		}

		return fmt.Errorf("%s: allowed: %t, should be: %t", r, allowed, should)
	})
}

// arguments are those of the installed Deployment, without the addresses, which are the harness's own matter, and with the
// operator namespaces that a manager has to be told.
func (s *system) arguments(ctx context.Context) ([]string, error) {
	d := &appsv1.Deployment{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: ambitNamespace, Name: "ambit"}, d); err != nil {
		return nil, err
	}

	out := []string{"--restart-interval=" + restartInterval.String(), "--follow-grace=" + followGrace.String()}

	for _, a := range d.Spec.Template.Spec.Containers[0].Args[1:] {
		if !strings.Contains(a, "-bind-address=") {
			out = append(out, strings.ReplaceAll(a, "$(OPERATOR_NAMESPACE)", ambitNamespace))
		}
	}

	if s.profile == namespaced {
		out = append(out, "--namespaces="+strings.Join(s.opsNamespaces.all, ","))
	}

	return out, nil
}

// holds asks the API server whether a right holds.
func (s *system) holds(ctx context.Context, r right) (bool, error) {
	return testbed.Review(ctx, s.client, r.ops, r.account, r.namespace, r.words)
}
