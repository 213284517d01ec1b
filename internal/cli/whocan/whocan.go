// Package whocan is "ambit who-can": it says who may do something, and why.
package whocan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/internal/explain"
)

// Options are the flags and arguments of "ambit who-can".
type Options struct {
	output.Streams

	Cluster   genericclioptions.RESTClientGetter
	Namespace string
	All       bool
	Question  explain.Question
	Output    string
}

// Data is what "ambit who-can" prints for programs.
type Data struct {
	Question  explain.Question `json:"question"`
	Namespace string           `json:"namespace,omitempty"`
	Holders   []explain.Entry  `json:"holders"`
	// Unread are bindings whose roles may not be read, so that more users may be able to.
	Unread []explain.Right `json:"unread,omitempty"`
	// Notes say what users should know of the question.
	Notes   []string `json:"notes,omitempty"`
	NotRead []string `json:"notRead,omitempty"`

	// named says that some notes are about objects of some names alone.
	named bool
}

// Command returns "ambit who-can".
func Command() *cobra.Command {
	o := &Options{}
	c := &cobra.Command{
		Use:   "who-can VERB RESOURCE (-n NAMESPACE | -A)",
		Short: "Show who may do something in a namespace, and by which binding",
		Long: `Show who may do something in a namespace, or with -A in the whole cluster: every service account, user
and group, each with the binding and the role that grant it and, if Ambit made the binding, the
scope. For an aggregated role it also shows the ClusterRoles from which the role gets the right. Notes say
who may do it with objects of some names alone, and who may do what comes to the same, such as to list or
watch instead of get, or to patch instead of update.

RESOURCE is the plural, the singular or a short name of a resource, without its group or with it. The answer
names the resource that was found. Where several API groups serve the name, the command fails and lists
them. A name that the API server does not know, such as a misspelled one, is asked as it is, with a note; so
is a verb that Kubernetes does not have, such as GET.

The command knows RBAC only. No object says who is in a group, what other authorizers decide, or
that the group system:masters may do everything. The command reads with your rights, and names what you may
not read.`,
		Example: `  # Who may read the Secrets of namespace payments?
  ambit who-can get secrets -n payments

  # Who may restart Deployments everywhere?
  ambit who-can patch deployments.apps -A

  # One object, and a subresource
  ambit who-can get secrets -n payments --name stripe
  ambit who-can create pods/exec -n payments`,
		RunE: command.InSteps(o),
	}

	o.Cluster = command.ClusterFlags(c)

	f := c.Flags()
	f.BoolVarP(&o.All, "all-namespaces", "A", false, "ask about the whole cluster")
	f.StringVar(&o.Question.Name, "name", "", "ask about the object of this name")
	f.StringVarP(&o.Output, "output", "o", output.Table, "table, json or yaml")

	return c
}

// Complete takes the question, and the current namespace of the kubeconfig.
func (o *Options) Complete(c *cobra.Command, args []string) error {
	if len(args) != 2 {
		return command.Usagef("%s takes a verb and a resource; see %s --help", c.CommandPath(), c.CommandPath())
	}

	o.Streams = output.StreamsOf(c)
	o.Question.Verb, o.Question.Resource = args[0], args[1]

	if o.All {
		return nil
	}

	var err error
	o.Namespace, err = command.Namespace(o.Cluster)

	return err
}

// Validate says what is wrong with the options, before anything is read.
func (o *Options) Validate() error {
	if err := output.Valid(o.Output, output.Forms()); err != nil {
		return err
	}

	switch {
	case o.Question.Verb == "" || o.Question.Resource == "" || strings.HasPrefix(o.Question.Resource, "/"):
		return errors.New("give a verb and a resource, such as: get secrets")
	case o.Namespace != "" && len(validation.IsDNS1123Label(o.Namespace)) > 0:
		return fmt.Errorf("--namespace: %q is no namespace", o.Namespace)
	}

	return nil
}

// Run answers.
func (o *Options) Run(ctx context.Context) error {
	c, _, err := command.Connect(o.Cluster)
	if err != nil {
		return err
	}

	d, err := Ask(ctx, c, o.Question, o.Namespace)
	if err != nil {
		return err
	}

	return o.print(d)
}

