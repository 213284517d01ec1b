// Package why is "ambit why": it says why a service account may do what it may do in a namespace.
package why

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// accounts are service accounts as NAMESPACE/NAME, of the namespaces that have scopes.
func accounts(ctx context.Context, c client.Reader, _ *reading.Options) []string {
	operatorNamespaces := reading.ScopeNames(ctx, c, "", client.Object.GetNamespace)
	slices.Sort(operatorNamespaces)

	out := make([]string, 0, len(operatorNamespaces))

	for _, namespace := range slices.Compact(operatorNamespaces) {
		out = append(out, reading.NamesIn(ctx, c, &corev1.ServiceAccountList{}, namespace, func(obj client.Object) string {
			return namespace + "/" + obj.GetName()
		})...)
	}

	return out
}

// Options are the flags and arguments of "ambit why".
type Options struct {
	reading.Options

	// Account is a service account, as NAMESPACE/NAME.
	Account explain.Account
	// Verb, Resource and Name are the one question that is asked; empty for everything.
	Verb, Resource, Name string
	// All shows what every service account has, too.
	All bool
}

// Command returns "ambit why".
func Command() *cobra.Command {
	o := &Options{}
	c := &cobra.Command{
		Use:   "why OPS/SERVICEACCOUNT -n NAMESPACE",
		Short: "Explain the rights of a service account in a namespace",
		Long: `Explain the rights of a service account in a namespace: each rule with the binding that
grants it. For what Ambit projected, the command names the Role and RoleBinding that were copied, the
scope, and the program that wrote that scope, if the API server recorded it. For everything
else it names the binding, in the namespace or in the whole cluster, and the group through which the
binding covers the account.

With --verb and --resource the command answers one question. If the answer is no, it names the
obstacle, as far as Ambit knows. If you may read too little for an answer, it says so. Where several
API groups serve the resource, the command fails and lists them; about a resource that the API server
does not know, or a verb that Kubernetes does not have, it says that.

The command reads with your rights, and names what you may not read.

Exit code: 0 done, or yes; 3 no, to a question; 1 failed, or the answer is unknown; 2 wrong
usage.`,
		Example: `  # Everything that secretman may do in cloudpak1
  ambit why ibm-common-services/secretman -n cloudpak1

  # One question
  ambit why ibm-common-services/secretman -n cloudpak1 --verb create --resource secrets

  # About a resource of an API group, and about one object
  ambit why ibm-common-services/certman -n cloudpak1 --verb get --resource certificates.certman.example.com --name portal`,
		RunE: command.InSteps(o),
	}

	o.Bind(c)
	c.ValidArgsFunction = o.Names(accounts)

	f := c.Flags()
	f.StringVar(&o.Verb, "verb", "", "ask one question: the verb, such as get")
	f.StringVar(&o.Resource, "resource", "", "ask one question: the resource, such as secrets, pods/log or deployments.apps")
	f.StringVar(&o.Name, "name", "", "ask about the object of this name")
	f.BoolVar(&o.All, "all", false, "show what every service account has, too")

	return c
}

// Complete takes the service account that is asked about.
func (o *Options) Complete(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return command.Usagef("%s takes one service account, as NAMESPACE/NAME; see %s --help", c.CommandPath(), c.CommandPath())
	}

	namespace, name, found := strings.Cut(args[0], "/")
	if !found {
		return command.Usagef("%q names no namespace; give NAMESPACE/NAME", args[0])
	}

	o.Account = explain.Account{Namespace: namespace, Name: name}

	return o.Options.Complete(c, args)
}

// Validate says what is wrong with the options, before anything is read.
func (o *Options) Validate() error {
	for what, name := range map[string]string{"the namespace": o.Account.Namespace, "the service account": o.Account.Name} {
		if err := command.ValidName(what, name); err != nil {
			return err
		}
	}

	if (o.Verb == "") != (o.Resource == "") {
		return errors.New("--verb and --resource go together; give both, or none for everything")
	}

	if o.Name != "" && o.Verb == "" {
		return errors.New("--name is part of a question; give --verb and --resource, too")
	}

	return o.Options.Validate()
}

