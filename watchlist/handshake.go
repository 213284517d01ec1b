package watchlist

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// The words of the protocol. docs/live-scope.md has them for other languages.
const (
	followsLabel   = "ambit.dev/follows"
	listAnnotation = "ambit.dev/watch-list"
	hashAnnotation = "ambit.dev/taken-in"
	leasePrefix    = "watchlist-"
)

// handshake tells whoever writes the list which one this process has taken in, in a Lease that its pod owns. Nothing here depends
// on it: without a pod, or without the right, the operator follows all the same, and is restarted when the list changes if its
// pod template names the ConfigMap.
type handshake struct {
	clients   kubernetes.Interface
	self      pod
	err       error
	configMap string
	container string
	live      bool

	wake chan struct{}
	// with are all that tell the same, while this one runs; nil where it tells nothing.
	with *together
}

func newHandshake(cfg *rest.Config, httpClient *http.Client, list *List) *handshake {
	h := &handshake{configMap: list.configMap, container: container(), live: list.source.live(), wake: make(chan struct{}, 1)}

	if h.self, h.err = self(cfg); h.err == nil {
		h.clients, h.err = kubernetes.NewForConfigAndClient(cfg, httpClient)
	}

	return h
}

// hashOf is the hash by which a list is known in the protocol.
func hashOf(list namespaces) string {
	sum := sha256.Sum256([]byte(list.String()))

	return hex.EncodeToString(sum[:])
}

// begin has it run, before anything is taken in.
func (h *handshake) begin() {
	if h.live && h.err == nil {
		h.with = join(h)
	}
}

func (h *handshake) end() {
	if h.with != nil {
		h.with.leave(h)
	}
}

// takenIn says that the list is served, and nothing of what was before it.
func (h *handshake) takenIn(list namespaces) {
	if h.with != nil {
		h.with.take(h, hashOf(list))
		wake(h.wake)
	}
}

func (h *handshake) run(ctx context.Context) {
	logger := log.FromContext(ctx).WithName("watchlist")

	if !h.live {
		return
	}

	if h.err != nil {
		logger.Info("Following the list without telling so; a change restarts this operator if its pod mounts the list",
			"reason", h.err.Error())

		return
	}

	for pause := time.Second; ; {
		if h.with.due() == "" {
			h.waitFor(ctx, 0)
		} else if err := h.with.tell(func(hash string) error { return h.write(ctx, hash) }); err != nil {
			logger.Error(err, "The list that was taken in could not be told; a change restarts this operator if its pod mounts the list")
			h.waitFor(ctx, pause)

			pause = min(2*pause, time.Minute)
		} else {
			pause = time.Second
		}

		if ctx.Err() != nil {
			return
		}
	}
}

// waitFor waits for another list, or for the time if there is one.
func (h *handshake) waitFor(ctx context.Context, pause time.Duration) {
	var over <-chan time.Time

	if pause > 0 {
		over = time.After(pause)
	}

	select {
	case <-ctx.Done():
	case <-h.wake:
	case <-over:
	}
}

// write tells what this container has taken in, beside what the others of its pod told.
func (h *handshake) write(ctx context.Context, hash string) error {
	leases := h.clients.CoordinationV1().Leases(h.self.namespace)
	wanted := h.lease(among(nil, h.container, h.configMap, hash))

	_, err := leases.Create(ctx, wanted, metav1.CreateOptions{})
	if err == nil || !apierrors.IsAlreadyExists(err) {
		return wrap(err, "creating Lease %s", wanted.Name)
	}

	//nolint:wrapcheck // It says what was being done.
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		present, err := leases.Get(ctx, wanted.Name, metav1.GetOptions{})
		if err != nil {
			return wrap(err, "reading Lease %s", wanted.Name)
		}

		wanted = h.lease(among(present.Annotations, h.container, h.configMap, hash))
		wanted.ResourceVersion = present.ResourceVersion

		_, err = leases.Update(ctx, wanted, metav1.UpdateOptions{})

		return wrap(err, "updating Lease %s", wanted.Name)
	})
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}

	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

func (h *handshake) lease(annotations map[string]string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: leasePrefix + string(h.self.uid), Namespace: h.self.namespace,
			Labels: map[string]string{followsLabel: "true"}, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Pod", Name: h.self.name, UID: h.self.uid,
			}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &h.self.name},
	}
}

// warn writes an event about this pod: a namespace of the list, or all of them, cannot be watched.
func (h *handshake) warn(where, kind string, cause error) {
	if h.err != nil {
		return
	}

	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()

		now := metav1.Now()
		// Best effort: the readiness check and the metric say the same.
		_, _ = h.clients.CoreV1().Events(h.self.namespace).Create(ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{GenerateName: h.self.name + ".", Namespace: h.self.namespace},
			InvolvedObject: corev1.ObjectReference{
				APIVersion: "v1", Kind: "Pod", Namespace: h.self.namespace, Name: h.self.name, UID: h.self.uid,
			},
			Reason: "NamespaceNotWatched", Type: corev1.EventTypeWarning,
			Message:        fmt.Sprintf("The %s of %s cannot be watched: %v", kind, where, cause),
			Source:         corev1.EventSource{Component: "watchlist"},
			FirstTimestamp: now, LastTimestamp: now, Count: 1,
		}, metav1.CreateOptions{})
	}()
}
