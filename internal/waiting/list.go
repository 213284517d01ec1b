package waiting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const (
	// maxObjects and maxBytes bound one answer. A tenant may make as many objects as there is room for, with as much metadata.
	maxObjects = 500
	maxBytes   = 4 << 20
	// maxClients bounds the clients that are kept; making one again costs no request.
	maxClients = 50

	metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// errTooMuch is returned besides what was seen where there is more.
var errTooMuch = errors.New("there is more than is looked at")

func isTooMuch(err error) bool { return errors.Is(err, errTooMuch) }

// answer is what is read of a list.
type answer struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []struct {
		Metadata object `json:"metadata"`
	} `json:"items"`
}

type object struct {
	Name              string   `json:"name"`
	DeletionTimestamp *string  `json:"deletionTimestamp"`
	Finalizers        []string `json:"finalizers"`
}

// isHeld says whether a finalizer of somebody else's than the garbage collector is on an object.
func (o *object) isHeld() bool {
	return slices.ContainsFunc(o.Finalizers, func(f string) bool {
		return f != metav1.FinalizerDeleteDependents && f != metav1.FinalizerOrphanDependents
	})
}

// found are the objects that wait for a finalizer, and those that will once they are deleted.
type found struct{ waiting, kept []string }

// list finds the objects of a kind.
func (l *Finder) list(ctx context.Context, q *Question, j *job) (*found, error) {
	client, err := l.clientOf(j.user)
	if err != nil {
		return nil, err
	}

	raw, err := read(ctx, client.Get().
		AbsPath("apis", j.kind.group, j.kind.version, "namespaces", q.Namespace, j.kind.resource).
		Param("limit", strconv.Itoa(maxObjects)).SetHeader("Accept", metadataOnly))
	if err != nil {
		return nil, err
	}

	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}

	out := &found{}

	for i := range a.Items {
		o := &a.Items[i].Metadata
		name := j.kind.name() + " " + o.Name

		switch {
		case !o.isHeld():
		case q.Ending || o.DeletionTimestamp != nil:
			out.waiting = append(out.waiting, strings.Clone(name))
		default:
			out.kept = append(out.kept, strings.Clone(name))
		}
	}

	if a.Metadata.Continue != "" {
		return out, errTooMuch
	}

	return out, nil
}

// listClusterRole are the rules of a ClusterRole.
func (l *Finder) listClusterRole(ctx context.Context, name string) ([]rbacv1.PolicyRule, error) {
	client, err := l.clientOf("")
	if err != nil {
		return nil, err
	}

	raw, err := read(ctx, client.Get().AbsPath("apis", rbacv1.GroupName, "v1", "clusterroles").
		Param("fieldSelector", "metadata.name="+name))
	if err != nil {
		return nil, err
	}

	var roles rbacv1.ClusterRoleList
	if err := json.Unmarshal(raw, &roles); err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}

	for i := range roles.Items {
		return roles.Items[i].Rules, nil
	}

	return nil, nil
}

// read returns an answer that is not too long.
func read(ctx context.Context, request *rest.Request) ([]byte, error) {
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // Only what it is matters.
	}
	defer body.Close() //nolint:errcheck // It was only read.

	raw, err := io.ReadAll(io.LimitReader(body, maxBytes+1))

	switch {
	case err != nil:
		return nil, fmt.Errorf("reading: %w", err)
	case len(raw) > maxBytes:
		return nil, errTooMuch
	default:
		return raw, nil
	}
}

// clientOf is a client that acts as a user; as whoever looks where that is empty.
func (l *Finder) clientOf(user string) (rest.Interface, error) {
	if kept, is := l.clients.Get(user); is {
		return kept.(rest.Interface), nil //nolint:forcetypeassert // Nothing else is in it.
	}

	config := rest.CopyConfig(l.config)
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"

	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user}
	}

	made, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}

	l.clients.Add(user, made)

	return made, nil
}
