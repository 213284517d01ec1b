package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// noList is the watch list of a ConfigMap that does not exist.
const noList = "no such ConfigMap"

// world looks at the cluster, as its administrator.
type world struct {
	client.WithWatch

	config *rest.Config
}

func newWorld(kubeconfig string) (*world, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", kubeconfig, err)
	}

	config.QPS = -1
	scheme := runtime.NewScheme()

	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, operatorv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}

	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}

	return &world{WithWatch: c, config: config}, nil
}

// revision is the latest of the cluster.
func (w *world) revision(ctx context.Context) (uint64, error) {
	list := &corev1.ConfigMapList{}
	if err := w.List(ctx, list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		return 0, fmt.Errorf("asking for the revision of the cluster: %w", err)
	}

	revision, err := strconv.ParseUint(list.ResourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the revision of the cluster: %w", err)
	}

	return revision, nil
}

// watchList returns what the ConfigMap says.
func (w *world) watchList(ctx context.Context) (string, error) {
	var cm corev1.ConfigMap

	err := w.Get(ctx, client.ObjectKey{Namespace: ops, Name: configMap}, &cm)
	if apierrors.IsNotFound(err) {
		return noList, nil
	}

	return cm.Data[scope.ListKey], err
}

// rollouts returns how often an operator was rolled out, as the deployment controller counts, once none is under way.
func (w *world) rollouts(ctx context.Context, o operator) (string, error) {
	var d appsv1.Deployment
	if err := w.Get(ctx, client.ObjectKey{Namespace: ops, Name: string(o)}, &d); err != nil {
		return "", err
	}

	if d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas != 1 || d.Status.Replicas != 1 ||
		d.Status.AvailableReplicas != 1 {
		return "a rollout is under way", nil
	}

	return d.Annotations["deployment.kubernetes.io/revision"], nil
}

// pods returns the names of an operator's pods.
func (w *world) pods(ctx context.Context, o operator) (string, error) {
	var list corev1.PodList
	if err := w.List(ctx, &list, client.InNamespace(ops), client.MatchingLabels{"name": string(o)}); err != nil {
		return "", err
	}

	names := make([]string, 0, len(list.Items))

	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			names = append(names, list.Items[i].Name)
		}
	}

	slices.Sort(names)

	return strings.Join(names, " "), nil
}

// projectedRole waits for the one copy of an operator's Role in a member, and returns its name. One that was replaced goes soon.
func (w *world) projectedRole(ctx context.Context, o operator, member string) (string, error) {
	var names []string

	err := wait.PollUntilContextTimeout(ctx, copyInterval, copyPatience, true, func(ctx context.Context) (bool, error) {
		var list rbacv1.RoleList
		if err := w.List(ctx, &list, client.InNamespace(member), client.HasLabels{scope.LabelScope}); err != nil {
			return false, err
		}

		names = nil

		for i := range list.Items {
			if list.Items[i].Annotations[scope.AnnotationSource] == "Role/"+ops+"/"+string(o) {
				names = append(names, list.Items[i].Name)
			}
		}

		return len(names) == 1, nil
	})
	if err != nil {
		return "", fmt.Errorf("the copies of the Role of %s in %s are %q: %w", o, member, names, err)
	}

	return names[0], nil
}

const (
	copyInterval = 100 * time.Millisecond
	copyPatience = 20 * time.Second
)

// rules returns the rules of a Role as text.
func (w *world) rules(ctx context.Context, namespace, name string) (string, error) {
	var role rbacv1.Role
	if err := w.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &role); err != nil {
		return "", err
	}

	return rulesText(role.Rules), nil
}

func rulesText(rules []rbacv1.PolicyRule) string {
	out := make([]string, 0, len(rules))
	for i := range rules {
		out = append(out, strings.Join(rules[i].Verbs, ",")+" "+strings.Join(rules[i].Resources, ","))
	}

	return strings.Join(out, "; ")
}

// ready returns the summary of the scope's status.
func (w *world) ready(ctx context.Context) (string, error) {
	var nss operatorv1.NamespaceScope
	if err := w.Get(ctx, client.ObjectKey{Namespace: ops, Name: scopeName}, &nss); err != nil {
		return "", err
	}

	for _, c := range nss.Status.Conditions {
		if c.Type == "Ready" && c.ObservedGeneration == nss.Generation {
			return fmt.Sprintf("%s %s, %s", c.Status, c.Reason, c.Message), nil
		}
	}

	return "not yet", nil
}

// told is the answer of world.told.
const told = "told"

// told says whether an event of the scope has a reason, and names something. Events are sent when there is time for it.
func (w *world) told(ctx context.Context, reason, name string) (string, error) {
	var list corev1.EventList
	if err := w.List(ctx, &list, client.InNamespace(ops)); err != nil {
		return "", err
	}

	for i := range list.Items {
		e := &list.Items[i]
		if e.InvolvedObject.Kind == "NamespaceScope" && e.Reason == reason && strings.Contains(e.Message, name) {
			return told, nil
		}
	}

	return "no such event", nil
}

// leftovers names what is still there of the scope and of what was made for it.
func (w *world) leftovers(ctx context.Context) (string, error) {
	var (
		scopes   operatorv1.NamespaceScopeList
		roles    rbacv1.RoleList
		bindings rbacv1.RoleBindingList
		out      []string
	)

	projected := client.HasLabels{scope.LabelScope}
	if err := errors.Join(w.List(ctx, &scopes), w.List(ctx, &roles, projected), w.List(ctx, &bindings, projected)); err != nil {
		return "", err
	}

	for kind, n := range map[string]int{
		"NamespaceScope": len(scopes.Items), "Role": len(roles.Items), "RoleBinding": len(bindings.Items),
	} {
		if n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, kind))
		}
	}

	if list, err := w.watchList(ctx); err != nil || list != noList {
		return "the ConfigMap", err
	}

	if len(out) == 0 {
		return "nothing", nil
	}

	slices.Sort(out)

	return strings.Join(out, ", "), nil
}
