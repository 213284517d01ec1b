package release_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// tested runs helm test. The nodes of the cluster only play, so what the pod asks for runs here, in the folder with the image.
func (w *world) tested(root string) {
	w.Helper()

	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()

	ended := make(chan error, 1)
	go func() { ended <- w.runTestPod(ctx, root) }()

	out := w.runHelm("test", "ambit", "--namespace", embedded.Namespace)
	if err := <-ended; err != nil || !strings.Contains(out, "Succeeded") {
		w.Errorf("helm test: %v\n%s", err, out)
	}
}

// runTestPod does what a node does with the pod of helm test: it runs the container, and tells how that ended.
func (w *world) runTestPod(ctx context.Context, root string) error {
	pod := &corev1.Pod{}

	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := w.Client.Get(ctx, client.ObjectKey{Namespace: embedded.Namespace, Name: "ambit-test"}, pod)

		return err == nil && pod.Status.Phase == corev1.PodRunning, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("waiting for the pod of helm test: %w", err)
	}

	if account := pod.Spec.ServiceAccountName; account != embedded.ServiceAccount {
		return fmt.Errorf("the pod of helm test runs as %q", account)
	}

	phase := corev1.PodSucceeded

	arguments := slices.Concat(pod.Spec.Containers[0].Args, []string{"--kubeconfig=" + kubeconfig})

	out, failed := w.contained(root, arguments...).CombinedOutput()
	if failed != nil {
		phase, failed = corev1.PodFailed, fmt.Errorf("%w\n%s", failed, out)
	}

	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase))
	if err := w.Client.Status().Patch(ctx, pod, patch); err != nil {
		return fmt.Errorf("telling how the pod of helm test ended: %w", err)
	}

	return failed
}
