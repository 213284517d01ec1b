package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

const predicateType = "https://slsa.dev/provenance/v1"

// writeProvenance says of every file and image from what it was made and how, as an in-toto statement. It proves nothing until
// somebody signs it; the workflow that releases does, with the identity of its run. The predicate alone is what cosign attests
// to an image.
func writeProvenance(ctx context.Context, r *Release, sums, digests map[string]string) error {
	predicate, err := predicateOf(ctx, r)
	if err != nil {
		return err
	}

	if err := predicate.Validate(); err != nil {
		return fmt.Errorf("the provenance is not valid: %w", err)
	}

	text, err := canonical(predicate)
	if err != nil {
		return err
	}

	if err := r.write("oci/provenance.json", text); err != nil {
		return err
	}

	fields := &structpb.Struct{}
	if err := protojson.Unmarshal(text, fields); err != nil {
		return fmt.Errorf("reading the provenance: %w", err)
	}

	statement := &intoto.Statement{
		Type: intoto.StatementTypeUri, Subject: subjects(sums, digests), PredicateType: predicateType, Predicate: fields,
	}
	if err := statement.Validate(); err != nil {
		return fmt.Errorf("the statement about the release is not valid: %w", err)
	}

	if text, err = canonical(statement); err != nil {
		return err
	}

	return r.write("ambit_"+r.number()+".intoto.json", text)
}

func predicateOf(ctx context.Context, r *Release) (*provenance.Provenance, error) {
	goVersion, err := r.output(ctx, "go", "env", "GOVERSION")
	if err != nil {
		return nil, err
	}

	parameters, err := structpb.NewStruct(map[string]any{version: r.Version, "registry": r.Registry})
	if err != nil {
		return nil, fmt.Errorf("writing the parameters of the release: %w", err)
	}

	return &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType:          homepage + "/blob/main/docs/releasing.md",
			ExternalParameters: parameters,
			ResolvedDependencies: []*intoto.ResourceDescriptor{
				{Uri: "git+" + homepage, Digest: map[string]string{"gitCommit": strings.TrimSuffix(r.Commit, "-dirty")}},
				{Uri: "pkg:golang/toolchain@" + strings.TrimSpace(goVersion), Name: "go"},
			},
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: builderID(r)}},
	}, nil
}

// builderID is the workflow that runs, or that it was nobody in particular.
func builderID(r *Release) string {
	if workflow := os.Getenv("GITHUB_WORKFLOW_REF"); workflow != "" {
		return os.Getenv("GITHUB_SERVER_URL") + "/" + workflow
	}

	if strings.HasSuffix(r.Commit, "-dirty") {
		return homepage + "/local-build-of-changed-files"
	}

	return homepage + "/local-build"
}

func subjects(sums, digests map[string]string) []*intoto.ResourceDescriptor {
	all := make([]*intoto.ResourceDescriptor, 0, len(sums)+len(digests))

	for _, known := range []map[string]string{sums, digests} {
		for _, name := range slices.Sorted(maps.Keys(known)) {
			hex := strings.TrimPrefix(known[name], "sha256:")
			all = append(all, &intoto.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": hex}})
		}
	}

	return all
}

// canonical writes a message so that it comes out the same every time: protojson puts spaces where it likes, on purpose.
func canonical(message proto.Message) ([]byte, error) {
	text, err := protojson.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("writing the provenance: %w", err)
	}

	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return nil, fmt.Errorf("writing the provenance: %w", err)
	}

	out.WriteByte('\n')

	return out.Bytes(), nil
}
