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

// lookLimit is how long a question about all namespaces may take, and namespaceLimit one about a single namespace, which reads no
// other.
const (
	lookLimit      = 3 * time.Second
	namespaceLimit = 300 * time.Millisecond
)

// look measures the commands that only read, as somebody types them: from the start of the program to its end.
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

	last := b.members[len(b.members)-1]

	for _, question := range lookQuestions(file, last) {
		command := exec.CommandContext(ctx, b.options.program, question.arguments...)
		command.Env = append(os.Environ(), "KUBECONFIG="+b.cluster.embedded.Kubeconfig)

		var out, errOut bytes.Buffer

		command.Stdout, command.Stderr = &out, &errOut
		started := time.Now()

		if err := command.Run(); err != nil {
			return fmt.Errorf("%s: %w: %s", question.name, err, errOut.String())
		}

		took := cost{wall: time.Since(started), client: command.ProcessState.UserTime() + command.ProcessState.SystemTime()}

		if !bytes.Contains(out.Bytes(), []byte(last)) {
			return fmt.Errorf("%s says nothing about %s", question.name, last)
		}

		b.figure(question.name).addAmbit(took)
	}

	return b.lookAtPage(ctx)
}

type lookQuestion struct {
	name      string
	arguments []string
	limit     time.Duration
}

func lookQuestions(file, namespace string) []lookQuestion {
	return []lookQuestion{
		{"ambit plan", []string{"plan", "-f", file, "-o", "json"}, lookLimit},
		{"ambit matrix", []string{"matrix", "-o", "json"}, lookLimit},
		{"ambit matrix as a page", []string{"matrix", "-o", "html"}, lookLimit},
		{"ambit operators -n", []string{"operators", "-n", namespace, "-o", "json"}, namespaceLimit},
		{"ambit why", []string{"why", operatorNamespace + "/" + accountName(0), "-n", namespace, "-o", "json"}, namespaceLimit},
	}
}

// tableLook adds the rows of the commands.
func (b *bench) tableLook(t *table) {
	if !b.options.wants(measureLook) {
		return
	}

	for _, question := range lookQuestions("", "") {
		t.within(question.name, b.figure(question.name), question.limit)
	}

	t.within(pageName, b.figure(pageName), lookLimit)
	t.bytes("memory of ambit serve, peak", b.memory.page, 0)
}
