package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// write writes a file that is released.
func (r *Release) write(name string, content []byte) error {
	path := r.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // For everybody, like what is in it.
		return fmt.Errorf("making the folder of %s: %w", name, err)
	}

	if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // It is published.
		return fmt.Errorf("writing %s: %w", name, err)
	}

	return nil
}

// empty makes the folder that everything is written to, and forgets what an earlier release left there. A folder that has
// something else in it is left alone.
func (r *Release) empty() error {
	entries, err := os.ReadDir(r.Dist)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}

	if err != nil {
		return fmt.Errorf("looking into %s: %w", r.Dist, err)
	}

	if _, err := os.Stat(r.path(imageLayout)); err != nil {
		return fmt.Errorf("%s has something in it that is no release; name another folder", r.Dist)
	}

	if err := os.RemoveAll(r.Dist); err != nil {
		return fmt.Errorf("emptying %s: %w", r.Dist, err)
	}

	return nil
}

// pack writes an archive of this version, and returns it.
func (r *Release) pack(name string, files []file) ([]byte, error) {
	content, err := gzipped(r, files...)
	if err != nil {
		return nil, err
	}

	return content, r.write(name+"-"+r.number()+".tgz", content)
}

// gzipped packs files like tarOf, smaller.
func gzipped(r *Release, files ...file) ([]byte, error) {
	content, err := tarOf(r.Created, files...)
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer

	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compressing an archive: %w", err)
	}

	if _, err := w.Write(content); err != nil {
		return nil, fmt.Errorf("compressing an archive: %w", err)
	}

	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compressing an archive: %w", err)
	}

	return out.Bytes(), nil
}

// zipped packs files for windows.
func zipped(r *Release, files ...file) ([]byte, error) {
	var out bytes.Buffer

	w := zip.NewWriter(&out)

	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: r.Created}
		header.SetMode(fs.FileMode(f.mode)) //nolint:gosec // Permissions, which fit.

		entry, err := w.CreateHeader(header)
		if err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}

		if _, err := entry.Write(f.content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
	}

	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("finishing an archive: %w", err)
	}

	return out.Bytes(), nil
}

// read reads a file of the repository.
func (r *Release) read(path ...string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(r.Root, filepath.Join(path...)))
	if err != nil {
		return nil, fmt.Errorf("reading a file of the repository: %w", err)
	}

	return content, nil
}
