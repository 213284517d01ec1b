package attacks_test

import (
	"context"
	"net/http"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// Whoever has the token of Ambit in the profile delegated acts as an account that may do everything. What Ambit writes for
// scopes they may write; they read nothing, run nothing and become nobody else.
func TestStolenTokenOfADelegatedAmbit(t *testing.T) {
	w := begin(t, "delegated")
	home := w.Namespace("home")
	victim := w.Namespace("victim")

	w.Make(
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "root"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "treasure"}},
		podOf(victim, "running"),
	)

	w.Make(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: victim + "-root"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: victim, Name: "root"}},
	})

	for _, words := range []string{"get secrets", "create pods", "create serviceaccounts/token"} {
		w.May(victim, "root", victim, words)
	}

	stolen := w.ConfigOf(embedded.Namespace, embedded.ServiceAccount)
	root := as(t, stolen, rest.ImpersonationConfig{UserName: scope.AccountUser(victim, "root")})

	// It is the token that works, and impersonation that is limited.
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: victim}}
	if _, err := root.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), review, metav1.CreateOptions{}); err != nil {
		t.Fatalf("what Ambit itself asks as an account is refused: %v", err)
	}

	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "copy"}, Rules: []rbacv1.PolicyRule{testbed.Rule("get pods")}}
	if _, err := root.RbacV1().Roles(home).Create(t.Context(), role, dryRun); err != nil {
		t.Fatalf("what Ambit itself writes as an account is refused: %v", err)
	}

	for what, request := range asAnAccount(victim) {
		if err := request(t.Context(), root); !apierrors.IsForbidden(err) {
			t.Errorf("as an account that may do everything, the token may %s: %v", what, err)
		}
	}

	for what, who := range map[string]rest.ImpersonationConfig{
		"a user":                    {UserName: "jane"},
		"a cluster administrator":   {UserName: "jane", Groups: []string{"system:masters"}},
		"a node":                    {UserName: "system:node:node-0", Groups: []string{"system:nodes"}},
		"an account in a group":     {UserName: scope.AccountUser(victim, "root"), Groups: []string{"system:masters"}},
		"an account with an extra":  {UserName: scope.AccountUser(victim, "root"), Extra: map[string][]string{"example.com/x": {"y"}}},
		"an account with a UID":     {UserName: scope.AccountUser(victim, "root"), UID: "1"},
		"Kubernetes' own component": {UserName: "system:kube-controller-manager"},
	} {
		other := as(t, stolen, who)
		if _, err := other.RbacV1().Roles(home).Create(t.Context(), role, dryRun); !apierrors.IsForbidden(err) {
			t.Errorf("the token may act as %s: %v", what, err)
		}
	}
}

// asAnAccount are requests that Ambit never makes as another account, in a namespace that has a Secret, a pod and an account.
func asAnAccount(namespace string) map[string]func(context.Context, kubernetes.Interface) error {
	return map[string]func(context.Context, kubernetes.Interface) error{
		"read a Secret": func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Secrets(namespace).Get(ctx, "treasure", metav1.GetOptions{})

			return err
		},
		"list all Secrets": func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Secrets("").List(ctx, metav1.ListOptions{})

			return err
		},
		"watch Secrets": func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Secrets(namespace).Watch(ctx, metav1.ListOptions{})

			return err
		},
		"read a ConfigMap": func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().ConfigMaps(namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})

			return err
		},
		"run a pod": func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Pods(namespace).Create(ctx, podOf(namespace, "evil"), metav1.CreateOptions{})

			return err
		},
		"get a token": func(ctx context.Context, c kubernetes.Interface) error {
			request := &authenticationv1.TokenRequest{}
			_, err := c.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, "root", request, metav1.CreateOptions{})

			return err
		},
		"make a Secret that becomes a token": func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "root"}},
				Type:       corev1.SecretTypeServiceAccountToken,
			}, metav1.CreateOptions{})

			return err
		},
		"run a command in a pod": func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name("running").SubResource("exec").
				Param("command", "id").Do(ctx).Error()
		},
		"read a pod's log": func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").Name("running").SubResource("log").
				Do(ctx).Error()
		},
		"delete a namespace": func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		},
		"change an admission policy": func(ctx context.Context, c kubernetes.Interface) error {
			return c.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx, "ambit-finalizer",
				metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		},
		"read what is no resource": func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().RESTClient().Get().AbsPath("/metrics").Do(ctx).Error()
		},
		"approve a certificate": func(ctx context.Context, c kubernetes.Interface) error {
			return c.CertificatesV1().RESTClient().Verb(http.MethodPatch).Resource("certificatesigningrequests").Name("x").
				SubResource("approval").Do(ctx).Error()
		},
	}
}

func podOf(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			ServiceAccountName: "root",
			Containers:         []corev1.Container{{Name: "shell", Image: "registry.example/shell"}},
		},
	}
}

func as(t *testing.T, config *rest.Config, who rest.ImpersonationConfig) kubernetes.Interface {
	t.Helper()

	config = rest.CopyConfig(config)
	config.Impersonate = who

	return kubernetes.NewForConfigOrDie(config)
}
