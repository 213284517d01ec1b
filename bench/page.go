package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"regexp"
	"time"
)

// pageName is the row of the page: from the start of "ambit serve" to the answer that its first view is drawn from.
const pageName = "ambit serve, first view"

var pageLink = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=\S+`)

// lookAtPage opens the page as a browser would, and notes how much memory the program that serves it needed.
func (b *bench) lookAtPage(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	command := exec.CommandContext(ctx, b.options.program, "serve")
	command.Env = append(os.Environ(), "KUBECONFIG="+b.cluster.embedded.Kubeconfig)
	command.Stderr = os.Stderr

	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}

	started := time.Now()

	if err := command.Start(); err != nil {
		return fmt.Errorf("starting ambit serve: %w", err)
	}

	defer func() {
		cancel()

		_ = command.Wait() // It was killed, which is no failure.
	}()

	link, err := linkIn(out)
	if err != nil {
		return err
	}

	view, err := firstView(ctx, link)
	if err != nil {
		return err
	}

	b.figure(pageName).addAmbit(cost{wall: time.Since(started)})

	if last := b.members[len(b.members)-1]; !bytes.Contains(view, []byte(last)) {
		return fmt.Errorf("the page says nothing about %s", last)
	}

	peak, _ := process{command.Process.Pid}.memory()
	b.memory.page = max(b.memory.page, peak)

	return nil
}

// linkIn returns the link that "ambit serve" prints, and goes on reading, so that the program never blocks on a full pipe.
func linkIn(out io.Reader) (string, error) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if link := pageLink.FindString(lines.Text()); link != "" {
			go func() { _, _ = io.Copy(io.Discard, out) }()

			return link, nil
		}
	}

	return "", errors.New("ambit serve prints no link")
}

// firstView follows the link, which gives a cookie, and asks for all that the page begins with.
func firstView(ctx context.Context, link string) ([]byte, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}

	browser := &http.Client{Jar: jar}

	page, _, err := visit(ctx, browser, link)
	if err != nil {
		return nil, err
	}

	_, view, err := visit(ctx, browser, page+"api/v1/overview")

	return view, err
}

// visit returns where a request led, and the answer.
func visit(ctx context.Context, browser *http.Client, address string) (led string, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", nil, err
	}

	response, err := browser.Do(request)
	if err != nil {
		return "", nil, err
	}
	defer response.Body.Close() //nolint:errcheck // It was read.

	answer, err = io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the page answers %s: %s", response.Status, answer)
	}

	return response.Request.URL.String(), answer, err
}
