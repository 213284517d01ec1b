package command_test

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ambit-k8s/ambit/internal/cli/command"
)

// TestClusterArguments: whoever is given a command reaches the same cluster by it, as the same user, and learns no token.
func TestClusterArguments(t *testing.T) {
	t.Parallel()

	c := &cobra.Command{Use: "x"}
	command.ClusterFlags(c)
	c.Flags().Bool("delete", false, "")

	err := c.Flags().Parse([]string{
		"--delete", "-n", "ops", "--context", "prod", "--as=jane", "--as-group=a,b", "--as-group=c", "--token=secret",
		"--insecure-skip-tls-verify", "-s", "https://x",
	})
	if err != nil {
		t.Fatal(err)
	}

	want := []string{
		"--as=jane", "--as-group=a,b", "--as-group=c", "--context=prod", "--insecure-skip-tls-verify=true", "--server=https://x",
		"--token=TOKEN",
	}
	if got := command.ClusterArguments(c); !slices.Equal(got, want) {
		t.Errorf("they are %q, want %q", got, want)
	}
}