// Ask reads, with the rights of a client, who may do something in a namespace; without a namespace, in the whole cluster.
func Ask(ctx context.Context, c client.Client, q explain.Question, namespace string) (*Data, error) {
	d := &Data{Question: q, Namespace: namespace, Holders: []explain.Entry{}}

	if err := d.resolve(c.RESTMapper()); err != nil {
		return nil, err
	}

	if err := d.read(ctx, c); err != nil {
		return nil, err
	}

	if d.Namespace == "" {
		return d, nil
	}

	note, err := command.NoNamespace(ctx, c, d.Namespace)
	if note != "" {
		d.Notes = append(d.Notes, note)
	}

	return d, err
}

// resolve finds the resource that is meant, and whether it has a namespace at all.
func (d *Data) resolve(mapper meta.RESTMapper) error {
	about, err := discovered.Resolve(mapper, d.Question.Resource)
	if err != nil {
		return err
	}

	d.Notes = append(d.Notes, about.Notes(d.Question.Verb)...)

	switch {
	case d.isOneNamespace(about.GroupResource):
		d.Namespace = d.Question.Name
	case about.ClusterScoped:
		d.Namespace = ""
	}

	d.Question.Group, d.Question.Resource = about.Group, about.Path()

	return nil
}

// isOneNamespace says whether the question is about a namespace by its name. The API server takes such a request for one in that
// namespace (k8s.io/apiserver/pkg/endpoints/request, RequestInfo), so a RoleBinding there can allow it, and none elsewhere.
func (d *Data) isOneNamespace(gr schema.GroupResource) bool {
	return gr == schema.GroupResource{Resource: "namespaces"} && d.Question.Name != "" &&
		!slices.Contains([]string{"create", "list", "watch", "deletecollection"}, d.Question.Verb)
}

// read reads all bindings that matter, and their roles.
func (d *Data) read(ctx context.Context, c client.Client) error {
	var (
		everywhere   rbacv1.ClusterRoleBindingList
		bindings     rbacv1.RoleBindingList
		clusterRoles rbacv1.ClusterRoleList
		roles        rbacv1.RoleList
	)

	in := client.InNamespace(d.Namespace)
	known := &explain.Roles{Roles: map[string]*rbacv1.Role{}, ClusterRoles: map[string]*rbacv1.ClusterRole{}}

	if _, err := d.list(ctx, c, &everywhere, "ClusterRoleBindings"); err != nil {
		return err
	}

	readClusterRoles, err := d.list(ctx, c, &clusterRoles, "ClusterRoles")
	if err != nil {
		return err
	}

	readRoles := true

	if d.Namespace != "" {
		if _, err := d.list(ctx, c, &bindings, "RoleBindings of namespace "+d.Namespace, in); err != nil {
			return err
		}

		if readRoles, err = d.list(ctx, c, &roles, "Roles of namespace "+d.Namespace, in); err != nil {
			return err
		}
	}

	for i := range clusterRoles.Items {
		known.ClusterRoles[clusterRoles.Items[i].Name] = &clusterRoles.Items[i]
	}

	for i := range roles.Items {
		known.Roles[roles.Items[i].Name] = &roles.Items[i]
	}

	// A role that may not be read is known to exist, and nothing else is known of it.
	for i := range bindings.Items {
		hide(known, &bindings.Items[i].RoleRef, readRoles, readClusterRoles)
	}

	for i := range everywhere.Items {
		hide(known, &everywhere.Items[i].RoleRef, readRoles, readClusterRoles)
	}

	holders, unread, byName := explain.Who(&d.Question, bindings.Items, everywhere.Items, known)
	d.Holders, d.Unread = append(d.Holders, holders...), unread
	d.noteNamed(byName)
	d.noteAlike(func(q *explain.Question) []explain.Entry {
		also, _, _ := explain.Who(q, bindings.Items, everywhere.Items, known)

		return also
	})

	return nil
}

func hide(known *explain.Roles, ref *rbacv1.RoleRef, readRoles, readClusterRoles bool) {
	switch {
	case ref.Kind == "Role" && !readRoles:
		known.Roles[ref.Name] = nil
	case ref.Kind != "Role" && !readClusterRoles:
		known.ClusterRoles[ref.Name] = nil
	}
}

// list says whether the caller may read a list.
func (d *Data) list(
	ctx context.Context, c client.Client, list client.ObjectList, what string, o ...client.ListOption,
) (bool, error) {
	err := c.List(ctx, list, o...)

	switch {
	case apierrors.IsForbidden(err):
		d.NotRead = append(d.NotRead, "you may not list "+what)

		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading %s: %w", what, err)
	default:
		return true, nil
	}
}
