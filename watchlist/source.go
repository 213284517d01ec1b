package watchlist

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

const (
	// key is the entry of the ConfigMap that holds the list.
	key = "namespaces"
	// pollInterval is how often a file is read. The kubelet swaps a symbolic link, which file watches handle badly.
	pollInterval = 500 * time.Millisecond
	// maxFile is more than a ConfigMap can hold.
	maxFile = 2 << 20
)

// source reports the list, at once and whenever it changes, until the context ends. An error means that nothing new is known:
// what was served is still served.
type source interface {
	follow(ctx context.Context, say func(namespaces, error))
	// live says whether the list can change at all.
	live() bool
}

type fixedSource namespaces

func (f fixedSource) live() bool { return false }

func (f fixedSource) follow(ctx context.Context, say func(namespaces, error)) {
	say(namespaces(f), nil)
	<-ctx.Done()
}

type fileSource struct{ path string }

func (f *fileSource) live() bool { return true }

func (f *fileSource) follow(ctx context.Context, say func(namespaces, error)) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()

	for {
		say(f.read())

		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (f *fileSource) read() (namespaces, error) {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		// The ConfigMap, or its key, is gone, so there is nothing to serve.
		return namespaces{}, nil
	}

	if err == nil && info.Size() > maxFile {
		return namespaces{}, fmt.Errorf("%s has %d bytes, which is no list of namespaces", f.path, info.Size())
	}

	raw, err := os.ReadFile(f.path)
	if err != nil {
		return namespaces{}, fmt.Errorf("reading the list of namespaces: %w", err)
	}

	list, err := parse(string(raw))
	if err != nil {
		return namespaces{}, fmt.Errorf("%s: %w", f.path, err)
	}

	return list, nil
}

type configMapSource struct {
	lw              *toolscache.ListWatch
	namespace, name string
}

func newConfigMapSource(cfg *rest.Config, namespace, name string) (*configMapSource, error) {
	if namespace == "" || name == "" {
		return nil, fmt.Errorf("the ConfigMap %q in namespace %q: both have to be named", name, namespace)
	}

	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client for the list of namespaces: %w", err)
	}

	lw := toolscache.NewListWatchFromClient(clients.CoreV1().RESTClient(), "configmaps", namespace,
		fields.OneTermEqualSelector(metav1.ObjectNameField, name))

	return &configMapSource{lw: lw, namespace: namespace, name: name}, nil
}

func (s *configMapSource) live() bool { return true }

func (s *configMapSource) follow(ctx context.Context, say func(namespaces, error)) {
	informer := toolscache.NewSharedIndexInformer(s.lw, &corev1.ConfigMap{}, 0, toolscache.Indexers{})

	// One at a time, so that the report that there is no ConfigMap never comes after the list itself.
	var mu sync.Mutex

	tell := func(object any) {
		cm, ok := object.(*corev1.ConfigMap)
		if !ok {
			return
		}

		mu.Lock()
		defer mu.Unlock()

		list, err := parse(cm.Data[key])
		if err != nil {
			err = fmt.Errorf("ConfigMap %s/%s: %w", s.namespace, s.name, err)
		}

		say(list, err)
	}

	only := s.namespace + "/" + s.name

	_, err := informer.AddEventHandler(toolscache.FilteringResourceEventHandler{
		// The field selector is the API server's to honour; a list from elsewhere is not believed, whoever sends it.
		FilterFunc: func(object any) bool {
			found, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object)

			return err == nil && found == only
		},
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    tell,
			UpdateFunc: func(_, object any) { tell(object) },
			DeleteFunc: func(any) { say(namespaces{}, nil) },
		},
	})
	if err == nil {
		err = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *toolscache.Reflector, err error) {
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
			// A watch that ended is started again; an error is reported only while nothing has been read.
			if !informer.HasSynced() {
				say(namespaces{}, fmt.Errorf("reading ConfigMap %s/%s: %w", s.namespace, s.name, err))
			}
		})
	}

	if err != nil {
		say(namespaces{}, fmt.Errorf("following ConfigMap %s/%s: %w", s.namespace, s.name, err))

		return
	}

	go func() {
		// A ConfigMap that is not there is an empty list, too.
		if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return
		}

		mu.Lock()
		defer mu.Unlock()

		if _, exists, err := informer.GetStore().GetByKey(only); err == nil && !exists {
			say(namespaces{}, nil)
		}
	}()

	informer.RunWithContext(ctx)
}
