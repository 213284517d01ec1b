package main

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Everything in which Ambit's definitions differ from OLM's is in this file. Nothing is tightened: what OLM accepts, Ambit
// accepts.

type schema = apiextensionsv1.JSONSchemaProps

func loosenGroups(d *apiextensionsv1.CustomResourceDefinition) {
	v1 := d.Spec.Versions[slices.IndexFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Storage
	})]
	root := v1.Schema.OpenAPIV3Schema

	// A selector may be written as plain labels, as OLM's own handbook prints it. A schema that lists the fields of a selector
	// prunes those away, and the empty selector that is left means all namespaces. It stays atomic: two writers must not make
	// a mixture of the two forms together.
	edit(root, func(selector *schema) {
		selector.Properties = nil
		keepUnknown(selector)
		selector.Description = "Selector selects the OperatorGroup's target namespaces by their labels. Either matchLabels and " +
			"matchExpressions, or plain labels as a shorthand for matchLabels. A selector that mixes the two forms selects nothing."
	}, "spec", "selector")

	// A condition may have to be written before a group was served for the first time, and lastUpdated says nothing but that time.
	edit(root, optional("lastUpdated"), "status")

	// Old groups are of v1alpha1. All versions have the schema of v1: a write through a version would lose, for the others as well,
	// every field that its schema lacks, such as the conditions and upgradeStrategy.
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{v1}

	for _, name := range []string{"v1alpha2", "v1alpha1"} {
		older := *v1.DeepCopy()
		older.Name, older.Storage = name, false
		d.Spec.Versions = append(d.Spec.Versions, older)
	}
}

func loosenCSVs(d *apiextensionsv1.CustomResourceDefinition) {
	root := d.Spec.Versions[0].Schema.OpenAPIV3Schema

	for _, definitions := range []string{"customresourcedefinitions", "apiservicedefinitions"} {
		for _, whose := range []string{"owned", "required"} {
			// Published ClusterServiceVersions list the kinds of the resources that an API makes use of, and leave out their names, which
			// nobody can know in advance. The list is for people to read.
			edit(root, optional("name"), "spec", definitions, whose, "[]", "resources", "[]")
		}

		edit(root, open, "spec", definitions)
	}

	// Published ClusterServiceVersions have fields that were never declared, or are misspelled. They were applied by clients that
	// did not mind; server-side apply refuses each. The fields below, such as permissions, stay strict: nobody wants a misspelled
	// permission.
	edit(root, keepUnknown, "spec")

	// Conditions that are no phases, such as ClusterWide, have a type and a status, like the conditions of every other kind.
	edit(root, func(condition *schema) {
		condition.Properties["type"] = schema{
			Type: "string", Description: "Type of a condition that is no phase, such as ClusterWide.",
		}
		condition.Properties["status"] = schema{Type: "string", Description: "Status of a condition that has a type."}
	}, "status", "conditions", "[]")
	edit(root, plain, "spec", "install", "spec", "deployments", "[]", "spec")
}

func loosenSubscriptions(d *apiextensionsv1.CustomResourceDefinition) {
	root := d.Spec.Versions[0].Schema.OpenAPIV3Schema

	// Without it the catalog is in the subscription's own namespace.
	edit(root, optional("sourceNamespace"), "spec")
	// As for a group: whoever writes the status may have something else to say first.
	edit(root, optional("lastUpdated"), "status")
	edit(root, plain, "spec", "config")
}

func loosenPlans(d *apiextensionsv1.CustomResourceDefinition) {
	// A plan can fail before it is known which catalogs it is made from.
	edit(d.Spec.Versions[0].Schema.OpenAPIV3Schema, optional("catalogSources"), "status")
}

func loosenCatalogs(d *apiextensionsv1.CustomResourceDefinition) {
	edit(d.Spec.Versions[0].Schema.OpenAPIV3Schema, plain, "spec", "grpcPodConfig")
}

// optional makes a field optional.
func optional(field string) func(*schema) {
	return func(s *schema) {
		i := slices.Index(s.Required, field)
		if i < 0 {
			panic(field + " is not required: OLM has loosened it itself")
		}

		s.Required = slices.Delete(s.Required, i, i+1)
	}
}

// open lets all objects of a schema have undeclared fields.
func open(s *schema) {
	if s.Type == "object" {
		keepUnknown(s)
	}

	for name, field := range s.Properties {
		open(&field)
		s.Properties[name] = field
	}

	if s.Items != nil && s.Items.Schema != nil {
		open(s.Items.Schema)
	}
}

func keepUnknown(s *schema) { s.XPreserveUnknownFields = new(true) }

// plain removes the descriptions of Kubernetes' own fields, such as those of a pod template. They are four fifths of the
// definitions, and `kubectl explain pods` has them.
func plain(s *schema) {
	for name, field := range s.Properties {
		strip(&field)
		s.Properties[name] = field
	}
}

func strip(s *schema) {
	s.Description = ""
	plain(s)

	if s.Items != nil && s.Items.Schema != nil {
		strip(s.Items.Schema)
	}

	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		strip(s.AdditionalProperties.Schema)
	}
}

// edit changes the schema of a field. "[]" stands for the items of a list.
func edit(s *schema, change func(*schema), path ...string) {
	if len(path) == 0 {
		change(s)

		return
	}

	if path[0] == "[]" {
		edit(s.Items.Schema, change, path[1:]...)

		return
	}

	field, found := s.Properties[path[0]]
	if !found {
		panic("there is no field " + path[0])
	}

	edit(&field, change, path[1:]...)
	s.Properties[path[0]] = field
}
