package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	spdxjson "github.com/spdx/tools-golang/json"
	"sigs.k8s.io/yaml"
)

// thisProgram stands for Ambit, where it takes a program that Go linked and no matter which.
func thisProgram(context.Context, *Release, Platform) ([]byte, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}

	return os.ReadFile(path)
}

func releaseIt(t *testing.T, version string) *Release {
	t.Helper()

	r := releaseOf(t, "..", version, "linux/amd64,windows/amd64")
	r.Kustomize, _ = filepath.Abs("../bin/tools/kustomize")

	var said bytes.Buffer
	if err := releaseAll(t.Context(), r, thisProgram, &said); err != nil {
		t.Fatal(err)
	}

	for _, line := range []string{"building ambit for linux/amd64\n", "building ambit for windows/amd64\n", "writing manifests"} {
		if strings.Count(said.String(), line) != 1 {
			t.Errorf("whoever waits is not told %q once:\n%s", line, &said)
		}
	}

	return r
}

func TestReleaseIsTheSameTwiceAndSaysWhatItIs(t *testing.T) {
	r := releaseIt(t, "v0.2.0-rc.1")
	again := releaseIt(t, "v0.2.0-rc.1")

	names := filesOf(t, r)
	if other := filesOf(t, again); !slices.Equal(names, other) {
		t.Fatalf("two releases of one commit have the files %q and %q", names, other)
	}

	for _, name := range names {
		if !bytes.Equal(read(t, r, name), read(t, again, name)) {
			t.Errorf("two releases of one commit differ in %s", name)
		}
	}

	checkSums(t, r, names)
	checkInstallers(t, r)
	checkKrew(t, r)
	checkSBOM(t, r)
}

