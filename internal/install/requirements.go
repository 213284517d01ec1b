package install

import (
	"cmp"
	"fmt"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
)

// CRD is a CustomResourceDefinition that exists.
type CRD struct {
	UID types.UID
	// Served are the versions that the API server serves; none while it is not established.
	Served []string
	// Conversion is ConversionShape of it, and Converter the Service that converts, as namespace/name; empty where there is none.
	Conversion, Converter string
}

// ReasonNotSupported is the status of what a CSV asks for and Ambit does not install.
const ReasonNotSupported olm.StatusReason = "NotSupported"

const kindOfCRD = "CustomResourceDefinition"

// requirements says what a CSV needs to be there before it is installed, and what of it is missing, in words.
func (w *Snapshot) requirements(csv *olm.ClusterServiceVersion) (status []olm.RequirementStatus, missing []string) {
	add := func(s olm.RequirementStatus, what string) {
		status = append(status, s)

		if what != "" {
			missing = append(missing, what)
		}
	}

	if s, what := w.kubernetes(csv); s != nil {
		add(*s, what)
	}

	for _, crd := range csv.GetAllCRDDescriptions() {
		add(w.crd(crd))
	}

	for _, api := range csv.Spec.NativeAPIs {
		s := olm.RequirementStatus{Group: api.Group, Version: api.Version, Kind: api.Kind, Status: olm.RequirementStatusReasonPresent}

		var what string
		if !w.Serves(api.Group, api.Version, api.Kind) {
			s.Status = olm.RequirementStatusReasonNotPresent
			s.Message = "the API server does not serve it"
			what = fmt.Sprintf("API %s/%s %s", api.Group, api.Version, api.Kind)
		}

		add(s, what)
	}

	for _, api := range csv.GetAllAPIServiceDescriptions() {
		add(w.apiService(csv, api))
	}

	w.cannotBeMade(csv, add)

	slices.SortFunc(status, func(a, b olm.RequirementStatus) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	slices.Sort(missing)

	return status[:min(len(status), maxRequirements)], missing
}

func (w *Snapshot) kubernetes(csv *olm.ClusterServiceVersion) (*olm.RequirementStatus, string) {
	if csv.Spec.MinKubeVersion == "" {
		return nil, ""
	}

	s := &olm.RequirementStatus{
		Group: olm.GroupName, Version: "v1alpha1", Kind: "ClusterServiceVersion", Name: csv.Name,
		Status: olm.RequirementStatusReasonPresent, Message: "minKubeVersion " + csv.Spec.MinKubeVersion + " is met",
	}

	least, err := version.ParseGeneric(csv.Spec.MinKubeVersion)
	server, serverErr := version.ParseGeneric(w.Kubernetes)

	switch {
	case err != nil:
		s.Message = fmt.Sprintf("minKubeVersion %q cannot be read as a version", csv.Spec.MinKubeVersion)
	case serverErr != nil:
		s.Message = fmt.Sprintf("the server's version %q cannot be read", w.Kubernetes)
	case server.LessThan(least):
		s.Message = "minKubeVersion is " + csv.Spec.MinKubeVersion + ", and the server is " + w.Kubernetes
	default:
		return s, ""
	}

	s.Status = olm.RequirementStatusReasonPresentNotSatisfied

	return s, s.Message
}

func (w *Snapshot) crd(d olm.CRDDescription) (olm.RequirementStatus, string) {
	s := olm.RequirementStatus{Group: "apiextensions.k8s.io", Version: "v1", Kind: kindOfCRD, Name: d.Name}
	crd, found := w.CRDs[d.Name]

	switch {
	case !found:
		s.Status, s.Message = olm.RequirementStatusReasonNotPresent, "CRD is not present"
	case !slices.Contains(crd.Served, d.Version):
		s.Status = olm.RequirementStatusReasonPresentNotSatisfied
		s.UUID = string(crd.UID)
		s.Message = "CRD is present, but version " + d.Version + " is not served"
	default:
		s.Status, s.UUID = olm.RequirementStatusReasonPresent, string(crd.UID)
		s.Message = "CRD is present and Established condition is true"

		return s, ""
	}

	return s, fmt.Sprintf("CustomResourceDefinition %s (%s)", d.Name, d.Version)
}

// apiService: an API of another server is taken as it is found; one that the operator itself would have to serve is not set
// up by Ambit.
func (w *Snapshot) apiService(csv *olm.ClusterServiceVersion, d olm.APIServiceDescription) (olm.RequirementStatus, string) {
	s := olm.RequirementStatus{
		Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService", Name: d.GetName(),
		Status: olm.RequirementStatusReasonPresent,
	}

	switch {
	case w.Serves(d.Group, d.Version, d.Kind):
		return s, ""
	case csv.OwnsAPIService(d.GetName()):
		s.Status = ReasonNotSupported
		s.Message = "Ambit sets up no APIServices, and waits until the API server serves it"
	default:
		s.Status, s.Message = olm.RequirementStatusReasonNotPresent, "the API server does not serve it"
	}

	return s, fmt.Sprintf("APIService %s (%s)", d.GetName(), s.Message)
}