// Data is what "ambit why" prints for programs.
type Data struct {
	Account   explain.Account `json:"account"`
	Namespace string          `json:"namespace"`
	// Question is the one that was asked, and Allowed the answer: null where none was asked, or where it is unknown. APIServer
	// is what the API server itself says, if it could be asked.
	Question  *explain.Question `json:"question,omitempty"`
	Allowed   *bool             `json:"allowed"`
	APIServer string            `json:"apiServer,omitempty"`
	// Rights are those that allow it; where that is unknown, those whose rules may not be read.
	Rights []explain.Right `json:"rights"`
	// Named are rights that are limited to other names.
	Named []explain.Right `json:"named,omitempty"`
	// Hints say why a right is missing.
	Hints []string `json:"hints,omitempty"`
	// Notes say what users should know of the question.
	Notes   []string `json:"notes,omitempty"`
	NotRead []string `json:"notRead,omitempty"`
}

// Run explains. ErrMissing is the answer "no" to a question, and ErrUnknown that there is none.
func (o *Options) Run(ctx context.Context) error {
	_, d, err := reading.Once(ctx, &o.Options, o.Explain)
	if err != nil {
		return err
	}

	if o.Output == output.Table {
		err = o.table(d)
	} else {
		err = o.PrintData(d)
	}

	switch {
	case err != nil || d.Question == nil:
		return err
	case d.Allowed == nil:
		return command.ErrUnknown
	case !*d.Allowed:
		return command.ErrMissing
	default:
		return nil
	}
}

// Explain answers without printing.
func (o *Options) Explain(ctx context.Context, v *reading.Cluster) (*Data, error) {
	rights, err := v.Rights(ctx, o.Account, o.Namespace)
	if err != nil {
		return nil, err
	}

	d := &Data{Account: o.Account, Namespace: o.Namespace, Rights: rights}

	if o.Verb != "" {
		if err := o.answer(ctx, v, d); err != nil {
			return nil, err
		}
	}

	if d.Rights == nil {
		d.Rights = []explain.Right{}
	}

	if err := addAuthors(ctx, v, d.Rights); err != nil {
		return nil, err
	}

	if o.isUnexplained(d) {
		if err := o.addHints(ctx, v, d); err != nil {
			return nil, err
		}
	}

	d.NotRead = v.NotRead()

	return d, o.addNotThere(ctx, v, d)
}

// addNotThere notes what the question names and does not exist.
func (o *Options) addNotThere(ctx context.Context, v *reading.Cluster, d *Data) error {
	account, err := command.NoAccount(ctx, v, o.Account.Namespace, o.Account.Name)
	if err != nil {
		return err
	}

	namespace, err := command.NoNamespace(ctx, v, o.Namespace)

	for _, note := range []string{account, namespace} {
		if note != "" {
			d.Notes = append(d.Notes, note)
		}
	}

	return err
}

// isUnexplained says whether the account has nothing here that not everybody has.
func (o *Options) isUnexplained(d *Data) bool {
	if d.Question != nil {
		return d.Allowed != nil && !*d.Allowed
	}

	return !slices.ContainsFunc(d.Rights, func(r explain.Right) bool { return !r.IsEverybodys() })
}

