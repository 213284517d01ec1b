// Command clidocs writes a page for each command of ambit, from the commands themselves.
//
// Usage: clidocs FOLDER
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra/doc"

	"github.com/ambit-k8s/ambit/internal/cli"
)

const exitUsage = 2

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: clidocs FOLDER")
		os.Exit(exitUsage)
	}

	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	root := cli.NewRoot(io.Discard, io.Discard)
	root.DisableAutoGenTag = true // A date would differ every day.
	root.InitDefaultCompletionCmd()

	// Emptied first, so that nothing stays of a command that is gone.
	old, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return fmt.Errorf("looking into %s: %w", dir, err)
	}

	for _, path := range old {
		if err := os.Remove(path); err != nil { //nolint:gosec // G703: the folder is whoever calls this one's to name.
			return fmt.Errorf("emptying %s: %w", dir, err)
		}
	}

	if err := doc.GenMarkdownTree(root, dir); err != nil {
		return fmt.Errorf("writing the pages: %w", err)
	}

	return nil
}
