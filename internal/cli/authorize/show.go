package authorize

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/grant"
)

// show prints what is granted: the objects, and the same in words.
func (o *Options) show(grants []grant.Grant, notes []string) error {
	objects := make([]client.Object, 0, 2*len(grants))
	for i := range grants {
		objects = append(objects, grants[i].Role(), grants[i].RoleBinding())
	}

	if err := output.Objects(o.Out, o.Output, objects); err != nil {
		return err
	}

	for i := range grants {
		g := &grants[i]
		if err := o.say("Service account %s of %s may, in namespace %s only:", g.Account, g.To, g.Namespace); err != nil {
			return err
		}

		for _, line := range grant.Words(g.Rules) {
			if err := o.say("  %s", line); err != nil {
				return err
			}
		}
	}

	return o.notes(notes)
}
