package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// The table of a page stands between these lines.
const (
	begin = "<!-- The table is generated from config/ by hack/generate.sh. -->\n"
	end   = "<!-- End of the table. -->\n"
)

// account is the service account whose rights the table lists.
const account = "ambit"

// writeRights writes the table of what Ambit's account may do in each profile.
func writeRights(built, page string) error {
	table := rights{}

	for _, profile := range names {
		objects, err := profileObjects(built, profile)
		if err != nil {
			return err
		}

		if err := table.add(profile, objects); err != nil {
			return fmt.Errorf("profile %s: %w", profile, err)
		}
	}

	raw, err := os.ReadFile(page) //nolint:gosec // Whoever runs it says which page.
	if err != nil {
		return fmt.Errorf("reading the page: %w", err)
	}

	before, rest, found := strings.Cut(string(raw), begin)
	_, after, closed := strings.Cut(rest, end)

	if !found || !closed {
		return fmt.Errorf("%s lacks the lines between which the table stands", page)
	}

	text := before + begin + "\n" + table.String() + "\n" + end + after

	if err := os.WriteFile(page, []byte(text), 0o644); err != nil { //nolint:gosec // Like everything else in the repository.
		return fmt.Errorf("writing the page: %w", err)
	}

	return nil
}

// rights are the verbs of each resource, by profile, and by whether they hold in all namespaces.
type rights map[resource]map[where][]string

type resource struct{ group, name string }

type where struct {
	profile    string
	everywhere bool
}

type role struct {
	Rules    []rbacv1.PolicyRule `json:"rules"`
	RoleRef  rbacv1.RoleRef      `json:"roleRef"`
	Subjects []rbacv1.Subject    `json:"subjects"`
}

// add adds what the bindings among the objects give to the account.
func (r rights) add(profile string, objects []object) error {
	parsed := map[key]role{}

	for _, o := range objects {
		if !strings.HasSuffix(o.kind, "Role") && !strings.HasSuffix(o.kind, "RoleBinding") {
			continue
		}

		var parsedRole role
		if err := yaml.Unmarshal([]byte(o.text), &parsedRole); err != nil {
			return fmt.Errorf("reading %s: %w", o.key, err)
		}

		parsed[o.key] = parsedRole
	}

	for k, binding := range parsed {
		if !strings.HasSuffix(k.kind, "Binding") || !isSubject(&binding) {
			continue
		}

		of := key{kind: binding.RoleRef.Kind, name: binding.RoleRef.Name}
		if of.kind == "Role" {
			of.namespace = k.namespace
		}

		bound, found := parsed[of]
		if !found {
			return fmt.Errorf("%s binds %s, which is not there", k, of)
		}

		if err := r.addRules(where{profile, k.kind == "ClusterRoleBinding"}, &bound); err != nil {
			return fmt.Errorf("%s: %w", of, err)
		}
	}

	return nil
}

func isSubject(binding *role) bool {
	return slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && s.Name == account
	})
}

func (r rights) addRules(w where, bound *role) error {
	for _, rule := range bound.Rules {
		// The table has no column for URLs, and must not conceal what it cannot show.
		if len(rule.NonResourceURLs) > 0 {
			return fmt.Errorf("a rule about URLs, which the table cannot show: %v", rule)
		}

		for _, group := range rule.APIGroups {
			for _, name := range named(rule.Resources, rule.ResourceNames) {
				of := resource{group, name}
				if r[of] == nil {
					r[of] = map[where][]string{}
				}

				verbs := slices.Concat(r[of][w], rule.Verbs)
				slices.Sort(verbs)
				r[of][w] = slices.Compact(verbs)
			}
		}
	}

	return nil
}

// named are the resources of a rule, with the name where it is about single objects.
func named(resources, names []string) []string {
	if len(names) == 0 {
		return resources
	}

	var out []string

	for _, r := range resources {
		for _, n := range names {
			out = append(out, r+"/"+n)
		}
	}

	return out
}
