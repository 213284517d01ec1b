package narrow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// clusterRoleElsewhere is a ClusterRole that is bound in one namespace where the operator does not work.
const clusterRoleElsewhere = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: PLACE}
rules: [{apiGroups: [apps], resources: [deployments], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: elsewhere, namespace: PLACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: PLACE}
subjects: [{kind: Group, name: "system:serviceaccounts:OPS"}]
`

// roleElsewhere is a Role in a namespace where the operator does not work, as it might need one for leader election.
const roleElsewhere = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: elsewhere, namespace: PLACE}
rules: [{RULE}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: elsewhere, namespace: PLACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: elsewhere}
subjects: [{kind: ServiceAccount, name: op, namespace: OPS}]
`

// The writes that are tried where a Role is.
const (
	patchDeployment  = "patch a Deployment"
	createDeployment = "create a Deployment"
	deleteDeployment = "delete a Deployment"
	patchStatus      = "patch the status of a Deployment"
	scaleIt          = "scale a Deployment"
	runInPod         = "run something in a pod"
	evictPod         = "evict a pod"
	patchThere       = "patch the ConfigMap there"
	patchOther       = "patch another ConfigMap"
)

// TestFenceElsewhere holds that a fence lets through what RoleBindings of other namespaces give, as RBAC reads their rules: a
// wildcard is anything, a subresource is a resource of its own, and a rule gives no other verbs and names than it says. The
// operator may do everything, so nothing but its fence refuses. The RoleBindings may be in the files, or in the cluster alone,
// from where they do not come into the output.
func TestFenceElsewhere(t *testing.T) {
	for name, input := range map[string]func(w *testbed.World, ops, operator, elsewhere string) []string{
		"of the files": func(w *testbed.World, _, operator, elsewhere string) []string {
			return []string{"-f", write(w, operator+elsewhere)}
		},
		"of the cluster": func(w *testbed.World, _, operator, elsewhere string) []string {
			kubectl(w, elsewhere, "apply", "-f", "-")

			return []string{"-f", write(w, operator)}
		},
		"of what runs": func(w *testbed.World, ops, operator, elsewhere string) []string {
			kubectl(w, operator+elsewhere, "apply", "-f", "-")

			return []string{"--from", ops + "/op"}
		},
	} {
		t.Run(name, func(t *testing.T) { fenceElsewhere(t, input) })
	}
}

func fenceElsewhere(t *testing.T, arguments func(w *testbed.World, ops, operator, elsewhere string) []string) {
	t.Helper()

	w := begin(t)
	ops, member, outside := w.Namespace("ops"), w.Namespace("member"), w.Namespace("outside")
	input := &strings.Builder{}

	rules := map[string][]string{
		`apiGroups: ["*"], resources: ["*"], verbs: ["*"]`: {
			patchDeployment, createDeployment, deleteDeployment, patchStatus, scaleIt, runInPod, evictPod, patchThere, patchOther,
		},
		`apiGroups: [apps], resources: ["*"], verbs: [patch, update]`:         {patchDeployment, patchStatus, scaleIt},
		`apiGroups: ["*"], resources: [deployments], verbs: [create, delete]`: {createDeployment, deleteDeployment},
		`apiGroups: ["", apps], resources: [deployments], verbs: ["*"]`: {
			patchDeployment, createDeployment, deleteDeployment,
		},
		`apiGroups: [apps], resources: [deployments/scale], verbs: [update]`:             {scaleIt},
		`apiGroups: [apps], resources: ["*/status", configmaps], verbs: [patch]`:         {patchStatus},
		`apiGroups: [""], resources: [pods/exec], verbs: [create]`:                       {runInPod},
		`apiGroups: [""], resources: [pods], verbs: ["*"]`:                               nil,
		`apiGroups: ["*"], resources: ["*"], verbs: [list, watch]`:                       nil,
		`apiGroups: [""], resources: [configmaps], resourceNames: [there], verbs: ["*"]`: {patchThere},
		// The request that creates an object does not name it; those for its subresources do.
		`apiGroups: ["", apps], resources: ["*"], resourceNames: [""], verbs: ["*"]`: {createDeployment},
	}
	places := map[string]string{}
	bind := func(rule, manifest string) {
		place := w.Namespace("elsewhere")
		places[rule] = place
		fmt.Fprint(input, strings.NewReplacer("PLACE", place, "OPS", ops, "RULE", rule).Replace(manifest))

		w.Make(deploymentOf(place), podOf(place), configMap(place, "there"), configMap(place, "other"))
	}

	for rule := range rules {
		bind(rule, roleElsewhere)
	}

	rules["the ClusterRole"] = []string{createDeployment}
	bind("the ClusterRole", clusterRoleElsewhere)

	from := arguments(w, ops, strings.ReplaceAll(mighty, "OPS", ops), input.String())

	out, errOut, code := ambit(w, append([]string{"narrow", "--members", member, "--keep", "* *", "--fence"}, from...)...)
	if code != 0 {
		t.Fatal(errOut)
	}

	written := from[0] == "-f" && strings.Contains(read(w, from[1]), "name: elsewhere")
	if is := strings.Contains(out, "name: elsewhere"); is != written {
		t.Errorf("what is elsewhere is written: %t", is)
	}

	kubectl(w, out, "apply", "-f", "-")
	settled(w, objectsOf(w, out))

	user := rest.ImpersonationConfig{UserName: "system:serviceaccount:" + ops + ":op", Groups: []string{
		"system:serviceaccounts", "system:serviceaccounts:" + ops, "system:authenticated",
	}}
	op := w.As(user.UserName, user.Groups...)
	pods := clientsAs(w, user).CoreV1().RESTClient()

	// Before the API server knows the fence, everything is let through.
	expect(w, "the fence stands", true, func() error { return op.Create(w.Context(), configMap(outside, "x"), client.DryRunAll) })

	for rule, allowed := range rules {
		for what, write := range writesIn(w, places[rule], op, pods) {
			expect(w, fmt.Sprintf("{%s}: fence for %s", rule, what), !slices.Contains(allowed, what), write)
		}
	}
}

func clientsAs(w *testbed.World, user rest.ImpersonationConfig) *kubernetes.Clientset {
	w.Helper()

	config := rest.CopyConfig(w.Config)
	config.Impersonate = user

	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}

	return clients
}

