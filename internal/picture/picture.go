// Package picture draws a matrix of operators and namespaces: as a page that needs nothing but itself, and as a drawing for
// documents. Everything that comes from a cluster goes through document.write, which escapes it, or through encoding/json.
package picture

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// ClusterWideMark follows the name of an operator that holds something in all namespaces, whatever its scopes say.
const ClusterWideMark = "(cluster-wide)"

// Page is the data of the page.
type Page struct {
	Matrix *overview.Matrix
	// NotRead are what could not be read, and Notes what readers should know besides.
	NotRead, Notes []string
	// Taken is when the matrix was read.
	Taken time.Time
}

// The data of the page. What many cells have in common is there once.
type (
	data struct {
		// Roles are all that occur, Services what is shown for cells.
		Roles    []roleData    `json:"roles"`
		Services []serviceData `json:"services"`
	}

	roleData struct {
		Name    string   `json:"name"`
		Binding string   `json:"binding,omitempty"`
		Rules   []string `json:"rules"`
		Missing bool     `json:"missing,omitempty"`
	}

	serviceData struct {
		Scope   string `json:"scope"`
		Reason  string `json:"reason,omitempty"`
		Message string `json:"message,omitempty"`
		Unknown bool   `json:"unknown,omitempty"`
		Roles   []int  `json:"roles"`
	}
)

// indexer gives equal values the same index.
type indexer struct {
	data     data
	roles    map[string]int
	services map[string]int
}

// Marked is the name of an operator, with its mark.
func Marked(name string, clusterWide bool) string {
	if clusterWide {
		name += " " + ClusterWideMark
	}

	return name
}

func columnNames(namespaces []string) []string {
	out := texts(namespaces)
	for i := range out {
		if out[i] == overview.Everywhere {
			out[i] = "the whole cluster"
		}
	}

	return out
}

// of returns the indexes of services, separated by spaces.
func (in *indexer) of(services []overview.Service) string {
	out := make([]string, 0, len(services))

	for i := range services {
		s := &services[i]
		shown := serviceData{
			Scope: printable.Text(s.Scope), Reason: printable.Text(s.Reason), Message: printable.Text(s.Message), Roles: []int{},
			Unknown: s.State == overview.Unknown || s.Operator.Name == overview.AnyAccount,
		}

		for k := range s.Roles {
			shown.Roles = append(shown.Roles, in.role(&s.Roles[k]))
		}

		key := fmt.Sprint(shown)

		at, known := in.services[key]
		if !known {
			at = len(in.data.Services)
			in.services[key] = at
			in.data.Services = append(in.data.Services, shown)
		}

		out = append(out, strconv.Itoa(at))
	}

	return strings.Join(out, " ")
}

func (in *indexer) role(r *overview.Role) int {
	rules := texts(authority.Lines(r.Rules))
	key := fmt.Sprint(r.Name, "\x00", r.Binding, "\x00", r.Missing, "\x00", len(r.Rules))

	at, known := in.roles[key]
	if known && slices.Equal(in.data.Roles[at].Rules, rules) {
		return at
	}

	at = len(in.data.Roles)
	in.roles[key] = at
	in.data.Roles = append(in.data.Roles, roleData{printable.Text(r.Name), printable.Text(r.Binding), rules, r.Missing})

	return at
}

// texts escapes strings for a page. Escaping for HTML leaves characters alone that turn the direction of a line, or show nothing.
func texts(strings []string) []string {
	return collect.Map(strings, printable.Text)
}
