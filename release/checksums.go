package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

func lines(digests map[string]string) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		out.WriteString(name + "@" + digests[name] + "\n")
	}

	return out.String()
}

// writeChecksums writes the digest of every file that is published, in the form of sha256sum, and returns them.
func writeChecksums(r *Release) (map[string]string, error) {
	entries, err := os.ReadDir(r.Dist)
	if err != nil {
		return nil, fmt.Errorf("listing what was written: %w", err)
	}

	sums := map[string]string{}

	var out strings.Builder

	for _, entry := range entries {
		if entry.IsDir() {
			continue // oci, which is published by digest
		}

		content, err := os.ReadFile(r.path(entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading what was written: %w", err)
		}

		sums[entry.Name()] = sum(content)
		out.WriteString(sums[entry.Name()] + "  " + entry.Name() + "\n")
	}

	content := []byte(out.String())
	sums["checksums.txt"] = sum(content)

	return sums, r.write("checksums.txt", content)
}