// writesIn are the writes in a namespace.
func writesIn(w *testbed.World, place string, op client.Client, pods rest.Interface) map[string]func() error {
	ctx, dry := w.Context(), client.DryRunAll
	merge := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	another := deploymentOf(place)
	another.Name = "another"

	return map[string]func() error{
		patchDeployment:  func() error { return op.Patch(ctx, deploymentOf(place), merge, dry) },
		createDeployment: func() error { return op.Create(ctx, another.DeepCopy(), dry) },
		deleteDeployment: func() error { return op.Delete(ctx, deploymentOf(place), dry) },
		patchStatus: func() error {
			return op.Status().Patch(ctx, deploymentOf(place), merge, &client.SubResourcePatchOptions{
				PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}},
			})
		},
		scaleIt: func() error {
			return op.SubResource("scale").Update(ctx, deploymentOf(place), client.WithSubResourceBody(&autoscalingv1.Scale{
				ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "there"},
			}), &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{DryRun: []string{metav1.DryRunAll}}})
		},
		runInPod: func() error {
			err := pods.Post().Namespace(place).Resource("pods").Name("there").SubResource("exec").
				Param("command", "true").Param("stdout", "true").Do(ctx).Error()
			if !apierrors.IsForbidden(err) {
				return nil // What else is wrong, such as that the pod runs nowhere, is found after admission.
			}

			return err
		},
		evictPod: func() error {
			return op.SubResource("eviction").Create(ctx, podOf(place), &policyv1.Eviction{
				DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
			})
		},
		patchThere: func() error { return op.Patch(ctx, configMap(place, "there"), merge, dry) },
		patchOther: func() error { return op.Patch(ctx, configMap(place, "other"), merge, dry) },
	}
}
