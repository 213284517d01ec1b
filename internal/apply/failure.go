package apply

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
)

// ErrNameClash is returned when an object stands in the way that Ambit did not make.
var ErrNameClash = errors.New("an object with this name exists that Ambit did not make; rename or delete it")

// ErrFieldClash is returned when a field to inject belongs to somebody else.
var ErrFieldClash = errors.New("a field is somebody else's")

// ErrBudget is returned when a PodDisruptionBudget does not let a pod go now.
var ErrBudget = errors.New("a PodDisruptionBudget does not allow it now; it is tried again")

// Class says what a failure means for what happens next.
type Class int

// The classes. Refused will stay refused until somebody changes something. Gone means that the namespace is gone. Conflict
// means that the object changed meanwhile; planning again settles it. Transient is everything that may pass by itself. Dangling
// means that a binding refers to a role that does not exist, where Ambit may not look for it itself.
const (
	Transient Class = iota
	Refused
	Gone
	Conflict
	Dangling
)

// Classify says of which class an error of the API server is.
func Classify(err error) Class {
	if _, missing := errors.AsType[*MissingError](err); missing {
		return Refused
	}

	switch {
	case errors.Is(err, ErrNameClash), errors.Is(err, ErrNoIdentity), errors.Is(err, ErrBudget), errors.Is(err, ErrFieldClash):
		return Refused
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsNotFound(err) && isAbout(err, "namespaces"):
		return Gone
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		// An API server that serves a new kind lists it among its kinds seconds later.
		return Conflict
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err),
		apierrors.IsRequestEntityTooLargeError(err), apierrors.IsMethodNotSupported(err):
		return Refused
	default:
		return Transient
	}
}

// lacksRights says whether an error may mean that somebody may not do what they tried.
func lacksRights(err error) bool { return apierrors.IsForbidden(err) && !isOfQuota(err) }

// IsDenied says whether the API server's authorizer denied a request. It says so in these words (forbiddenMessage in
// pkg/endpoints/handlers/responsewriters of k8s.io/apiserver), and quotas and policies, which refuse with the same code,
// do not.
func IsDenied(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), `" cannot `)
}

// isOfQuota says whether a quota is exhausted, which is found out only where somebody may do what they tried. The error is of the
// same kind (plugin/resourcequota in k8s.io/apiserver).
func isOfQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: ")
}

// isAbout says whether an error names a resource, which need not be the one that was written.
func isAbout(err error, resource string) bool {
	details := detailsOf(err)

	return details != nil && details.Kind == resource
}

// isDangling says whether the write of a binding failed since the role that it refers to does not exist. The API server answers
// that the binding was not found, by the name of the role.
func isDangling(c *plan.Change, err error) bool {
	if c.Key.Kind != projected.RoleBinding || c.Copy == nil || !apierrors.IsNotFound(err) || isAbout(err, "namespaces") {
		return false
	}

	details := detailsOf(err)

	return details != nil && details.Name == c.RoleRef.Name && details.Name != c.Key.Name
}

// isOf says whether an error means that the object of a change is not there, and not the role that a binding refers to.
func isOf(c *plan.Change, err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}

	details := detailsOf(err)

	return details == nil || details.Name == "" || details.Name == c.Key.Name
}

func detailsOf(err error) *metav1.StatusDetails {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}

	return status.Status().Details
}

// unmadeError is why an object was not made. The object has another name at every try.
type unmadeError struct {
	error

	name, shown string
}

// Unwrap is for classes and reasons, which do not depend on the name.
func (e *unmadeError) Unwrap() error { return e.error }

// unmade is why a change was not made, if it should have made something under a name that nobody knows beforehand.
func unmade(c *plan.Change, err error) error {
	if err == nil || c.ShownName() == c.Key.Name {
		return err
	}

	return &unmadeError{err, c.Key.Name, c.ShownName()}
}

// Message says in the API server's words why it refused, without the parts that change from one try to the next.
func Message(err error) string {
	if e, ok := errors.AsType[*unmadeError](err); ok {
		return strings.ReplaceAll(Message(e.error), e.name, e.shown)
	}

	if missing, ok := errors.AsType[*MissingError](err); ok {
		return missing.Error()
	}

	if nobody, ok := errors.AsType[*IdentityError](err); ok {
		return nobody.Why
	}

	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err.Error()
	}

	s := status.Status()
	if s.Reason == metav1.StatusReasonConflict && !errors.Is(err, ErrFieldClash) {
		return "it changed while Ambit was writing it"
	}

	// What to do comes first here: it has to fit where the API server's words are cut.
	if strings.Contains(s.Message, `cannot create resource "selfsubjectrulesreviews"`) {
		return "nothing is made as an account that may not ask what it may do: bind ClusterRole system:basic-user to the group " +
			"system:authenticated; " + strings.TrimSpace(s.Message)
	}

	return strings.TrimSpace(s.Message) + mayNotActAsAccounts(&s)
}

// mayNotActAsAccounts adds what to do where Ambit may not act as the account. Before Kubernetes 1.36 an API server knows only the
// right that the profile delegated does not have, and names it in these words; newer ones name the limited right
// (impersonation/mode.go in k8s.io/apiserver).
func mayNotActAsAccounts(s *metav1.Status) string {
	switch {
	case s.Reason != metav1.StatusReasonForbidden:
		return ""
	case strings.Contains(s.Message, `cannot impersonate resource "serviceaccounts"`):
		return "; this API server cannot limit impersonation, which takes Kubernetes 1.36: upgrade it, or install Ambit with " +
			"legacyImpersonation (config/components/legacy-impersonation)"
	case strings.Contains(s.Message, "cannot "+ActOn) && strings.Contains(s.Message, `resource "secrets"`):
		return "; " + CertificatesAdvice
	}

	return ""
}

const (
	// ActOn begins the verbs of the rights to do something as a service account, which end with what is done.
	ActOn = "impersonate-on:serviceaccount:"
	// CertificatesAdvice says what to do where Ambit may not write Secrets as service accounts.
	CertificatesAdvice = "to write the certificates of webhooks as other accounts, Ambit has to be installed with " +
		"webhookCertificates (config/components/webhook-certificates)"
)
