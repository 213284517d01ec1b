package cli_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// change is what became of an object between two states.
type change struct {
	id
	action        string
	before, after *found
}

// changesBetween are what differs, sorted.
func changesBetween(before, after *state) []change {
	var out []change

	for of, is := range after.objects {
		switch was := before.objects[of]; {
		case was == nil:
			out = append(out, change{of, "create", nil, is})
		case was.uid != is.uid || !reflect.DeepEqual(was.content, is.content):
			out = append(out, change{of, "update", was, is})
		}
	}

	for of, was := range before.objects {
		if after.objects[of] == nil {
			out = append(out, change{of, "delete", was, nil})
		}
	}

	slices.SortFunc(out, func(a, b change) int { return cmp.Compare(a.describe(), b.describe()) })

	return out
}

func (c *change) describe() string {
	return key(c.action, c.kind, c.namespace, c.name)
}

func (c *change) key() string {
	if c.action == "create" {
		return key(c.action, c.kind, c.namespace, star(c.name))
	}

	return c.describe()
}

func describe(changes []change) string {
	var out strings.Builder

	for i := range changes {
		c := &changes[i]
		fmt.Fprintf(&out, "\n  %s", c.describe())

		if c.action == "update" {
			fmt.Fprintf(&out, "\n    was %s\n    is  %s", c.before, c.after)
		}
	}

	return out.String()
}

// happened is what happened, in the form of a promise.
type happened struct {
	actions  map[string][]change
	lists    map[string]*string
	restarts map[string]struct{}
}

func happenedBetween(before, after *state) *happened {
	h := &happened{actions: map[string][]change{}, lists: map[string]*string{}, restarts: map[string]struct{}{}}

	for _, c := range changesBetween(before, after) {
		if isAboutList(&c) {
			h.lists[c.namespace+"/"+c.name] = listOf(c.after)

			continue
		}

		if c.kind == "Pod" && c.action == "delete" {
			h.restarts[c.namespace+" Pod "+c.name] = struct{}{}

			continue
		}

		h.actions[c.key()] = append(h.actions[c.key()], c)
	}

	for of, is := range after.objects {
		if was := before.objects[of]; was != nil && !isIdle(is.raw) && restartOf(was.raw) != restartOf(is.raw) {
			h.restarts[of.namespace+" "+of.kind+" "+of.name] = struct{}{}
		}
	}

	return h
}

// isAboutList says whether nothing but the watch list in a ConfigMap changes.
func isAboutList(c *change) bool {
	if c.kind != "ConfigMap" || reflect.DeepEqual(listOf(c.before), listOf(c.after)) {
		return false
	}

	return true
}

func listOf(f *found) *string {
	if f == nil {
		return nil
	}

	data, _ := f.content["data"].(map[string]any)
	text, is := data[scope.ListKey].(string)

	if !is {
		return new(string)
	}

	return &text
}

// compare holds what happened against the promise.
func (p *promise) compare(before, after *state, w *drawn) error {
	h := happenedBetween(before, after)

	var errs []error

	for _, of := range sorted(p.actions, h.actions) {
		switch planned, is := p.actions[of], h.actions[of]; {
		case len(planned) != len(is):
			errs = append(errs, fmt.Errorf("%s: planned %d times, happened %d times%s", of, len(planned), len(is), describe(is)))
		default:
			errs = append(errs, contentsAre(of, planned, is))
		}
	}

	for _, of := range sorted(p.lists, h.lists) {
		errs = append(errs, p.compareList(of, before, after))
	}

	p.forgiveLateRestarts(h, w)

	if !maps.Equal(p.restarts, h.restarts) {
		errs = append(errs, fmt.Errorf("restarts: planned %v, happened %v", slices.Sorted(maps.Keys(p.restarts)),
			slices.Sorted(maps.Keys(h.restarts))))
	}

	for pod := range p.evicted {
		if _, stays := after.pods[pod]; stays {
			errs = append(errs, fmt.Errorf("pod %s: planned to be evicted, and is there", pod))
		}
	}

	errs = append(errs, p.compareScopes(after, w), p.compareInstalls(after))

	return errors.Join(errs...)
}

