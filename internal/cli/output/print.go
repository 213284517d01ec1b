package output

import (
	"fmt"

	"github.com/ambit-k8s/ambit/internal/terminal"
)

// Say prints a line.
func Say(to *terminal.Writer, format string, values ...any) error {
	return Print(to, terminal.Textf(format+"\n", values...))
}

// Notes prints, each on its line, what users should know beside the output.
func Notes(to *terminal.Writer, notes []string) error {
	for _, note := range notes {
		if err := Say(to, "Note: %s", note); err != nil {
			return err
		}
	}

	return nil
}

// Print prints a text as it is.
func Print(to *terminal.Writer, text terminal.Text) error {
	if err := to.Print(text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}

	return nil
}
