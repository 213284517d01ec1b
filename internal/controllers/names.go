package controllers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/projected"
)

// NamesSecret is the Secret in Ambit's own namespace whose key encrypts the names of copies; keyEntry is where it is in there.
const (
	NamesSecret = "ambit-names"
	keyEntry    = "key"
)

// The key is asked for every keyPause, with keyRequest for each answer: longer than an admission webhook has by default, so that
// the API server names one that hangs. What only somebody else can mend is asked for again for keyTimeout, since an API server
// that has just started knows neither roles nor accounts yet. Why Ambit waits is logged every keyLog.
const (
	keyTimeout = 5 * time.Second
	keyPause   = time.Second
	keyRequest = 15 * time.Second
	keyLog     = time.Minute
)

// LoadNames reads the key of the names of copies, or makes it. Where Ambit may do neither, the names are as good, but after a
// restart nothing shows which objects Ambit made if somebody took their marks away. An API server that fails is waited for: with
// another key, Ambit would not know what it made with the one that is kept, nor that with the other once it has the key again.
// What stays as it is until somebody mends it is returned.
func LoadNames(ctx context.Context, config *rest.Config, namespace string) (*projected.Names, error) {
	if namespace == "" {
		return forgetful(errors.New("OPERATOR_NAMESPACE is not set"))
	}

	config = rest.CopyConfig(config)
	config.Timeout = keyRequest

	c, options, err := secretsClient(config)
	if err != nil {
		return nil, err
	}

	// No store keeps records of what is written here.
	applier := apply.New(config, options, nil, 1)

	var (
		asked         string // of whoever can mend what fails
		since, logged time.Time
	)

	for {
		names, err := loadNames(ctx, c, applier, namespace)

		switch remedy := remedyFor(err, namespace); {
		case err == nil:
			return names, nil
		case errors.Is(err, projected.ErrKey):
			return nil, fmt.Errorf("%w; delete the Secret, and another key is made", err)
		case remedy == "" || remedy != asked:
			asked, since = remedy, time.Now()
		case time.Since(since) < keyTimeout:
		case apierrors.IsForbidden(err):
			return forgetful(err)
		default:
			return nil, fmt.Errorf("%w; %s", err, remedy)
		}

		if logged.IsZero() || time.Since(logged) >= keyLog {
			log.FromContext(ctx).Info("Waiting for the key of names", "secret", namespace+"/"+NamesSecret, "because", err.Error())
			logged = time.Now()
		}

		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the key of names: %w", err)
		case <-time.After(keyPause):
		}
	}
}

// grantKey is what to do where Ambit may not keep the key.
const grantKey = "grant get and update on the Secret, and start again"

// remedyFor says what to do about an error that stays until somebody does something; it is empty for one that may pass.
func remedyFor(err error, namespace string) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}

	switch code := status.Status().Code; code {
	case http.StatusForbidden:
		return grantKey
	case http.StatusNotFound:
		return "create namespace " + namespace + ", or set OPERATOR_NAMESPACE to the one that Ambit runs in, and start again"
	case http.StatusUnprocessableEntity:
		return "replace the Secret by an empty one that is not immutable, and start again"
	case http.StatusUnauthorized:
		return "give Ambit valid credentials, and start again"
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return ""
	default:
		if code < http.StatusBadRequest || code >= http.StatusInternalServerError {
			return ""
		}

		return "mend what the API server names, and start again"
	}
}

// secretsClient reads Secrets. The one kind that is asked for needs no discovery.
func secretsClient(config *rest.Config) (client.Client, client.Options, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)

	options := client.Options{Mapper: mapper}

	c, err := client.New(config, options)
	if err != nil {
		return nil, options, fmt.Errorf("making the client for Secret %s: %w", NamesSecret, err)
	}

	return c, options, nil
}

// errKeyChanged is why a replica ends that read the key of names before another one was made.
var errKeyChanged = errors.New("the key in Secret " + NamesSecret + " is another one than when this replica started; start again")

// CheckNames returns an error if the Secret holds another key than names have by now: a replica that waited for its turn would
// not know what the one before it made. What cannot be read says nothing.
func CheckNames(ctx context.Context, config *rest.Config, namespace string, names *projected.Names) error {
	c, _, err := secretsClient(config)
	if err != nil {
		return err
	}

	// What hangs must not keep a replica from its turn.
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()

	secret := &corev1.Secret{}
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: NamesSecret}, secret)

	if key := secret.Data[keyEntry]; err == nil && len(key) > 0 && !names.HasKey(key) {
		return errKeyChanged
	}

	return nil
}

// forgetful are names with a key that ends with the process.
func forgetful(why error) (*projected.Names, error) {
	log.Log.Error(why, "The key of names is not kept; "+grantKey, "secret", NamesSecret)

	return projected.NewNames(newKey(), time.Now())
}

func loadNames(ctx context.Context, c client.Reader, applier *apply.Applier, namespace string) (*projected.Names, error) {
	secret := &corev1.Secret{}

	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: NamesSecret}, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", namespace, NamesSecret, err)
	}

	if missing := apierrors.IsNotFound(err); missing || len(secret.Data[keyEntry]) == 0 {
		if err := makeKey(ctx, applier, secret, namespace, missing); err != nil {
			return nil, err
		}
	}

	names, err := projected.NewNames(secret.Data[keyEntry], keySince(secret))
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", namespace, NamesSecret, err)
	}

	return names, nil
}

// makeKey writes a key. Of two managers that do so at once one fails, and then reads the key of the other.
func makeKey(ctx context.Context, applier *apply.Applier, secret *corev1.Secret, namespace string, missing bool) error {
	secret.Data = map[string][]byte{keyEntry: newKey()}

	if !missing {
		return applier.Replace(ctx, apply.Own(), secret)
	}

	secret.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: NamesSecret}

	result, err := applier.CreateOnce(ctx, apply.Own(), secret)
	if err == nil && result == apply.Unchanged {
		err = errOtherKey
	}

	return err
}

// errOtherKey is why the key that was made is not used.
var errOtherKey = errors.New("somebody else wrote a key at the same time")

func newKey() []byte {
	key := make([]byte, projected.KeySize)
	_, _ = rand.Read(key) // It never fails.

	return key
}

// keySince is when the key was written, by the API server's clock.
func keySince(secret *corev1.Secret) time.Time {
	since := secret.CreationTimestamp.Time

	for _, entry := range secret.ManagedFields {
		if entry.FieldsV1 != nil && entry.Time != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+keyEntry+`"`) &&
			entry.Time.After(since) {
			since = entry.Time.Time
		}
	}

	return since
}
