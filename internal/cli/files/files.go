// Package files reads the objects that commands are given in files.
package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	files "k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/collect"
)

// Stdin is how a flag names the standard input.
const Stdin = "-"

// ErrNoObject says that the files hold no object.
var ErrNoObject = errors.New("reading the files: there is no object in them")

// Bind adds the flags that name files; help says what the files hold.
func Bind(f *pflag.FlagSet, names *[]string, recursive *bool, help string) {
	f.StringSliceVarP(names, "filename", "f", nil, help+"; - is the standard input")
	f.BoolVarP(recursive, "recursive", "R", false, "read folders below folders, too")
}

// Validate refuses the standard input as more than one of the files: read once, it is empty.
func Validate(names []string) error {
	if collect.Count(names, func(name string) bool { return name == Stdin }) > 1 {
		return errors.New("the standard input can be read once only, and - names it more often; give a file")
	}

	return nil
}

// Document is an object that a file holds.
type Document struct {
	*unstructured.Unstructured

	// Source is where it was read.
	Source string
}

// Read reads what kubectl would apply. Objects that name no namespace still have none: whether their kind needs one is not known
// here.
func Read(names []string, recursive bool) ([]Document, error) {
	builder := files.NewLocalBuilder().Unstructured().ContinueOnError().Flatten()
	for _, name := range names {
		add(builder, name, recursive)
	}

	infos, err := builder.Do().Infos()
	if err != nil {
		return nil, fmt.Errorf("reading the files: %w", command.OneLine(err))
	}

	out := make([]Document, 0, len(infos))

	for _, info := range infos {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(info.Object)
		if err != nil {
			return nil, fmt.Errorf("reading %s: it is no Kubernetes object: %w", info.Source, command.OneLine(err))
		}

		out = append(out, Document{Unstructured: &unstructured.Unstructured{Object: content}, Source: info.Source})
	}

	if len(out) == 0 {
		return nil, ErrNoObject
	}

	return out, nil
}

// attempts is how often kubectl asks for a URL.
const attempts = 3

// add adds what a flag names, as the builder's own FilenameParam does. FilenameParam itself would link kustomize into the
// program.
func add(b *files.Builder, name string, recursive bool) {
	if name == Stdin {
		b.Stdin()

		return
	}

	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		address, err := url.Parse(name)
		if err != nil {
			b.AddError(fmt.Errorf("the URL passed to filename %q is not valid: %w", name, err))

			return
		}

		b.URL(attempts, address)

		return
	}

	if _, err := os.Stat(name); !os.IsNotExist(err) {
		b.Path(recursive, name)

		return
	}

	// If nothing matches the pattern, the builder reports it as a path that does not exist.
	matches, err := filepath.Glob(name)

	switch {
	case err != nil:
		b.AddError(fmt.Errorf("pattern %q is not valid: %w", name, err))
	case len(matches) == 0:
		b.Path(recursive, name)
	default:
		b.Path(recursive, matches...)
	}
}

// Typed returns an object as the type that the scheme has for its kind; nil where it has none.
func Typed(scheme *runtime.Scheme, from *unstructured.Unstructured) (client.Object, error) {
	empty, err := scheme.New(from.GroupVersionKind())
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // Ambit has nothing to do with a kind that it does not know.
	}

	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, empty); err != nil {
		return nil, fmt.Errorf("%s %s has fields of the wrong type: %w", from.GetKind(), from.GetName(),
			command.OneLine(named(err, from, empty)))
	}

	obj, _ := empty.(client.Object) // Lists and options are none, and count as unknown.

	return obj, nil
}

// named says which field an object cannot be converted for, as the decoder of JSON knows it. The converter does not say.
func named(err error, from *unstructured.Unstructured, into runtime.Object) error {
	raw, failed := json.Marshal(from.Object)
	if failed != nil {
		return err
	}

	if wrong := (&json.UnmarshalTypeError{}); errors.As(json.Unmarshal(raw, into), &wrong) {
		return fmt.Errorf("%s: %s where %s is expected", wrong.Field, wrong.Value, wrong.Type)
	}

	return err
}