// forgiveLateRestarts leaves out the restarts of readers that began anew by an injection, if a namespace leaves later, when its
// operators have finished there, or may have where Ambit does not see it: docs/namespacescope.md says that no plan counts these.
func (p *promise) forgiveLateRestarts(h *happened, w *drawn) {
	if !p.finishes && w.profile == "cluster" {
		return
	}

	maps.DeleteFunc(h.restarts, func(reader string, _ struct{}) bool {
		of := strings.SplitN(reader, " ", 3)
		_, planned := p.restarts[reader]
		_, injected := p.actions[key("update", of[1], of[0], of[2])]

		return injected && !planned
	})
}

// compareList compares a list that is written with what is there, whether or not that is new.
func (p *promise) compareList(of string, before, after *state) error {
	namespace, name, _ := strings.Cut(of, "/")
	at := id{"", "ConfigMap", namespace, name}

	planned, told := p.lists[of]
	if !told {
		planned = listOf(before.objects[at])
	}

	is := listOf(after.objects[at])
	if shown(planned) == shown(is) {
		return nil
	}

	return fmt.Errorf("list %s: planned %s, is %s", of, shown(planned), shown(is))
}

func sorted[A, B any](a map[string]A, b map[string]B) []string {
	all := map[string]struct{}{}
	for of := range a {
		all[of] = struct{}{}
	}

	for of := range b {
		all[of] = struct{}{}
	}

	return slices.Sorted(maps.Keys(all))
}

// contentsAre compares what was written with what was promised, in any order.
func contentsAre(of string, planned []map[string]any, is []change) error {
	left := slices.Clone(is)

	for _, content := range planned {
		if content == nil || strings.HasPrefix(of, "delete ") {
			continue
		}

		var why string

		at := slices.IndexFunc(left, func(c change) bool {
			why = differs(&c, content)

			return why == ""
		})
		if at < 0 {
			return fmt.Errorf("%s: %s%s", of, why, describe(left))
		}

		left = slices.Delete(left, at, at+1)
	}

	return nil
}

// defaulted are the kinds of which the API server fills in more than was written.
var defaulted = []string{
	"Deployment", "Service", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "InstallPlan",
	"CustomResourceDefinition",
}

// differs says where an object is not what was promised.
func differs(c *change, content map[string]any) string {
	if why := lacks("", content, c.after.content); why != "" {
		return "planned and not there: " + why
	}

	if slices.Contains(defaulted, c.kind) {
		return ""
	}

	more := map[string]any{}
	maps.Copy(more, c.after.content)

	if c.action == "update" {
		delete(more, "metadata") // Others may have put something there.
	}

	if why := lacks("", more, content); why != "" {
		return "there and not planned: " + why
	}

	return ""
}

// lacks says what of a value another one lacks.
func lacks(path string, want, is any) string {
	if want == nil || isNone(want) && isNone(is) { // The API server has a default for what is taken out.
		return ""
	}

	switch want := want.(type) {
	case map[string]any:
		of, _ := is.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if why := lacks(path+"."+name, want[name], of[name]); why != "" {
				return why
			}
		}

		return ""
	case []any:
		of, _ := is.([]any)
		if len(of) != len(want) {
			return fmt.Sprintf("%s: %s, and not %s", path, text(want), text(is))
		}

		for i := range want {
			if why := lacks(fmt.Sprintf("%s[%d]", path, i), want[i], of[i]); why != "" {
				return why
			}
		}

		return ""
	default:
		if !reflect.DeepEqual(want, is) {
			return fmt.Sprintf("%s: %s, and not %s", path, text(want), text(is))
		}

		return ""
	}
}

func isNone(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	default:
		return false
	}
}

func text(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}

	return string(raw)
}

// roleNotFound is what the API server adds to a refusal where a binding of the account refers to a role that is missing, or to
// several, in any order.
var roleNotFound = regexp.MustCompile(`: RBAC: (\[[^\]]*\]|\S+ \\"[^"]*" not found)`)

// value is a structure as JSON has it.
func value(of any) any {
	var out any
	if err := json.Unmarshal([]byte(roleNotFound.ReplaceAllString(text(of), "")), &out); err != nil {
		return err.Error()
	}

	return out
}
