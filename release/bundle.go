package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"
)

const bundleLayout = "oci/bundle"

// bundleProfile is what OLM installs. The others come with admission policies, which a bundle cannot hold, and without those
// whoever may write a scope could use all of Ambit's rights. docs/decisions/0018 says more.
const bundleProfile = "namespaced"

// object is a resource as kustomize writes it.
type object map[string]any

func (o object) kind() string { return text(o["kind"]) }

func (o object) name() string { return text(at(o, "metadata", "name")) }

func text(value any) string {
	s, _ := value.(string)

	return s
}

// at follows fields, as far as there are any.
func at(value any, path ...string) any {
	for _, field := range path {
		switch fields := value.(type) {
		case object:
			value = fields[field]
		case map[string]any:
			value = fields[field]
		default:
			return nil
		}
	}

	return value
}

// writeBundle writes Ambit as an operator for OLM, as a file and as an image, and returns the digest of that.
func writeBundle(ctx context.Context, r *Release, image *builtImage) (string, error) {
	manifests, err := manifestsOf(ctx, r, image, bundleProfile, besideOLM)
	if err != nil {
		return "", err
	}

	var objects []object

	for document := range strings.SplitSeq(string(manifests), "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			return "", fmt.Errorf("reading the profile %s: %w", bundleProfile, err)
		}

		objects = append(objects, o)
	}

	files, err := bundleFiles(r, image, objects)
	if err != nil {
		return "", err
	}

	if _, err := r.pack("ambit-bundle", files); err != nil {
		return "", err
	}

	labels := r.labels("ambit-bundle", "Ambit for the Operator Lifecycle Manager")
	maps.Copy(labels, bundleAnnotations())

	// It is never run, so its platform is one of many: OLM unpacks it on any.
	made, err := imageOf(r, Platform{linux, "amd64"}, v1.Config{Labels: labels}, labels, files...)
	if err != nil {
		return "", fmt.Errorf("making the image of the bundle: %w", err)
	}

	return writeArtifact(r, bundleLayout, made, r.Registry+"/ambit-bundle:"+r.Version)
}

func bundleAnnotations() map[string]string {
	const prefix = "operators.operatorframework.io.bundle."

	return map[string]string{
		prefix + "mediatype.v1":       "registry+v1",
		prefix + "manifests.v1":       "manifests/",
		prefix + "metadata.v1":        "metadata/",
		prefix + "package.v1":         ambit,
		prefix + "channels.v1":        "alpha",
		prefix + "channel.default.v1": "alpha",
	}
}

// bundleFiles are the ClusterServiceVersion, which has the Deployment and its rights in it, and the objects that OLM makes
// beside it.
func bundleFiles(r *Release, image *builtImage, objects []object) ([]file, error) {
	parts := map[string]any{
		"metadata/annotations.yaml": map[string]any{"annotations": bundleAnnotations()},
	}
	csv := newCSV(r, image)

	var rules []any

	for _, o := range objects {
		name := "manifests/" + strings.ToLower(o.kind()) + "-" + o.name() + ".yaml"

		switch o.kind() {
		case "CustomResourceDefinition":
			csv.owns(o)

			parts[name] = o
		case "Deployment":
			csv.deployment = map[string]any{"name": o.name(), "label": at(o, "metadata", "labels"), "spec": o["spec"]}
		case "Role":
			// OLM binds them in the namespace that it installs into, as config/namespaced does.
			own, _ := o["rules"].([]any)
			rules = append(rules, own...)
		case "ClusterRole", "Secret":
			parts[name] = withoutNamespace(o)
		case "Namespace", "ServiceAccount", "RoleBinding":
			// OLM's own to make.
		default:
			return nil, fmt.Errorf("a bundle has no place for %s %s", o.kind(), o.name())
		}
	}

	parts["manifests/ambit.clusterserviceversion.yaml"] = csv.object(rules)

	var files []file

	for _, name := range slices.Sorted(maps.Keys(parts)) {
		content, err := yaml.Marshal(parts[name])
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", name, err)
		}

		files = append(files, file{name, 0o644, content})
	}

	return files, nil
}

func withoutNamespace(o object) object {
	metadata, _ := o["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	delete(metadata, "namespace")

	o = maps.Clone(o)
	o["metadata"] = metadata

	return o
}

// csv is a ClusterServiceVersion that is being put together.
type csv struct {
	release    *Release
	image      string
	owned      []any
	deployment map[string]any
}

func newCSV(r *Release, image *builtImage) *csv {
	return &csv{release: r, image: r.image() + "@" + image.digest.String()}
}

func (c *csv) owns(definition object) {
	versions, _ := at(definition, "spec", "versions").([]any)
	for _, v := range versions {
		about := text(at(v, "schema", "openAPIV3Schema", "description"))
		about, _, _ = strings.Cut(about, "\n")

		c.owned = append(c.owned, map[string]any{
			"name":        definition.name(),
			"kind":        at(definition, "spec", "names", "kind"),
			"displayName": at(definition, "spec", "names", "kind"),
			version:       at(v, "name"),
			"description": about,
		})
	}
}

func (c *csv) object(rules []any) object {
	modes := make([]any, 0, 4)
	for _, mode := range []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
		modes = append(modes, map[string]any{"type": mode, "supported": mode == "OwnNamespace"})
	}

	return object{
		"apiVersion": "operators.coreos.com/v1alpha1",
		"kind":       "ClusterServiceVersion",
		"metadata": map[string]any{
			"name": "ambit." + c.release.Version,
			// OLM wants one, and does not look at it.
			"namespace": "placeholder",
			"annotations": map[string]any{
				"capabilities":   "Seamless Upgrades",
				"categories":     "Security",
				"containerImage": c.image,
				"createdAt":      c.release.Created.Format(time.RFC3339),
				"description":    description,
				"olm.skipRange":  "<" + c.release.number(),
				"operatorframework.io/suggested-namespace": "ambit-system",
				"repository": homepage,
				"support":    vendor,
			},
		},
		"spec": map[string]any{
			"displayName":    "Ambit",
			version:          c.release.number(),
			"minKubeVersion": "1.30.0",
			"maturity":       "alpha",
			"description": description + ".\n\nThis is the profile `namespaced`: Ambit works beside the operators of one namespace, " +
				"with no right in another until its owner consents.",
			"keywords":                  []any{"rbac", "scope", "operators", "multi-tenancy"},
			"provider":                  map[string]any{"name": vendor, "url": homepage},
			"links":                     []any{map[string]any{"name": "Ambit", "url": homepage}},
			"installModes":              modes,
			"relatedImages":             []any{map[string]any{"name": "manager", "image": c.image}},
			"customresourcedefinitions": map[string]any{"owned": c.owned},
			"install": map[string]any{
				"strategy": "deployment",
				"spec": map[string]any{
					"deployments": []any{c.deployment},
					"permissions": []any{map[string]any{"serviceAccountName": ambit, "rules": rules}},
				},
			},
		},
	}
}
