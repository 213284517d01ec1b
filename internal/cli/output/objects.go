package output

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// Data prints data for programs as YAML, or else as JSON.
func Data(out *terminal.Writer, form string, data any) error {
	if form == YAML {
		text, err := terminal.YAML(data)
		if err != nil {
			return fmt.Errorf("printing: %w", err)
		}

		return Print(out, text)
	}

	text, err := terminal.JSON(data)
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}

	return Say(out, "%s", text)
}

// Objects prints objects as JSON, or else as YAML.
func Objects(out *terminal.Writer, form string, objects []scope.Object) error {
	items := make([]any, 0, len(objects))

	for _, obj := range objects {
		content, err := Content(obj)
		if err != nil {
			return err
		}

		items = append(items, content)
	}

	if form == JSON {
		return Data(out, form, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	}

	for _, content := range items {
		text, err := terminal.YAML(content)
		if err != nil {
			return fmt.Errorf("printing: %w", err)
		}

		if err := Print(out, terminal.Textf("---\n%s", text)); err != nil {
			return err
		}
	}

	return nil
}

// Content is an object as somebody writes it, without what only the API server fills in.
func Content(obj client.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("printing %s: %w", obj.GetName(), err)
	}

	if metadata, ok := content["metadata"].(map[string]any); ok {
		for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
			delete(metadata, field)
		}
	}

	if status, ok := content["status"].(map[string]any); ok && len(status) == 0 {
		delete(content, "status")
	}

	return content, nil
}