// answer answers the question by the bindings and by the API server itself, which has the last word. If the API server could not
// be asked, the bindings that may not be read may allow it, so the answer is unknown and not no.
func (o *Options) answer(ctx context.Context, v *reading.Cluster, d *Data) error {
	about, err := discovered.Resolve(v.RESTMapper(), o.Resource)
	if err != nil {
		return err
	}

	d.Notes = append(d.Notes, about.Notes(o.Verb)...)

	d.Question = &explain.Question{Verb: o.Verb, Group: about.Group, Resource: about.Path(), Name: o.Name}

	if about.ClusterScoped {
		d.Question.InNoNamespace(d.Namespace)
	}

	for _, r := range explain.Ineffective(d.Rights, d.Question) {
		d.Hints = append(d.Hints, fmt.Sprintf("%s says so, to no effect: %s are in no namespace; only a ClusterRoleBinding gives them",
			r.Binding, d.Question.Resource))
	}

	unread := slices.DeleteFunc(slices.Clone(d.Rights), func(r explain.Right) bool { return !r.Unread })
	d.keepAllowing()

	allowed := len(d.Rights) > 0

	said, err := askAPIServer(ctx, v, d, about)
	if err != nil {
		return err
	}

	if said != nil {
		allowed = said.Allowed
		d.APIServer = map[bool]string{true: "yes", false: "no"}[said.Allowed]
	}

	if said == nil && !allowed && len(unread)+len(v.Denied()) > 0 {
		d.Rights = unread

		return nil
	}

	d.Allowed = &allowed

	return nil
}

// askAPIServer returns nil where the caller may not ask.
func askAPIServer(
	ctx context.Context, v *reading.Cluster, d *Data, about *discovered.Resource,
) (*authorizationv1.SubjectAccessReviewStatus, error) {
	namespace := d.Namespace
	if d.Question.ClusterScoped {
		namespace = ""
	}

	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: d.Account.User(), Groups: d.Account.Groups(),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: d.Question.Verb, Group: about.Group, Resource: about.Resource,
			Subresource: about.Subresource, Name: d.Question.Name,
		},
	}}

	err := v.Create(ctx, review)
	if apierrors.IsForbidden(err) {
		return nil, nil //nolint:nilnil // Not to know is no error.
	}

	if err != nil {
		return nil, fmt.Errorf("asking the API server: %w", err)
	}

	return &review.Status, nil
}

// addAuthors names who wrote the scopes. A scope that is not there has no author: its name is from marks, and anybody who may
// write bindings can write these.
func addAuthors(ctx context.Context, v *reading.Cluster, rights []explain.Right) error {
	type mark struct {
		explain.Ref

		hash string
	}

	known := map[mark]*explain.Author{}

	for i := range rights {
		r := &rights[i]
		if r.Scope == nil {
			continue
		}

		of := mark{*r.Scope, r.ScopeHash}

		if author, asked := known[of]; asked {
			r.ScopeAuthor = author

			continue
		}

		obj, owner := scopeObject(r)

		err := v.Get(ctx, client.ObjectKey{Namespace: r.Scope.Namespace, Name: r.Scope.Name}, obj)

		switch {
		case err == nil:
			r.ScopeAuthor = explain.AuthorOfScope(obj)
		case apierrors.IsForbidden(err):
			v.Deny(snapshot.Denied{Verb: "get", Resource: strings.ToLower(r.Scope.Kind) + "s", Namespace: r.Scope.Namespace})
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			return fmt.Errorf("reading %s: %w", owner, err)
		}

		known[of] = r.ScopeAuthor
	}

	return nil
}

// scopeObject returns an empty resource of the kind that a right is for. The hash tells which of the two groups a NamespaceScope
// is of.
func scopeObject(r *explain.Right) (client.Object, scope.Owner) {
	owner := scope.Owner{Kind: r.Scope.Kind, Namespace: r.Scope.Namespace, Name: r.Scope.Name}

	switch r.Scope.Kind {
	case "ScopeTemplate":
		return &operatorsv1alpha1.ScopeTemplate{}, compile.TemplateOwner(owner.Name)
	case "ScopeInstance":
		return &operatorsv1alpha1.ScopeInstance{}, compile.InstanceOwner(owner.Name)
	case scope.KindCSV:
		return scope.NewOLM(scope.KindCSV), owner // Its Go type cannot read all that its definition accepts.
	}

	if owner.Group = namespacescopev1alpha1.GroupVersion.Group; owner.Hash() == r.ScopeHash {
		return &namespacescopev1alpha1.NamespaceScope{}, owner
	}

	owner.Group = operatorv1.GroupVersion.Group

	return &operatorv1.NamespaceScope{}, owner
}
