package why

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// addHints says what the scopes of the account's namespace have to do with it.
func (o *Options) addHints(ctx context.Context, v *reading.Cluster, d *Data) error {
	if d.Question != nil && d.Question.ClusterScoped {
		return nil // No scope gives what is in no namespace.
	}

	if o.Namespace == o.Account.Namespace {
		d.Hints = append(d.Hints, "this is its own namespace, where Ambit projects nothing; bind a Role to it here")

		return nil
	}

	resources, err := v.Resources(ctx, []string{o.Account.Namespace}, false)
	if errors.Is(err, snapshot.ErrNotInstalled) {
		return nil
	}

	if err != nil {
		return err
	}

	// To nobody who may not read the bindings is anything known to be missing.
	isBlind := d.Question == nil && v.IsDenied(snapshot.Denied{Verb: "list", Resource: "rolebindings", Namespace: o.Namespace})
	d.Hints = append([]string{}, d.Hints...)

	for _, obj := range resources {
		if !isBlind || !slices.Contains(reading.StatusOf(obj).ValidatedMembers, o.Namespace) {
			d.Hints = append(d.Hints, o.hint(obj))
		}
	}

	if len(resources) == 0 && len(v.Denied()) == 0 {
		d.Hints = append(d.Hints, "there is no NamespaceScope in namespace "+o.Account.Namespace)
	}

	return nil
}

func (o *Options) hint(obj client.Object) string {
	status, name := reading.StatusOf(obj), output.Title(obj, reading.ScopeKind(obj))

	for i := range status.FailedMembers {
		if f := &status.FailedMembers[i]; f.Namespace == o.Namespace {
			return fmt.Sprintf("%s does not fully serve %s: %s: %s", name, o.Namespace, f.Reason, f.Message)
		}
	}

	if slices.Contains(status.ValidatedMembers, o.Namespace) {
		return fmt.Sprintf("%s serves %s, so what is missing here is missing in namespace %s itself, or the account is none of the "+
			"scope's", name, o.Namespace, o.Account.Namespace)
	}

	if status.ObservedGeneration != obj.GetGeneration() {
		return fmt.Sprintf("Ambit has not said yet whom %s serves as it is now; is it running?", name)
	}

	if status.ValidatedMembersTotal > 0 {
		return fmt.Sprintf("the status of %s names %d of its %d members, and %s is none of these", name, len(status.ValidatedMembers),
			status.ValidatedMembersTotal, o.Namespace)
	}

	// A status has room for some of the members that fail, the first by name.
	members, failed := (&predict.Manager{}).Compile([]client.Object{obj})[0].Members, status.FailedMembers

	switch {
	case slices.Contains(members.Named, o.Namespace):
		return fmt.Sprintf("%s names %s, and its status does not say whether it is served; its condition Ready says how many are not",
			name, o.Namespace)
	case members.Selector != nil && len(failed) > 0 && failed[len(failed)-1].Namespace < o.Namespace:
		return fmt.Sprintf("the status of %s names %d of the members that it does not fully serve, and %s may be another", name,
			len(failed), o.Namespace)
	default:
		return fmt.Sprintf("%s is no member of %s", o.Namespace, name)
	}
}

// keepAllowing keeps the rights that allow what is asked. Of an account that has none it says whether it may do what comes to the
// same, such as to list and not to get: the page asks about get for "read".
func (d *Data) keepAllowing() {
	held := d.Rights
	if d.Rights, d.Named = explain.Allowing(held, d.Question); len(d.Rights) > 0 {
		return
	}

	questions, does := d.Question.Alike()
	for _, q := range questions {
		if allowing, _ := explain.Allowing(held, &q); len(allowing) > 0 {
			d.Notes = append(d.Notes, fmt.Sprintf("by %s it may %s, %s", allowing[0].Binding, q.String(), does))

			return
		}
	}
}
