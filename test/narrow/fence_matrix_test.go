package narrow_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/narrow"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// try is a write of the matrix.
type try struct {
	what string
	// allowed are the words with which a fence lets it through; "" says that every fence does.
	allowed []string
	write   func(op client.Client) error
}

// TestFenceAllow tries each word, and all pairs of them, against writes of every shape: what a fence leaves out, and nothing
// more.
func TestFenceAllow(t *testing.T) {
	for _, words := range [][]string{
		nil, {narrow.FenceStatus}, {narrow.FenceEvents}, {narrow.FenceClusterScoped},
		{narrow.FenceStatus, narrow.FenceEvents}, {narrow.FenceClusterScoped, narrow.FenceEvents},
	} {
		t.Run(strings.Join(append([]string{"allow"}, words...), " "), func(t *testing.T) {
			w := begin(t)
			ops, member, outside := w.Namespace("ops"), w.Namespace("member"), w.Namespace("outside")
			arguments := []string{"narrow", "-f", write(w, strings.ReplaceAll(mighty, "OPS", ops)), "--members", member, "--keep",
				"* *", "--fence"}

			if len(words) > 0 {
				arguments = append(arguments, "--fence-allow", strings.Join(words, ","))
			}

			out, errOut, code := ambit(w, arguments...)
			if code != 0 {
				t.Fatal(errOut)
			}

			kubectl(w, out, "apply", "-f", "-")
			settled(w, objectsOf(w, out))

			op := w.As("system:serviceaccount:"+ops+":op",
				"system:serviceaccounts", "system:serviceaccounts:"+ops, "system:authenticated")

			for _, try := range tries(w, ops, member, outside) {
				expect(w, try.what, !allows(words, try.allowed), func() error { return try.write(op) })
			}
		})
	}
}

func allows(words, oneOf []string) bool {
	for _, word := range oneOf {
		if word == "" || strings.Contains(" "+strings.Join(words, " ")+" ", " "+word+" ") {
			return true
		}
	}

	return false
}

// tries are writes of every shape that the API server knows. Of objects that are not there, admission is asked nothing.
func tries(w *testbed.World, ops, member, outside string) []try {
	w.Helper()

	ctx, dry := w.Context(), client.DryRunAll
	always, wide := []string{""}, []string{narrow.FenceClusterScoped}
	status := []string{narrow.FenceStatus, narrow.FenceClusterScoped}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "of-" + ops}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "made-" + ops}}
	there := []client.Object{configMap(member, "there"), configMap(outside, "there"), deploymentOf(member), deploymentOf(outside),
		podOf(outside)}

	w.Make(append(there, node.DeepCopy(), role.DeepCopy())...)

	create := func(obj client.Object) func(client.Client) error {
		return func(op client.Client) error { return op.Create(ctx, obj.DeepCopyObject().(client.Object), dry) }
	}
	merge := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	patch := func(obj client.Object) func(client.Client) error {
		return func(op client.Client) error { return op.Patch(ctx, obj.DeepCopyObject().(client.Object), merge, dry) }
	}
	statusOf := func(obj client.Object) func(client.Client) error {
		return func(op client.Client) error {
			return op.Status().Patch(ctx, obj.DeepCopyObject().(client.Object), merge, &client.SubResourcePatchOptions{
				PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}},
			})
		}
	}
	scale := func(namespace string) func(client.Client) error {
		return func(op client.Client) error {
			return op.SubResource("scale").Update(ctx, deploymentOf(namespace), client.WithSubResourceBody(&autoscalingv1.Scale{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "there"}, Spec: autoscalingv1.ScaleSpec{Replicas: 0},
			}), &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{DryRun: []string{metav1.DryRunAll}}})
		}
	}
	remove := func(obj client.Object) func(client.Client) error {
		return func(op client.Client) error { return op.Delete(ctx, obj.DeepCopyObject().(client.Object), dry) }
	}
	evict := func(op client.Client) error {
		return op.SubResource("eviction").Create(ctx, podOf(outside), &policyv1.Eviction{
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
		})
	}
	namespaceOf := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}

	return []try{
		{"a patch in a member", always, patch(there[0])},
		{"the status in a member", always, statusOf(deploymentOf(member))},
		{"the scale in a member", always, scale(member)},
		{"a deletion in a member", always, remove(there[0])},
		{"a patch elsewhere", nil, patch(there[1])},
		{"a deletion elsewhere", nil, remove(there[1])},
		{"the status elsewhere", nil, statusOf(deploymentOf(outside))},
		{"the scale elsewhere", nil, scale(outside)},
		{"an eviction elsewhere", nil, evict},
		{"an event about something elsewhere", nil, create(event(outside, outside))},
		{"an event about something in the cluster", []string{narrow.FenceEvents}, create(event("default", ""))},
		{"a newer event about something in the cluster", []string{narrow.FenceEvents}, create(newerEvent("default", ""))},
		{"anything else in default", nil, create(configMap("default", "of-"+ops))},
		{"the member's own Namespace", always, patch(namespaceOf(member))},
		{"another Namespace", nil, patch(namespaceOf(outside))},
		{"the deletion of another Namespace", nil, remove(namespaceOf(outside))},
		{"the status of another Namespace", nil, statusOf(namespaceOf(outside))},
		{"a Node", wide, patch(node)},
		{"the status of a Node", status, statusOf(node)},
		{"the deletion of a Node", wide, remove(node)},
		{"a ClusterRole", wide, patch(role)},
		{"a new ClusterRole", wide, create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "new-" + ops}})},
	}
}

func event(namespace, about string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, GenerateName: "of-"},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "one", Namespace: about}, Reason: "Tried", Message: "it was tried",
		Source: corev1.EventSource{Component: "op"}, Type: corev1.EventTypeNormal,
	}
}

func newerEvent(namespace, about string) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "of-"}, EventTime: metav1.NowMicro(),
		Regarding: corev1.ObjectReference{Kind: "Node", Name: "one", Namespace: about}, Reason: "Tried", Action: "Try",
		Note:                "it was tried",
		ReportingController: "example.com/op", ReportingInstance: "op-1", Type: corev1.EventTypeNormal,
	}
}

func deploymentOf(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": "there"}

	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "there"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
			},
		},
	}
}

func podOf(namespace string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "there"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
}
