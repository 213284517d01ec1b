package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// kubectl does what people do, in the way they do it.
type kubectl struct {
	stage *stage
	// done is when the last command that was shown had returned.
	done time.Time
}

// run runs kubectl in the folder of the repository and returns what it printed. Warnings are left out.
func (k *kubectl) run(ctx context.Context, args ...string) (string, error) {
	var out, complaints bytes.Buffer

	command := exec.CommandContext(ctx, embedded.Program("k8s/kubectl"), args...)
	command.Dir = embedded.Root()
	command.Env = k.stage.environment("KUBECONFIG=" + k.stage.kubeconfig)
	command.Stdout, command.Stderr = &out, &complaints

	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(complaints.String()))
	}

	return out.String(), nil
}

// show runs a command, given as people type it, and shows it and what it printed.
func (k *kubectl) show(ctx context.Context, line string) error {
	out, err := k.quietly(ctx, line)
	if err == nil && out != "" {
		k.stage.screen.block(out)
	}

	return err
}

// quietly runs a command and shows it, but not what it printed.
func (k *kubectl) quietly(ctx context.Context, line string) (string, error) {
	k.stage.screen.command("kubectl " + line)

	out, err := k.run(ctx, words(line)...)
	k.done = time.Now()

	return out, err
}

// answer runs a command whose exit code is part of the answer, and returns the last line that it printed.
func (k *kubectl) answer(ctx context.Context, line string) (string, error) {
	out, err := k.run(ctx, words(line)...)

	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", err
	}

	if out = strings.TrimSpace(out); out == "" && err != nil {
		return refusal(err), nil
	}

	return out[strings.LastIndexByte(out, '\n')+1:], nil
}

// refusal shortens what kubectl says when the API server refuses something.
func refusal(err error) string {
	if strings.Contains(err.Error(), "(Forbidden)") {
		return "Forbidden"
	}

	return err.Error()
}

// words splits a command line at its spaces and line ends, except within single quotes, and fills in the operators' users.
func words(line string) []string {
	var (
		out    []string
		word   strings.Builder
		quoted bool
	)

	line = strings.NewReplacer("$SECRETMAN", secretman.user(), "$CERTMAN", certman.user(), "\\\n", " ").Replace(line)
	for _, r := range line + " " {
		switch {
		case r == '\'':
			quoted = !quoted
		case r == ' ' && !quoted:
			if word.Len() > 0 {
				out = append(out, word.String())
			}

			word.Reset()
		default:
			word.WriteRune(r)
		}
	}

	return out
}
