package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validation"
)

// ValidName says what is wrong with the name that a flag gives.
func ValidName(flag, name string) error {
	if problems := validation.NameIsDNSSubdomain(name, false); len(problems) > 0 {
		return fmt.Errorf("%s is %q, which is no valid name: %s", flag, name, problems[0])
	}

	return nil
}

// Completion offers values to the shell.
type Completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// CompleteFlag offers values of a flag. The registration fails only for an unknown flag, or for a second completion of one.
func CompleteFlag(c *cobra.Command, flag string, f Completion) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}
