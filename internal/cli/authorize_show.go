package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/consent"
	"github.com/ambit-k8s/ambit/internal/plan"
)

// say prints a line for people: to the output, or beside it when that holds objects for a program.
func (o *AuthorizeOptions) say(format string, values ...any) error {
	to := o.Out
	if o.Output != "" {
		to = o.ErrOut
	}

	return sayTo(to, format, values...)
}

func sayTo(to io.Writer, format string, values ...any) error {
	if _, err := fmt.Fprintf(to, format+"\n", values...); err != nil {
		return fmt.Errorf("printing: %w", err)
	}

	return nil
}

// print shows the objects in the form that was asked for.
func (o *AuthorizeOptions) print(objects ...client.Object) error {
	if o.Output == "json" {
		list := map[string]any{"apiVersion": "v1", "kind": "List"}
		items := make([]any, 0, len(objects))

		for _, obj := range objects {
			content, err := contentOf(obj)
			if err != nil {
				return err
			}

			items = append(items, content)
		}

		list["items"] = items

		text, err := json.MarshalIndent(list, "", "    ")
		if err != nil {
			return fmt.Errorf("printing: %w", err)
		}

		return sayTo(o.Out, "%s", text)
	}

	for _, obj := range objects {
		content, err := contentOf(obj)
		if err != nil {
			return err
		}

		text, err := yaml.Marshal(content)
		if err != nil {
			return fmt.Errorf("printing: %w", err)
		}

		if err := sayTo(o.Out, "---\n%s", strings.TrimSuffix(string(text), "\n")); err != nil {
			return err
		}
	}

	return nil
}

// contentOf is an object without what only the API server fills in.
func contentOf(obj client.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("printing %s: %w", obj.GetName(), err)
	}

	if metadata, ok := content["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}

	return content, nil
}

// notesOn are what the caller should know although nothing is wrong with the grant.
func notesOn(p *plan.ScopePlan, nss *operatorv1.NamespaceScope, g *consent.Grant) []string {
	var notes []string

	if named := nss.Spec.ServiceAccountName; named != "" && named != g.Account {
		notes = append(notes, fmt.Sprintf("NamespaceScope %s/%s writes as service account %s, to which this grants nothing",
			nss.Namespace, nss.Name, named))
	}

	again := fmt.Sprintf("; run this again when it exists: ambit authorize %s --to %s --scope %s", g.Namespace, g.To, g.Scope)

	if len(p.DanglingBindings) > 0 {
		notes = append(notes, "not granted, because the role does not exist: "+strings.Join(p.DanglingBindings, ", ")+again)
	}

	if len(p.MissingAccounts) > 0 {
		notes = append(notes, "not projected, because the service account does not exist: "+
			strings.Join(p.MissingAccounts, ", ")+again)
	}

	if len(p.Copies) == 0 {
		notes = append(notes, "the scope projects nothing at present")
	}

	return notes
}
