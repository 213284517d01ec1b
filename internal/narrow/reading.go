package narrow

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Reading says how a container learns its namespaces.
type Reading struct {
	// Workload and Container limit a reading that the user gave to one of them; empty for all.
	Workload, Container string
	// Variable or Argument takes the list; None says that nothing does.
	Variable, Argument string
	None               bool
	// One says that the container takes one namespace or all.
	One bool
	// ListsAll says that the container lists the whole cluster all the same, and Says what else users have to know.
	ListsAll bool
	Says     string
	// Source says how this is known.
	Source string
}

// listVariable is the variable by which arguments get the list.
const listVariable = "WATCH_NAMESPACE"

// variable is the environment variable that is injected.
func (r *Reading) variable() string {
	if r.Argument != "" {
		return listVariable
	}

	return r.Variable
}

//go:embed operators.yaml
var operatorsTable []byte

type operator struct {
	Image    string `json:"image"`
	Args     string `json:"args"`
	Variable string `json:"variable"`
	Argument string `json:"argument"`
	Takes    string `json:"takes"`
	Lists    bool   `json:"lists"`
	Says     string `json:"says"`
	Source   string `json:"source"`
}

var operators = sync.OnceValue(func() []operator {
	var out []operator
	if err := yaml.UnmarshalStrict(operatorsTable, &out); err != nil {
		panic("operators.yaml: " + err.Error()) // It is part of the program, and a test reads it.
	}

	return out
})

// ParseReading reads "[WORKLOAD[/CONTAINER]=]env:NAME", "arg:--flag" or "none".
func ParseReading(text string) (Reading, error) {
	r := Reading{Source: "--reads"}
	how := text

	if before, after, has := strings.Cut(text, "="); has {
		how = after
		r.Workload, r.Container, _ = strings.Cut(before, "/")
	}

	kind, name, _ := strings.Cut(how, ":")

	switch {
	case how == "none":
		r.None = true
	case kind == "env" && name != "":
		r.Variable = name
	case kind == "arg" && strings.HasPrefix(name, "-"):
		r.Argument = name
	default:
		return r, fmt.Errorf("%q says nothing; give [WORKLOAD[/CONTAINER]=]env:NAME, arg:--flag or none", text)
	}

	return r, nil
}

// The names by which operators are given namespaces. A singular --namespace is often the operator's own, so its value decides.
var (
	watchVariable = regexp.MustCompile(
		`^([A-Z0-9_]+_)?(WATCH(ED)?|TARGET)_?NAMESPACES?$|^NAMESPACES_TO_WATCH$|^(WATCH_|WATCHED_)?NAMESPACES$`)
	watchArgument = regexp.MustCompile(
		`^--?(watch(ed|ing)?[-_]?namespaces?|namespaces(-to-watch)?|target[-_]?namespaces?|watch-ns)$`)
	someVariable = regexp.MustCompile(`NAMESPACE|SCOPE`)
	someArgument = regexp.MustCompile(`(?i)^--?[a-z0-9.-]*(namespace|scope)[a-z0-9.-]*$`)
)

// read says how a container of a workload learns its namespaces; false where nothing says so.
func (in *input) read(w *workload, c *corev1.Container, readings []Reading) (Reading, bool) {
	for i := range readings {
		r := readings[i]
		if (r.Workload == "" || r.Workload == w.name) && (r.Container == "" || r.Container == c.Name) {
			return r, true
		}
	}

	if r, ok := byTable(c); ok {
		return r, true
	}

	if name := in.watched(w, c); name != "" {
		return Reading{Variable: name, Source: "its variable " + name}, true
	}

	for _, a := range slices.Concat(c.Command, c.Args) {
		name, value, has := strings.Cut(a, "=")
		if watchArgument.MatchString(name) || name == "--namespace" && has && (value == "" || value == wildcard) {
			return Reading{Argument: name, Source: "its argument " + name}, true
		}
	}

	return Reading{}, false
}

// watched is the variable of a container that has the name of a watch list, its own or one from a ConfigMap; empty for none.
func (in *input) watched(w *workload, c *corev1.Container) string {
	for i := range c.Env {
		if watchVariable.MatchString(c.Env[i].Name) {
			return c.Env[i].Name
		}
	}

	for i := range c.EnvFrom {
		from := c.EnvFrom[i].ConfigMapRef
		if from == nil {
			continue
		}

		for _, name := range in.keys(w.namespace, from.Name) {
			if name = c.EnvFrom[i].Prefix + name; watchVariable.MatchString(name) {
				return name
			}
		}
	}

	return ""
}

// byTable looks an image up, whatever registry it comes from.
func byTable(c *corev1.Container) (Reading, bool) {
	image, _, _ := strings.Cut(c.Image, "@")
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		image = image[:colon]
	}

	for _, o := range operators() {
		if image != o.Image && !strings.HasSuffix(image, "/"+o.Image) {
			continue
		}

		if o.Args != "" && !slices.Contains(slices.Concat(c.Command, c.Args), o.Args) {
			continue
		}

		return Reading{
			Variable: o.Variable, Argument: o.Argument, None: o.Takes == "none", One: o.Takes == "one", ListsAll: o.Lists,
			Says: o.Says, Source: o.Source,
		}, true
	}

	return Reading{}, false
}

// candidates are what might be how a container learns its namespaces, as --reads takes it.
func candidates(c *corev1.Container) []string {
	var out []string

	for i := range c.Env {
		if someVariable.MatchString(c.Env[i].Name) {
			out = append(out, "env:"+c.Env[i].Name)
		}
	}

	for _, a := range slices.Concat(c.Command, c.Args) {
		if name, _, _ := strings.Cut(a, "="); someArgument.MatchString(name) {
			out = append(out, "arg:"+name)
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}

// keys are those of a ConfigMap of the input.
func (in *input) keys(namespace, name string) []string {
	d := in.identities[identity(kindConfigMap, namespace, name)]
	if d == nil {
		return nil
	}

	var out []string
	for key := range pairs(child(d.body, "data")) {
		out = append(out, key.Value)
	}

	return out
}
