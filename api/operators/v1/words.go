package v1

import olmv1 "github.com/operator-framework/api/pkg/operators/v1"

// OperatorGroupKind is the kind of an OperatorGroup.
const OperatorGroupKind = olmv1.OperatorGroupKind

// Annotations of a ClusterServiceVersion that is a member of a group, carried on to the pod templates of its deployments.
const (
	// GroupAnnotation names the group.
	GroupAnnotation = olmv1.OperatorGroupAnnotationKey
	// GroupNamespaceAnnotation names the namespace of the group.
	GroupNamespaceAnnotation = olmv1.OperatorGroupNamespaceAnnotationKey
	// TargetsAnnotation lists the namespaces that the operator watches, separated by commas; empty means all.
	TargetsAnnotation = olmv1.OperatorGroupTargetsAnnotationKey
)

// ProvidedAPIsAnnotation lists, on a group, the APIs that its members provide, each as Kind.version.group, separated by commas.
const ProvidedAPIsAnnotation = olmv1.OperatorGroupProvidedAPIsAnnotationKey

// NamespaceLabelPrefix begins the label that a target namespace of a group bears; the group's uid follows.
const NamespaceLabelPrefix = olmv1.OperatorGroupLabelPrefix

// Conditions of a group, each with the reason for which it is true.
const (
	// MultipleOperatorGroup says that the namespace holds more than one group, so that no operator is installed in it.
	MultipleOperatorGroup       = olmv1.MutlipleOperatorGroupCondition
	MultipleOperatorGroupsFound = olmv1.MultipleOperatorGroupsReason

	// OperatorGroupServiceAccount says that the service account which the group names does not exist.
	OperatorGroupServiceAccount = olmv1.OperatorGroupServiceAccountCondition
	ServiceAccountNotFound      = olmv1.OperatorGroupServiceAccountReason
)
