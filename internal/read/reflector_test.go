package read_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/ambit-k8s/ambit/internal/read"
)

// apiServer has ConfigMaps listed and watched, or is away. It fails to stream what there is.
type apiServer struct {
	mu sync.Mutex
	// away is what whoever asks gets instead of an answer.
	away  error
	names []string
	open  *watch.RaceFreeFakeWatcher
	// asked is when somebody asked for the last time, and how often since count.
	asked time.Time
	times int
	// listed are the versions than which lists should not be older.
	listed []string
	// pause is the longest that nobody asked since count.
	pause time.Duration
}

func (s *apiServer) ask() error {
	now := time.Now()
	s.pause, s.asked = max(s.pause, now.Sub(s.asked)), now
	s.times++

	return s.away
}

func (s *apiServer) list(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.listed = append(s.listed, o.ResourceVersion)

	if err := s.ask(); err != nil {
		return nil, err
	}

	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for _, name := range s.names {
		list.Items = append(list.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name}})
	}

	return list, nil
}

func (s *apiServer) watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if o.SendInitialEvents != nil {
		return nil, apierrors.NewInternalError(io.ErrUnexpectedEOF)
	}

	if err := s.ask(); err != nil {
		return nil, err
	}

	s.open = watch.NewRaceFreeFake()

	return s.open, nil
}

// turn has the API server answer with an error, or work again, and ends what is watched as one that is killed does.
func (s *apiServer) turn(away error, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.open != nil {
		status := apierrors.NewResourceExpired("too old resource version: 1 (7)").Status()
		s.open.Error(&status)
		s.open = nil
	}

	s.away, s.names, s.asked, s.pause, s.times = away, names, time.Now(), 0, 0
}

func (s *apiServer) counted() (times int, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.times, s.pause
}

// follow has an informer follow the API server until the test ends, and returns what it knows.
func follow(t *testing.T, s *apiServer, failed func(error)) cache.SharedIndexInformer {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	informer := read.NewInformer(&cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch},
		&corev1.ConfigMap{}, 0, cache.Indexers{})

	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		failed(err)
	}); err != nil {
		t.Fatal(err)
	}

	ended := make(chan struct{})

	go func() {
		defer close(ended)

		informer.RunWithContext(ctx)
	}()

	t.Cleanup(func() {
		began := time.Now()

		cancel()
		<-ended

		if took := time.Since(began); took > 0 {
			t.Errorf("the informer ended %s after it was told to", took)
		}
	})

	return informer
}

// TestInformersAskAnAPIServerThatIsAwayEveryFewSeconds: however long it was away, and however often before, what happened
// meanwhile is known ten seconds after it came back.
func TestInformersAskAnAPIServerThatIsAwayEveryFewSeconds(t *testing.T) {
	t.Parallel()

	const longest, soon = 6 * time.Second, 10 * time.Second

	unavailable := apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "list", schema.GroupResource{}, "", "", 0, true)

	for name, away := range map[string]error{
		"refused connection": &url.Error{Op: "Get", URL: "https://10.0.0.1", Err: syscall.ECONNREFUSED},
		"ended connection":   fmt.Errorf("listing: %w", io.EOF),
		"unavailable":        unavailable,
		"internal error":     apierrors.NewInternalError(io.EOF),
		"too many requests":  apierrors.NewTooManyRequestsError("storage is (re)initializing"),
		"knows nobody":       apierrors.NewUnauthorized("Unauthorized"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &apiServer{}
				s.turn(away)

				informer := follow(t, s, func(err error) { t.Errorf("the reflector was told that the API server is away: %v", err) })

				for outage := range 3 {
					time.Sleep(10 * time.Minute)
					synctest.Wait()

					if times, pause := s.counted(); times < 100 || pause > longest {
						t.Errorf("it was asked %d times, and once not for %s, want no more than %s", times, pause, longest)
					}

					made := fmt.Sprintf("made-in-outage-%d", outage)
					s.turn(nil, made)
					time.Sleep(soon)
					synctest.Wait()

					if keys := informer.GetStore().ListKeys(); len(keys) != 1 || keys[0] != "ops/"+made {
						t.Fatalf("%s after the API server came back, %v are known, want %s alone", soon, keys, made)
					}

					s.turn(nil, made)
					time.Sleep(time.Minute)
					synctest.Wait()

					if times, _ := s.counted(); times > 2 {
						t.Errorf("an API server that works was asked %d times in a minute, want to be listed and watched once", times)
					}

					s.turn(away)
				}
			})
		})
	}
}

// TestReflectorsGetWhatTheAPIServerAnswers: what it refuses, or does not serve or remember, is for the reflector to decide.
func TestReflectorsGetWhatTheAPIServerAnswers(t *testing.T) {
	t.Parallel()

	maps := schema.GroupResource{Resource: "configmaps"}
	tooLarge := apierrors.NewTimeoutError("Too large resource version", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}

	for name, answer := range map[string]error{
		"forbidden":  apierrors.NewForbidden(maps, "", nil),
		"not served": apierrors.NewNotFound(maps, ""),
		"no match":   fmt.Errorf("listing: %w", &meta.NoKindMatchError{}),
		"expired":    apierrors.NewResourceExpired("too old resource version"),
		"too large":  tooLarge,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var told int

				s := &apiServer{}
				s.turn(answer)
				follow(t, s, func(error) { told++ })
				synctest.Wait()

				if told != 1 {
					t.Errorf("the reflector was told %d times, want once and at once", told)
				}
			})
		})
	}
}

// TestWhatIsListedFirstIsNotOld: of several API servers, one may be behind the others, and answer with what there was a while ago
// to who takes any version. Whoever begins with that takes for gone what another one made since.
func TestWhatIsListedFirstIsNotOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &apiServer{names: []string{"one"}}
		informer := follow(t, s, func(err error) { t.Errorf("the reflector failed: %v", err) })

		synctest.Wait()

		if keys := informer.GetStore().ListKeys(); len(keys) != 1 || len(s.listed) != 1 || s.listed[0] != "" {
			t.Errorf("%v are known, and it was listed from version %q; want one, and the latest version", keys, s.listed)
		}
	})
}

// TestWatchThatFallsSilentIsBegunAgain: what is between Ambit and the API server may lose a watch, and keep the connection. The
// API server ends each watch after ten minutes at most, but then nobody hears of that either.
func TestWatchThatFallsSilentIsBegunAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &apiServer{}
		follow(t, s, func(err error) { t.Errorf("the reflector failed: %v", err) })
		synctest.Wait()

		s.mu.Lock()
		s.times, s.pause = 0, 0
		s.mu.Unlock()

		const longest, shortest = 11 * time.Minute, 5 * time.Minute

		time.Sleep(time.Hour)
		synctest.Wait()

		if times, pause := s.counted(); times < int(time.Hour/longest) || times > int(time.Hour/shortest) || pause > longest {
			t.Errorf("it was asked %d times in an hour, and once not for %s", times, pause)
		}
	})
}
