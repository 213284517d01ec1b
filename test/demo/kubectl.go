package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
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

	command := exec.CommandContext(ctx, k.stage.program("k8s/kubectl"), args...)
	command.Dir = k.stage.root
	command.Env = k.stage.environment("KUBECONFIG=" + k.stage.kubeconfig)
	command.Stdout, command.Stderr = &out, &complaints

	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(complaints.String()))
	}

	return out.String(), nil
}

// show runs a command, given as people type it, and shows it and what it printed.
func (k *kubectl) show(ctx context.Context, line string) error {
	k.stage.screen.command("kubectl " + line)

	out, err := k.run(ctx, words(line)...)
	k.done = time.Now()

	if err == nil && out != "" {
		k.stage.screen.block(out)
	}

	return err
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

// words splits a command line at its spaces, except within single quotes, and fills in the operators' users.
func words(line string) []string {
	var (
		out    []string
		word   strings.Builder
		quoted bool
	)

	line = strings.NewReplacer("$SECRETMAN", secretman.user(), "$CERTMAN", certman.user()).Replace(line)
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
