package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

// lookLimit is how long a question may take.
const lookLimit = 3 * time.Second

// look measures the commands that only look, as somebody types them: from the start of the program to its end.
func (b *bench) look(ctx context.Context, _ int) error {
	nss := newScope(append([]string{extraNamespace}, b.members...)...)
	nss.APIVersion, nss.Kind = "operator.ibm.com/v1", "NamespaceScope"

	text, err := yaml.Marshal(nss)
	if err != nil {
		return err
	}

	file := filepath.Join(b.cluster.dir, "plan.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}

	for _, question := range lookQuestions(file) {
		command := exec.CommandContext(ctx, b.options.program, question.arguments...)
		command.Env = append(os.Environ(), "KUBECONFIG="+b.cluster.embedded.Kubeconfig)

		var out, errOut bytes.Buffer

		command.Stdout, command.Stderr = &out, &errOut
		started := time.Now()

		if err := command.Run(); err != nil {
			return fmt.Errorf("%s: %w: %s", question.name, err, errOut.String())
		}

		took := cost{wall: time.Since(started), client: command.ProcessState.UserTime() + command.ProcessState.SystemTime()}

		if !bytes.Contains(out.Bytes(), []byte(b.members[len(b.members)-1])) {
			return fmt.Errorf("%s says nothing about %s", question.name, b.members[len(b.members)-1])
		}

		b.figure(question.name).addAmbit(took)
	}

	return nil
}

type lookQuestion struct {
	name      string
	arguments []string
}

func lookQuestions(file string) []lookQuestion {
	return []lookQuestion{
		{"ambit plan", []string{"plan", "-f", file, "-o", "json"}},
		{"ambit matrix", []string{"matrix", "-o", "json"}},
		{"ambit matrix as a page", []string{"matrix", "-o", "html"}},
	}
}

// tableLook adds the rows of the commands.
func (b *bench) tableLook(t *table) {
	if !b.options.wants(measureLook) {
		return
	}

	for _, question := range lookQuestions("") {
		f := b.figure(question.name)
		t.within(question.name, 0, median(f.ambit, wall), lookLimit)
	}
}