func filesOf(t *testing.T, r *Release) []string {
	t.Helper()

	var names []string

	err := fs.WalkDir(os.DirFS(r.Dist), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return names
}

func read(t *testing.T, r *Release, name string) []byte {
	t.Helper()

	content, err := os.ReadFile(r.path(name))
	if err != nil {
		t.Fatal(err)
	}

	return content
}

// checkSums looks for each file that people download in the checksums, and for each digest in the provenance.
func checkSums(t *testing.T, r *Release, names []string) {
	t.Helper()

	sums := string(read(t, r, "checksums.txt"))
	statement := string(read(t, r, "ambit_0.2.0-rc.1.intoto.json"))

	for _, name := range names {
		if strings.HasPrefix(name, "oci/") || name == "ambit_0.2.0-rc.1.intoto.json" {
			continue
		}

		digest := sum(read(t, r, name))
		if name != "checksums.txt" && !strings.Contains(sums, digest+"  "+name+"\n") {
			t.Errorf("the checksums do not have %s", name)
		}

		if !strings.Contains(statement, `"sha256": "`+digest+`"`) {
			t.Errorf("the provenance does not speak of %s", name)
		}
	}

	for line := range strings.Lines(string(read(t, r, "digests.txt"))) {
		_, digest, _ := strings.Cut(strings.TrimSpace(line), "@sha256:")
		if !strings.Contains(statement, `"sha256": "`+digest+`"`) {
			t.Errorf("the provenance does not speak of %s", line)
		}
	}

	if commit := strings.TrimSuffix(r.Commit, "-dirty"); !strings.Contains(statement, commit) {
		t.Errorf("the provenance does not name the commit %s", commit)
	}
}

// checkInstallers looks for the digest of the image in everything that installs it.
func checkInstallers(t *testing.T, r *Release) {
	t.Helper()

	image, _, _ := strings.Cut(string(read(t, r, "digests.txt")), "\n")
	_, digest, _ := strings.Cut(image, "@")

	for _, profile := range profiles {
		for _, suffix := range []string{"", "-beside-olm"} {
			text := string(read(t, r, "install-"+profile+suffix+".yaml"))
			if want := "image: registry.example/ambit/ambit:v0.2.0-rc.1@" + digest; !strings.Contains(text, want) {
				t.Errorf("the profile %s%s does not install %s", profile, suffix, want)
			}

			if has := strings.Contains(text, "name: operatorgroups.operators.coreos.com"); has == (suffix != "") {
				t.Errorf("the profile %s%s has the definitions of OLM's kinds: %v", profile, suffix, has)
			}
		}
	}

	files, err := chartFiles("../charts/ambit", map[string]string{"digest": digest, "version": "0.2.0-rc.1"})
	if err != nil {
		t.Fatal(err)
	}

	at := slices.IndexFunc(files, func(f file) bool { return f.name == "ambit/values.yaml" })
	if !strings.Contains(string(files[at].content), `digest: "`+digest+`"`) {
		t.Errorf("the chart does not install %s:\n%s", digest, files[at].content)
	}

	if !strings.Contains(string(files[0].content), `version: "0.2.0-rc.1"`) {
		t.Errorf("the chart begins with %s:\n%s", files[0].name, files[0].content)
	}
}

func checkKrew(t *testing.T, r *Release) {
	t.Helper()

	var manifest struct {
		Spec struct {
			Version   string
			Platforms []struct{ URI, SHA256, Bin string }
		}
	}

	if err := yaml.Unmarshal(read(t, r, "krew-ambit.yaml"), &manifest); err != nil {
		t.Fatal(err)
	}

	if len(manifest.Spec.Platforms) != 2 || manifest.Spec.Version != r.Version {
		t.Errorf("krew is told %+v", manifest)
	}

	for _, p := range manifest.Spec.Platforms {
		if sum(read(t, r, filepath.Base(p.URI))) != p.SHA256 || !strings.HasPrefix(p.Bin, "kubectl-ambit") {
			t.Errorf("krew is told of %+v", p)
		}
	}
}

func checkSBOM(t *testing.T, r *Release) {
	t.Helper()

	doc, err := spdxjson.Read(bytes.NewReader(read(t, r, "ambit_0.2.0-rc.1.spdx.json")))
	if err != nil {
		t.Fatal("the SBOM cannot be read:", err)
	}

	modules := map[string]string{}
	for _, p := range doc.Packages {
		modules[p.PackageName] = p.PackageVersion
	}

	for _, name := range []string{"stdlib", "github.com/google/go-containerregistry", "ambit for windows/amd64", r.image()} {
		if modules[name] == "" {
			t.Errorf("the SBOM does not have %s", name)
		}
	}
}

func TestBundleHasNothingOfTheCluster(t *testing.T) {
	r := releaseOf(t, "..", "v0.2.0", "")
	objects := []object{{"kind": "ValidatingAdmissionPolicy", "metadata": map[string]any{"name": "guard"}}}

	if _, err := bundleFiles(r, &builtImage{}, objects); err == nil {
		t.Error("a policy got lost on the way into the bundle")
	}
}

func TestReleaseNotes(t *testing.T) {
	root := t.TempDir()
	text := "# Changelog\n\n## [Unreleased]\n\n* soon\n\n## [0.2.0] - 2026-12-01\n\n" +
		"### Added\n\n* [this](docs/x.md#y), as [that](https://x.y)\n\n## [0.1.0]\n\n* that\n"

	if err := os.WriteFile(filepath.Join(root, "CHANGELOG.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	for version, want := range map[string]string{
		// A page of a release is in no folder in which a link to a file leads there.
		"v0.2.0": "# Ambit v0.2.0\n\n### Added\n\n* [this](https://github.com/ambit-k8s/ambit/blob/v0.2.0/docs/x.md#y), " +
			"as [that](https://x.y)\n",
		"v0.3.0-rc.1": "# Ambit v0.3.0-rc.1\n\n* soon\n",
		"v0.3.0":      "", // Nobody said what is new.
	} {
		got, err := releaseNotes(&Release{Root: root, Version: version})
		if string(got) != want || (err != nil) != (want == "") {
			t.Errorf("the notes of %s are %q, %v", version, got, err)
		}

		if want == "" && !strings.Contains(fmt.Sprint(err), `put it below "## [Unreleased]"`) {
			t.Errorf("%v does not say what to do", err)
		}
	}
}

func TestNotesAreNoLongerThanAReleasePage(t *testing.T) {
	// Characters count, and not bytes: an é is one of two bytes.
	room := releasePage - len("# Ambit v0.2.0\n\n") - len("\n")

	for length, reason := range map[int]string{
		room:     "",
		room + 1: "125001 characters",
	} {
		root := t.TempDir()
		text := "# Changelog\n\n## [0.2.0] - 2026-12-01\n\n" + strings.Repeat("é", length) + "\n\n## [0.1.0]\n\n* that\n"

		if err := os.WriteFile(filepath.Join(root, "CHANGELOG.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}

		_, err := releaseNotes(&Release{Root: root, Version: "v0.2.0"})

		switch {
		case reason == "" && err != nil:
			t.Errorf("notes of %d characters are refused, which a release page takes: %v", length, err)
		case reason != "" && (err == nil || !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), "CHANGELOG.md")):
			t.Errorf("%v does not say how long the notes are, and what to shorten", err)
		}
	}
}

func TestFolderOfSomebodyElseIsLeftAlone(t *testing.T) {
	r := &Release{Dist: t.TempDir()}
	if err := r.write("thesis.txt", []byte("years")); err != nil {
		t.Fatal(err)
	}

	if err := r.empty(); err == nil {
		t.Error("a folder was emptied that no release wrote")
	}

	if string(read(t, r, "thesis.txt")) != "years" {
		t.Error("somebody's file is gone")
	}
}

func TestProvenanceIsWhatSLSAAsksFor(t *testing.T) {
	r := releaseOf(t, "..", "v0.2.0", "")
	if err := writeProvenance(t.Context(), r, map[string]string{"a": strings.Repeat("0", 64)}, nil); err != nil {
		t.Fatal(err)
	}

	var statement struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
		Predicate     struct {
			BuildDefinition struct {
				ExternalParameters map[string]string `json:"externalParameters"`
			} `json:"buildDefinition"`
		} `json:"predicate"`
	}

	if err := json.Unmarshal(read(t, r, "ambit_0.2.0.intoto.json"), &statement); err != nil {
		t.Fatal(err)
	}

	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "https://slsa.dev/provenance/v1" ||
		statement.Predicate.BuildDefinition.ExternalParameters["version"] != "v0.2.0" {
		t.Errorf("the provenance is %+v", statement)
	}
}
