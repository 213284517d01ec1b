package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"fmt"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// writeSBOM writes what is in the image and in each program: the modules that Go says it linked, which is what it wrote into
// the programs themselves.
func writeSBOM(r *Release, image *builtImage, binaries map[Platform][]byte) error {
	doc := &spdx.Document{
		SPDXVersion:    spdx.Version,
		DataLicense:    spdx.DataLicense,
		SPDXIdentifier: "DOCUMENT",
		DocumentName:   "ambit-" + r.Version,
		// Unique for what it describes, and the same whenever that is built.
		DocumentNamespace: homepage + "/spdx/" + r.Version + "/" + image.digest.Hex,
		CreationInfo: &spdx.CreationInfo{
			Created:  r.Created.Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "ambit-release"}, {CreatorType: "Organization", Creator: vendor}},
		},
	}

	container := ours("image", r.image(), r.Version)
	container.PrimaryPackagePurpose = "CONTAINER"
	container.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: image.digest.Hex}}
	container.PackageExternalReferences = purl(fmt.Sprintf("pkg:oci/ambit@%s?repository_url=%s", image.digest, r.image()))
	doc.Packages = append(doc.Packages, container)
	relate(doc, "DOCUMENT", "DESCRIBES", container.PackageSPDXIdentifier)

	modules := map[string]*spdx.Package{}

	byName := func(a, b Platform) int { return cmp.Compare(a.String(), b.String()) }
	for _, p := range slices.SortedFunc(maps.Keys(binaries), byName) {
		program := ours("program-"+p.OS+"-"+p.Arch, "ambit for "+p.String(), r.Version)
		program.PrimaryPackagePurpose = "APPLICATION"
		program.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: sum(binaries[p])}}
		program.PackageExternalReferences = purl("pkg:golang/github.com/ambit-k8s/ambit@" + r.Version)
		doc.Packages = append(doc.Packages, program)
		relate(doc, "DOCUMENT", "DESCRIBES", program.PackageSPDXIdentifier)

		if _, inside := image.platforms[p]; inside {
			relate(doc, container.PackageSPDXIdentifier, "CONTAINS", program.PackageSPDXIdentifier)
		}

		if err := addModules(doc, program, binaries[p], modules); err != nil {
			return fmt.Errorf("reading the modules of the program for %s: %w", p, err)
		}
	}

	var out bytes.Buffer
	if err := spdxjson.Write(doc, &out, spdxjson.Indent("  "), spdxjson.EscapeHTML(false)); err != nil {
		return fmt.Errorf("writing the SBOM: %w", err)
	}

	return r.write("ambit_"+r.number()+".spdx.json", out.Bytes())
}

// addModules adds what Go linked into a program, each module once for all programs.
func addModules(doc *spdx.Document, program *spdx.Package, binary []byte, known map[string]*spdx.Package) error {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return fmt.Errorf("reading the notes of the linker: %w", err)
	}

	linked := []*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}

		linked = append(linked, m)
	}

	for _, m := range linked {
		key := m.Path + "@" + m.Version

		pkg, there := known[key]
		if !there {
			pkg = module(m)
			known[key] = pkg
			doc.Packages = append(doc.Packages, pkg)
		}

		relate(doc, program.PackageSPDXIdentifier, "DEPENDS_ON", pkg.PackageSPDXIdentifier)
	}

	return nil
}

func module(m *debug.Module) *spdx.Package {
	pkg := newPackage("module-"+m.Path+"-"+m.Version, m.Path, m.Version)
	pkg.PrimaryPackagePurpose = "LIBRARY"
	pkg.PackageLicenseDeclared = "NOASSERTION"
	pkg.PackageExternalReferences = purl("pkg:golang/" + m.Path + "@" + m.Version)

	if m.Path != "stdlib" {
		pkg.PackageDownloadLocation = "https://" + m.Path
		pkg.PackageSourceInfo = "in go.sum as " + m.Sum
	}

	return pkg
}

func ours(id, name, version string) *spdx.Package {
	pkg := newPackage(id, name, version)
	pkg.PackageSupplier = &common.Supplier{SupplierType: "Organization", Supplier: vendor}
	pkg.PackageLicenseDeclared = license
	pkg.PackageHomePage = homepage

	return pkg
}

func newPackage(id, name, version string) *spdx.Package {
	return &spdx.Package{
		PackageName:             name,
		PackageSPDXIdentifier:   identifier(id),
		PackageVersion:          version,
		PackageDownloadLocation: "NOASSERTION",
		PackageLicenseConcluded: "NOASSERTION",
		PackageCopyrightText:    "NOASSERTION",
	}
}

// What SPDX allows in an identifier.
var noIdentifier = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func identifier(name string) common.ElementID {
	return common.ElementID(noIdentifier.ReplaceAllString(name, "-"))
}

func purl(locator string) []*spdx.PackageExternalReference {
	return []*spdx.PackageExternalReference{{Category: common.CategoryPackageManager, RefType: "purl", Locator: locator}}
}

func relate(doc *spdx.Document, from common.ElementID, how string, to common.ElementID) {
	doc.Relationships = append(doc.Relationships, &spdx.Relationship{
		RefA:         common.MakeDocElementID("", string(from)),
		RefB:         common.MakeDocElementID("", string(to)),
		Relationship: how,
	})
}
