package install

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/printable"
)

const (
	// maxPlaces and maxWords bound the words about what is missing.
	maxPlaces = 4
	maxWords  = 200
	// maxMissing and maxRequirements bound what is said of what a CSV needs: it can name thousands of APIs, and its status has to
	// fit into the object beside them.
	maxMissing      = 8
	maxRequirements = 500
)

// Refusal says in a few words what an identity lacks for a CSV, and how to see all of it.
func Refusal(identity string, csv *olm.ClusterServiceVersion, lacks []authority.Place) string {
	return fmt.Sprintf("%s may not %s; %s", identity, LacksInWords(lacks), seeAll(csv))
}

func seeAll(csv *olm.ClusterServiceVersion) string {
	return fmt.Sprintf("to see all of it, with what grants it: ambit preflight csv/%s -n %s", csv.Name, csv.Namespace)
}

// LacksInWords says in a few words what is missing.
func LacksInWords(lacks []authority.Place) string {
	words := make([]string, 0, len(lacks))

	for _, place := range lacks {
		where := " in the cluster"
		if place.Namespace != "" {
			where = " in namespace " + place.Namespace
		}

		words = append(words, authority.Words(place.Rules, maxWords)+where)
	}

	return Shorten(words)
}

// Shorten names the first of several things and counts the others.
func Shorten(words []string) string { return printable.First(words, "; ", maxPlaces) }

// first names the first of what is missing, and counts the rest.
func first(missing []string) string { return printable.First(missing, ", ", maxMissing) }

// FailedRole says that a role or a binding could not be written, as OLM says it.
func FailedRole(kind, name, why string) string {
	return fmt.Sprintf("error creating %s %s: %s", strings.ToLower(kind), name, why)
}

// Undeleted says that something could not be deleted. why is the API server's word about it.
func Undeleted(kind, name, why string) string {
	return fmt.Sprintf("error deleting %s %s: %s", strings.ToLower(kind), name, why)
}

// Left says in a few words what could not be deleted for a CSV, and how to see what is missing; empty when nothing is left.
func Left(csv *olm.ClusterServiceVersion, undeleted []string) string {
	if len(undeleted) == 0 {
		return ""
	}

	return Shorten(undeleted) + "; " + seeAll(csv)
}

// Failed says what could not be written. message is the API server's word about it.
func Failed(err error, message string) string {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		if d := status.Status().Details; d != nil && d.Name != "" {
			return fmt.Sprintf("error creating %s %s: %s", strings.TrimSuffix(d.Kind, "s"), d.Name, message)
		}
	}

	return err.Error()
}

// UsesAccount says whether a CSV's operator needs a service account.
func UsesAccount(csv *olm.ClusterServiceVersion, name string) bool {
	return slices.Contains(accounts(csv), name)
}

// AccountRef refers to a service account as status.serviceAccountRef of a group does.
func AccountRef(namespace, name string, live facts.Account) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "ServiceAccount", Namespace: namespace, Name: name, UID: types.UID(live.UID),
	}
}
