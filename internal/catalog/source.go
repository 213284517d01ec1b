package catalog

import (
	"fmt"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ambit-k8s/ambit/internal/printable"
)

// The states of a connection, in the words of gRPC, for which scripts wait.
const (
	stateReady   = "READY"
	stateFailure = "TRANSIENT_FAILURE"
)

// Source is a CatalogSource and what is known of its ConfigMap.
type Source struct {
	Namespace, Name string
	UID             types.UID
	Generation      int64
	Type            olmv1alpha1.SourceType
	// ConfigMap is the name in its spec.
	ConfigMap string
	// Content is nil when the ConfigMap is not there. Seen says from which ConfigMap it was read.
	Content *Catalog
	Seen    olmv1alpha1.ConfigMapResourceReference
	// Excess says that the namespace has more catalogs than are served.
	Excess bool
	// LeftOut says that nothing of the spec is known, because the catalogs of the namespace take too much memory.
	LeftOut bool
}

// IsFromConfigMap says whether the source is served, from a ConfigMap.
func (s *Source) IsFromConfigMap() bool {
	isOfType := s.Type == olmv1alpha1.SourceTypeConfigmap || s.Type == olmv1alpha1.SourceTypeInternal

	return isOfType && len(validation.IsDNS1123Subdomain(s.ConfigMap)) == 0 && !s.Excess && !s.LeftOut
}

// Problem says why a source cannot be used; empty when it can.
func (s *Source) Problem() (reason, words string) {
	switch {
	case s.LeftOut:
		return ReasonLimit, fmt.Sprintf("the CatalogSources of namespace %s take more memory than there is for them, and this is "+
			"one of the largest; delete what is of no use", s.Namespace)
	case s.Type == olmv1alpha1.SourceTypeGrpc:
		return ReasonImage, imageWords
	case s.Type != olmv1alpha1.SourceTypeConfigmap && s.Type != olmv1alpha1.SourceTypeInternal:
		return ReasonInvalid, fmt.Sprintf("spec.sourceType is %q, not configmap or internal", printable.Cut(string(s.Type), MaxName))
	case s.ConfigMap == "":
		return ReasonInvalid, "spec.configMap names no ConfigMap"
	case s.Excess:
		return ReasonTooManyCatalogs, fmt.Sprintf("namespace %s has more catalogs in ConfigMaps than Ambit serves there: "+
			"the oldest %d are served", s.Namespace, MaxSources)
	case !s.IsFromConfigMap():
		return ReasonInvalid, fmt.Sprintf("spec.configMap is %q, which is no name of a ConfigMap", printable.Cut(s.ConfigMap, MaxName))
	case s.Content == nil:
		return ReasonNotFound, fmt.Sprintf("ConfigMap %s is not in namespace %s", s.ConfigMap, s.Namespace)
	case len(s.Content.packages) == 0:
		words = fmt.Sprintf("ConfigMap %s holds no package under the key %s", s.ConfigMap, KeyPackages)
		if len(s.Content.Problems) > 0 {
			words = fmt.Sprintf("ConfigMap %s holds no package that can be used: %s", s.ConfigMap, shorten(s.Content.Problems))
		}

		return string(olmv1alpha1.CatalogSourceConfigMapError), words
	default:
		return "", ""
	}
}

// Status is the status that a CatalogSource should have.
func (s *Source) Status(was *olmv1alpha1.CatalogSourceStatus, now metav1.Time) olmv1alpha1.CatalogSourceStatus {
	out := *was.DeepCopy()
	c := metav1.Condition{Type: ConditionReady, ObservedGeneration: s.Generation, LastTransitionTime: now}
	state := stateFailure

	reason, words := s.Problem()
	words = printable.Text(words)
	if reason != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reason, words
		out.Reason, out.Message = olmv1alpha1.ConditionReason(reason), words
		out.ConfigMapResource = nil
	} else {
		state = stateReady
		c.Status, c.Reason = metav1.ConditionTrue, ReasonRead
		c.Message = printable.Number(len(s.Content.packages), "package", "packages") + ", " +
			printable.Number(s.Content.Versions(), "version", "versions")
		out.Reason, out.Message = "", ""

		if len(s.Content.Problems) > 0 {
			c.Reason = ReasonSubsetRead
			c.Message += "; not usable: " + printable.Text(shorten(s.Content.Problems))
			out.Message = c.Message
		}

		out.ConfigMapResource = s.seen(was.ConfigMapResource, now)
	}

	meta.SetStatusCondition(&out.Conditions, c)

	if out.GRPCConnectionState == nil || out.GRPCConnectionState.LastObservedState != state {
		out.GRPCConnectionState = &olmv1alpha1.GRPCConnectionState{LastObservedState: state, LastConnectTime: now}
	}

	return out
}

func (s *Source) seen(was *olmv1alpha1.ConfigMapResourceReference, now metav1.Time) *olmv1alpha1.ConfigMapResourceReference {
	seen := s.Seen
	seen.LastUpdateTime = now

	if was != nil && was.Name == seen.Name && was.UID == seen.UID && was.ResourceVersion == seen.ResourceVersion {
		seen.LastUpdateTime = was.LastUpdateTime
	}

	return &seen
}
